"""What the package's host registers with an engine that is none, for a program in any language."""

from collections.abc import Callable
from typing import Any

import pulumi
from earshot_pulumi.aws.cluster import AwsCluster
from earshot_pulumi.aws.endpoint import AwsEndpoint
from earshot_pulumi.aws.vpc import AwsNetwork
from earshot_pulumi.docker.cluster import DockerCluster
from earshot_pulumi.docker_hosts.component import DockerHosts
from earshot_pulumi.local.cluster import LocalCluster
from earshot_pulumi.provider.construction import Package
from pulumi.runtime import mocks

from tests.components.aws.registered import Answers
from tests.components.engine_double import Engine


def offered() -> Package:
    """The package's components."""
    return Package(
        (LocalCluster, DockerCluster, AwsCluster, AwsNetwork, AwsEndpoint, DockerHosts), {}
    )


def constructed(
    component: str,
    inputs: dict[str, Any],
    answers: Answers | None = None,
    watch: Callable[[Engine], None] = lambda engine: None,
) -> tuple[Engine, dict[str, Any]]:
    """Every registration, and the component's outputs; ``inputs`` as the schema has them.

    An input that is a function is called for its value, as outputs exist in a run alone. ``watch``
    gets the engine before it begins.
    """
    answers = answers or Answers()
    engine = Engine(answers)
    watch(engine)
    outputs: dict[str, Any] = {}
    mocks.set_mocks(answers, "program", "stack", answers.preview, monitor=engine)

    def run() -> Any:
        given = {key: item() if callable(item) else item for key, item in inputs.items()}
        made = offered().construct("mine", f"earshot:index:{component}", given)
        return pulumi.Output.all(**made.state).apply(outputs.update)

    pulumi.runtime.test(run)()  # type: ignore[no-untyped-call]
    return engine, outputs


def given_later(value: Any, known: bool = True) -> Callable[[], pulumi.Output[Any]]:
    """Makes ``value`` another resource's output, which a preview may not know."""

    async def is_known() -> bool:
        return known

    async def later() -> Any:
        return value

    return lambda: pulumi.Output(set(), later(), is_known())
