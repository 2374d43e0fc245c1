"""The readiness of instances as a resource. The next node's change waits for it.

Brokers in private subnets cannot be reached from outside. So each node reports its instance, the
user data of its boot, and its state, in an SSM parameter. A balancer must send them connections.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from earshot.errors import EarshotError
from earshot.user_data.boot import NodeReport
from earshot_pulumi import driver
from earshot_pulumi.aws.credentials import Read, reader
from earshot_pulumi.aws.machines import Machine, described, start
from earshot_pulumi.aws.targets import Target, register, unhealthy
from earshot_pulumi.aws_settings import AwsKind
from earshot_pulumi.driver import NodeDriver
from earshot_pulumi.properties import read
from earshot_pulumi.provider.kind import Operation, Properties
from earshot_pulumi.provider.resource import InternalResource

Unhealthy = Callable[[Target], str]
"""Returns the reason why the balancer sends a target no connections; empty if it sends some."""
POLL = 5.0
"""Seconds between two reads. An account may read parameters 40 times a second:
https://docs.aws.amazon.com/general/latest/gr/ssm.html"""
AGAIN = (
    "look at the instance (`aws ssm start-session --target INSTANCE`, then `journalctl -u "
    "kafka-prepare -u kafka`), fix it, then run the same command again"
)


@dataclass(frozen=True)
class AwaitedNode:
    """One deployed node, for which a readiness waits."""

    node: int
    parameter: str
    instance: str
    user_data: str
    """The digest of the instance's user data."""
    hardware: str = ""
    """The instance type. To change it, EC2 stops and starts the instance."""
    granted: str = ""
    """A value that changes with every change of the node."""
    size_gib: int = 0
    """The size of its data volume."""
    targets: tuple[Target, ...] = ()
    """The node's targets in the balancer's target groups."""


class InstanceDriver(NodeDriver):
    """A node on an instance, by its report. Reports of earlier boots do not count."""

    def __init__(
        self,
        node: AwaitedNode,
        machines: Mapping[str, Machine],
        values: Mapping[str, str],
        unhealthy: Unhealthy,
    ) -> None:
        """``machines`` are all instances by id, ``values`` all parameters, as last seen."""
        self.name, self._node = f"node {node.node}", node
        self._machines, self._values = machines, values
        self._unhealthy = unhealthy

    def check_alive(self) -> None:
        report = NodeReport.read(self._values.get(self._node.parameter, ""))
        if report and report.is_final and self._report_lacks() == report.lacking:
            raise EarshotError(self.name, observed=report.lacking, remedy=AGAIN)

    def lacks(self) -> str:
        if reason := self._report_lacks():
            return reason
        if reason := next(filter(None, map(self._unhealthy, self._node.targets)), ""):
            return f"in sync, and the balancer sends it no connections: {reason}"
        return ""

    def _report_lacks(self) -> str:
        node, machine = self._node, self._machines.get(self._node.instance)
        if machine is not None and machine.state != "running":
            return machine.problem
        if node.parameter not in self._values:
            return f"its parameter {node.parameter} does not exist any more"
        if (report := NodeReport.read(self._values[node.parameter])) is None:
            return "it has not reported yet"
        started = machine.started if machine is not None else 0.0
        return report.lacks(node.node, node.instance, node.user_data, started, node.size_gib)

    def last_lines(self, count: int) -> str:
        return ""


def wait_for(
    nodes: Sequence[AwaitedNode],
    read: Read,
    deadline: float,
    look: Callable[[Sequence[str]], Mapping[str, Machine]],
    start: Callable[[str], None],
    unhealthy: Unhealthy,
    *,
    poll: float = POLL,
    progress: Callable[[str], None] = lambda _: None,
) -> None:
    """Returns when all ``nodes`` report that they are in sync with the deployed settings, and their
    targets are healthy.

    A stopped instance is started once: it was stopped by hand, or by an interrupted update. Raises
    EarshotError as `driver.wait_for` does.
    """
    machines, values, started = dict[str, Machine](), dict[str, str](), set[str]()

    def begin_round(_: object) -> None:
        machines.clear()
        machines.update(look([node.instance for node in nodes]))
        for node in nodes:
            machine = machines.get(node.instance)
            if machine is not None and machine.is_stopped and machine.id not in started:
                started.add(machine.id)
                progress(f"node {node.node}: {machine.problem}: earshot starts it")
                start(machine.id)
        values.clear()
        values.update(read([node.parameter for node in nodes]))

    drivers = [InstanceDriver(node, machines, values, unhealthy) for node in nodes]
    driver.wait_for(drivers, deadline, progress, AGAIN, begin_round, poll)


class AwsReadinessKind(AwsKind):
    """Waits for one node after a change, or for the whole cluster at the end of a run, and starts
    instances that were stopped.

    Inputs: the `nodes` to wait for (see `AwaitedNode`); their `region`; `deadline` (s); `whole`,
    true for the whole cluster; `in_turn`, true if nodes change one after the other, as they do
    after the cluster has served; and, optionally, the `shared_targets` of the nodes, which are
    registered again (see `AwsTurnKind`).
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
            machines = described(self.settings(operation), props["region"], ids)
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
                [read(AwaitedNode, node) for node in news["nodes"]],
                reader(settings, region),
                news["deadline"],
                partial(described, settings, region),
                partial(start, settings, region),
                partial(unhealthy, settings, region),
                progress=operation.log,
            )
        return news


class AwsReadiness(InternalResource):
    """Waits until nodes report that they are in sync, with the deployed settings, and are healthy
    targets of the balancer, if the stack has one."""
