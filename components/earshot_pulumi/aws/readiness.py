"""The readiness of instances as a resource. The next node's change waits for it."""

import contextlib

from earshot.errors import EarshotError
from earshot_pulumi.aws.credentials import reader
from earshot_pulumi.aws.machines import looks, starter
from earshot_pulumi.aws.reports import Awaited, Target, wait_for
from earshot_pulumi.aws.targets import health, register
from earshot_pulumi.aws_settings import AwsKind
from earshot_pulumi.properties import read
from earshot_pulumi.provider.internal import InternalResource
from earshot_pulumi.provider.kind import Operation, Properties


class AwsReadinessKind(AwsKind):
    """Waits for one node after a change, or for the whole cluster at the end of a run, and starts
    instances that were stopped.

    Inputs: the `nodes` to wait for (see `Awaited`); their `region`; `deadline` (s); `whole`, true
    for the whole cluster; `in_turn`, true if nodes change one after the other, as they do after the
    cluster has served; and, optionally, the `shared_targets` of the nodes, which are registered
    again (see `AwsTurnKind`).
    """

    ID = "ready"
    DECISIVE = ("nodes", "whole")
    interrupted = (
        "interrupted while waiting for instances, which continue to run; nothing was changed"
    )

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        return super().differs(operation, olds, news) or (
            bool(news["whole"]) and self._is_one_stopped(operation, olds)
        )

    def _is_one_stopped(self, operation: Operation, props: Properties) -> bool:
        """True if an instance was stopped since the last update; false if AWS does not answer."""
        ids = [str(node["instance"]) for node in props["nodes"]]
        with contextlib.suppress(EarshotError):
            machines = looks(self.settings(operation), props["region"])(ids)
            return any(machine.is_stopped for machine in machines.values())
        return False

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        # all voters of a new cluster start together, then one wait covers the whole cluster
        if news["whole"] or (olds and news["in_turn"]):
            settings, region = self.settings(operation), news["region"]
            if olds:
                register(
                    settings,
                    region,
                    [read(Target, target) for target in news.get("shared_targets", ())],
                )
            wait_for(
                [read(Awaited, node) for node in news["nodes"]],
                reader(settings, region),
                news["deadline"],
                looks(settings, region),
                starter(settings, region),
                health(settings, region),
                progress=operation.log,
            )
        return news


class AwsReadiness(InternalResource):
    """Waits until nodes report that they are in sync, with the deployed settings, and are healthy
    targets of the balancer, if the stack has one."""
