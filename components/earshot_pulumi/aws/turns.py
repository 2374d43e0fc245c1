"""A node's turn as a resource: no node of a cluster is touched while another one is down."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

import pulumi

from earshot.listeners.listed import listed
from earshot.user_data.boot import NodeReport
from earshot_pulumi.aws.credentials import reader
from earshot_pulumi.aws.machines import Machine, machines
from earshot_pulumi.aws.reports import Target
from earshot_pulumi.aws.targets import deregister, still_served
from earshot_pulumi.aws_settings import AwsKind, AwsSettings
from earshot_pulumi.properties import read
from earshot_pulumi.provider.internal import CheckedKind, InternalResource
from earshot_pulumi.provider.kind import UNKNOWN, Operation, Properties

LEAVING_SECONDS = 60.0
"""Within which the balancer should have taken out a deregistered target."""
POLL = 1.0


@dataclass(frozen=True)
class Other:
    """A node other than the one that may change now."""

    node: int
    name: str
    """The tag of its instance."""
    parameter: str
    """In which it reports."""


class AwsTurnKind(AwsKind, CheckedKind):
    """Refuses a change of a node while others are down, and takes the node out of the balancer's
    bootstrap before it stops, which the balancer has applied by then.

    Inputs: `node`, its id; `wanted` and `root_gib`, which restart or replace its instance when they
    change (states of earlier versions have no `root_gib`);
    `others`, the nodes that must serve (empty: the node may change whichever nodes are down);
    `stack`; `region`; and maybe `shared_targets`, its targets in groups that have others, too. A
    group with this node alone keeps it: without any target, a balancer answers no connection.
    """

    ID = "turn"
    DECISIVE = ("wanted",)

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        is_same_root = olds.get("root_gib", news["root_gib"]) == news["root_gib"]
        return not is_same_root or super().differs(operation, olds, news)

    def problems(self, operation: Operation, olds: Properties, news: Properties) -> Iterable[str]:
        others = news["others"]
        if not others or news["wanted"] is UNKNOWN or not self.differs(operation, olds, news):
            return
        settings, region = self.settings(operation), news["region"]
        known_machines = machines(settings, region, news["stack"])
        values = reader(settings, region)([other["parameter"] for other in others])
        down = dict(_down([Other(**other) for other in others], known_machines, values))
        if down:
            yield _refusal(int(news["node"]), down)

    def made(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        if olds and news["others"]:
            targets = [read(Target, target) for target in news.get("shared_targets", ())]
            deregister(self.settings(operation), news["region"], targets)
            self._wait_until_gone(operation, news["region"], targets)
        # a change that is taken back restarts the instance too, and is waited for again
        return {**news, "granted": uuid4().hex}

    def _wait_until_gone(
        self, operation: Operation, region: str, targets: Sequence[Target]
    ) -> None:
        """Returns once the balancer sends no new connections to ``targets``. After a while it only
        says so: clients of the bootstrap try again, and the change is wanted."""
        settings, end = self.settings(operation), time.monotonic() + LEAVING_SECONDS
        while served := still_served(settings, region, targets):
            if time.monotonic() > end:
                operation.log(
                    f"the balancer has not applied a deregistration within {LEAVING_SECONDS:g} s: "
                    f"{'; '.join(served)}. The change goes on; a client that connects by the "
                    "bootstrap may be refused until it tries again"
                )
                return
            operation.wait(POLL)


class AwsTurn(InternalResource):
    """Known once a node may be touched."""

    granted: pulumi.Output[str]
    """Differs with every change of the node."""

    def __init__(self, name: str, props: Properties, opts: pulumi.ResourceOptions) -> None:
        super().__init__(name, {**props, "granted": None}, opts)


def nodes_down(
    settings: AwsSettings, region: str, stack: str, names: Mapping[int, tuple[str, str]]
) -> dict[int, str]:
    """The reason for each node that does not serve, by its id; ``names`` are each node's name and
    parameter by its id. Raises EarshotError."""
    nodes = [Other(id, f"{stack}-{name}", parameter) for id, (name, parameter) in names.items()]
    values = reader(settings, region)([node.parameter for node in nodes])
    return dict(_down(nodes, machines(settings, region, stack), values))


def _down(
    nodes: Iterable[Other], machines: Mapping[str, Machine], values: Mapping[str, str]
) -> Iterator[tuple[int, str]]:
    """By node that does not serve, the reason."""
    for node in nodes:
        if reason := _reason(
            int(node.node), machines.get(node.name), values.get(node.parameter, "")
        ):
            yield int(node.node), reason


def _reason(node: int, machine: Machine | None, text: str) -> str:
    if machine is None:
        return "it has no instance"
    if machine.problem:
        return machine.problem
    report = NodeReport.read(text)
    if report is None:
        return f"{machine.id} has not reported; `systemctl start kafka-ready` there makes it"
    return report.outdated(node, machine.id, machine.started) or report.lacking


def _refusal(node: int, down: Mapping[int, str]) -> str:
    details = "".join(f"\n  - node {id}: {reason}" for id, reason in sorted(down.items()))
    ids = listed(sorted(down))
    return (
        f"node {node} would be restarted while node {ids} is down:{details}\n"
        f"  Bring node {ids} back first: start its instance, or replace a lost one alone "
        "(`pulumi up --refresh` with the settings of before). Where the cluster is down as a "
        "whole, `in_turn: false` changes all nodes at once"
    )


def others_of(stack: str, names: Mapping[int, tuple[str, str]], node: int) -> list[Properties]:
    """The input `others` for ``node``; ``names`` are each node's name and parameter by its id."""
    return [
        {"node": id, "name": f"{stack}-{name}", "parameter": parameter}
        for id, (name, parameter) in names.items()
        if id != node
    ]
