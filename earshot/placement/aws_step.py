"""The spec of brokers on AWS at a step of a change of their listeners.

Names, groups, records and subnets follow from a spec's listeners, so that each step is a spec with
listeners of the new and of former specs.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from earshot.config.aws import AwsSpec
from earshot.config.aws_parts import ClientsSpec
from earshot.config.balancer import BalancerSpec
from earshot.config.listener import ListenerSpec
from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan, Listener
from earshot.placement.aws import plan_aws


def written(spec: AwsSpec) -> dict[str, Any]:
    """The parts of ``spec`` that `spec_at` needs later, as JSON."""
    return {
        "listeners": [
            listener.model_dump(mode="json", exclude_none=True) for listener in spec.listeners
        ],
        "clear_text": dict(spec.clear_text),
        "clients": spec.clients.model_dump(mode="json"),
        **({"expose": spec.expose.model_dump(mode="json")} if spec.expose else {}),
    }


def spec_at(
    spec: AwsSpec,
    stack: str,
    step: ClusterPlan,
    before: Collection[Mapping[str, Any]],
    root: Path = Path(),
) -> AwsSpec:
    """``spec`` of ``stack``, with the listeners of ``step``.

    ``before`` are `written` specs that nodes may run; ``root`` is the folder of the stack's
    cluster. Raises EarshotError if the listeners of these specs do not give the step, for example
    if brokers are added or removed with it.
    """
    if plan_aws(spec, stack, root=root).plan == step:
        return spec
    specs, reasons, clients = [spec], dict[str, str](), spec.clients
    exposed = spec.expose
    for written_spec in before:
        listeners = tuple(
            ListenerSpec.model_validate(listener) for listener in written_spec["listeners"]
        )
        expose = (
            BalancerSpec.model_validate(written_spec["expose"])
            if "expose" in written_spec
            else spec.expose
        )
        older = spec.model_copy(update={"listeners": listeners, "expose": expose})
        if older.external and not spec.external:
            # a spec without external listeners has no clients for the remaining ones
            clients = ClientsSpec.model_validate(
                {**written_spec["clients"], "groups": spec.clients.groups}
            )
            older = older.model_copy(update={"clients": clients})
        specs.append(older)
        exposed = exposed or older.expose
        reasons |= written_spec["clear_text"]
    listeners_at_step = tuple(_listeners(stack, step, specs))
    step_spec = spec.model_copy(
        update={
            "listeners": listeners_at_step,
            "inter_broker": step.inter_broker,
            "extra": dict(step.extra),
            "clients": clients,
            "expose": exposed,
            "clear_text": {
                name: why
                for name, why in (reasons | spec.clear_text).items()
                if name in step.listener_names
            },
        }
    )
    if (
        len(listeners_at_step) != len(step.listener_names)
        or plan_aws(step_spec, stack, root=root).plan != step
    ):
        raise EarshotError(
            "nothing was touched, for this change cannot be made in one go",
            observed="it takes several steps, and more changes along with the listeners",
            remedy="change the listeners first, with all else as it is, and apply that",
        )
    return step_spec


def _listeners(stack: str, step: ClusterPlan, specs: Collection[AwsSpec]) -> Iterator[ListenerSpec]:
    """The listeners of ``specs`` that are planned as in ``step``, in its order."""
    listeners_by_name: dict[str, list[tuple[ListenerSpec, list[Listener | None]]]] = {}
    for spec in specs:
        plan = plan_aws(spec, stack).plan
        for listener in spec.listeners:
            listeners_by_name.setdefault(listener.name, []).append(
                (listener, _of_brokers(plan, listener.name))
            )
    for name in step.listener_names:
        planned = _of_brokers(step, name)
        yield from [item for item, listed in listeners_by_name.get(name, ()) if listed == planned][
            :1
        ]


def _of_brokers(plan: ClusterPlan, name: str) -> list[Listener | None]:
    return [node.listener(name) for node in plan.brokers]
