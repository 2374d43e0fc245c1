"""The turn of a node, as a resource: no node changes while another node of the cluster is down."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

import pulumi

from earshot.config.aws import AwsSpec
from earshot.listeners.listed import listed
from earshot.placement.aws import report_parameter
from earshot.user_data.boot import NodeReport
from earshot_pulumi.aws.credentials import reader
from earshot_pulumi.aws.machines import Machine, machines
from earshot_pulumi.aws.targets import Target, deregister, still_served
from earshot_pulumi.aws_settings import AwsKind, AwsSettings
from earshot_pulumi.properties import read
from earshot_pulumi.provider.kind import UNKNOWN, Operation, Properties
from earshot_pulumi.provider.resource import InternalResource

LEAVING_SECONDS = 60.0
"""Seconds within which a deregistration should take effect."""
POLL = 1.0


@dataclass(frozen=True)
class OtherNode:
    """Another node, which must serve while a node changes."""

    node: int
    name: str
    """The tag of its instance."""
    parameter: str
    """The parameter with its reports."""


class AwsTurnKind(AwsKind):
    """Refuses a change of a node while others are down. Before the node stops, it is deregistered
    from the balancer's bootstrap, and the deregistration has taken effect.

    Inputs: `node`, its id; `wanted` and `root_gib`, whose change restarts or replaces its instance
    (states of earlier versions have no `root_gib`); `others`, the nodes that must serve (if empty,
    the node may always change); `stack`; `region`; and, optionally, `shared_targets`, its targets
    in groups with other nodes, too. A group with only this node keeps it: without any target, a
    balancer answers no connection.
    """

    ID = "turn"
    interrupted = "interrupted: nothing was changed"
    DECISIVE = ("wanted",)

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        is_same_root = olds.get("root_gib", news["root_gib"]) == news["root_gib"]
        return not is_same_root or super().differs(operation, olds, news)

    def problems(self, operation: Operation, olds: Properties, news: Properties) -> Iterable[str]:
        others = news["others"]
        if not others or news["wanted"] is UNKNOWN or not self.differs(operation, olds, news):
            return
        settings, region = self.settings(operation), news["region"]
        nodes = [OtherNode(**other) for other in others]
        if reasons := nodes_down(settings, region, news["stack"], nodes):
            yield _refusal(int(news["node"]), reasons)

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        if olds and news["others"]:
            targets = [read(Target, target) for target in news.get("shared_targets", ())]
            deregister(self.settings(operation), news["region"], targets)
            self._wait_until_deregistered(operation, news["region"], targets)
        # a change that is reverted restarts the instance, too, and the readiness waits again
        return {**news, "granted": uuid4().hex}

    def _wait_until_deregistered(
        self, operation: Operation, region: str, targets: Sequence[Target]
    ) -> None:
        """Returns when the balancer sends no new connections to ``targets``.

        After `LEAVING_SECONDS` it only logs the targets: clients of the bootstrap try again.
        """
        settings, end = self.settings(operation), time.monotonic() + LEAVING_SECONDS
        while texts := still_served(settings, region, targets):
            if time.monotonic() > end:
                operation.log(
                    f"the balancer has not applied a deregistration within {LEAVING_SECONDS:g} s: "
                    f"{'; '.join(texts)}. The change continues; a client that connects through "
                    "the bootstrap may be refused until it tries again"
                )
                return
            operation.wait(POLL)


class AwsTurn(InternalResource):
    """Created when a node may change."""

    granted: pulumi.Output[str]
    """A value that changes with every change of the node."""


def deployed(stack: str, spec: AwsSpec, names: Collection[str]) -> list[OtherNode]:
    """The nodes of ``spec`` with ``names``, those of the last run."""
    return [
        OtherNode(id, f"{stack}-{name}", report_parameter(stack, name))
        for id in spec.node_ids
        if (name := spec.name_of(id)) in names
    ]


def nodes_down(
    settings: AwsSettings, region: str, stack: str, nodes: Sequence[OtherNode]
) -> dict[int, str]:
    """The reason for each of ``nodes`` that does not serve, by its id. Raises EarshotError."""
    machines_by_name = machines(settings, region, stack)
    values = reader(settings, region)([node.parameter for node in nodes])
    reasons = {
        int(node.node): _reason(
            int(node.node), machines_by_name.get(node.name), values.get(node.parameter, "")
        )
        for node in nodes
    }
    return {id: reason for id, reason in reasons.items() if reason}


def _reason(node: int, machine: Machine | None, text: str) -> str:
    if machine is None:
        return "it has no instance"
    if machine.problem:
        return machine.problem
    report = NodeReport.read(text)
    if report is None:
        return f"{machine.id} has sent no report; `systemctl start kafka-ready` on it sends one"
    return report.outdated(node, machine.id, machine.started) or report.lacking


def _refusal(node: int, reasons: Mapping[int, str]) -> str:
    details = "".join(f"\n  - node {id}: {reason}" for id, reason in sorted(reasons.items()))
    ids = listed(sorted(reasons))
    return (
        f"node {node} would be restarted while node {ids} is down:{details}\n"
        f"  Start the instance of node {ids} first, or replace only a lost one (`pulumi up "
        "--refresh` with the former settings). If the cluster is down as a whole, `in_turn: false` "
        "changes all nodes at once"
    )
