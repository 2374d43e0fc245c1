"""The brokers of the `aws` placement: network, groups, names, gate, then instances in turn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi.runtime import is_dry_run

from earshot.config.aws import AwsSpec
from earshot.listeners.model import Node
from earshot.placement.aws import (
    AwsPlan,
    HostOrMarker,
    ProvisionedNames,
    plan_aws,
    report_parameter,
)
from earshot.placement.aws_secrets import NO_SECRETS
from earshot.placement.aws_standpoints import GRACE
from earshot_pulumi.aws.balancer import Balancer, EndpointService
from earshot_pulumi.aws.changes import HeldStack
from earshot_pulumi.aws.cluster_id import cluster_identity
from earshot_pulumi.aws.instances import SharedInputs, instances_of, newest_images
from earshot_pulumi.aws.last_run import LastRun
from earshot_pulumi.aws.names import Names
from earshot_pulumi.aws.network import Network, NetworkArgs, SecurityGroups, check_region, existing
from earshot_pulumi.aws.node import Granted, InstanceNode
from earshot_pulumi.aws.preflight import ChangePreflight, settings_of
from earshot_pulumi.aws.readiness import AwsReadiness
from earshot_pulumi.aws.turns import AwsTurn, deployed
from earshot_pulumi.aws.volumes import attached_id, check_given, idle
from earshot_pulumi.brokers import Brokers
from earshot_pulumi.change_memory import ChangeRecords
from earshot_pulumi.deployment import ClusterContext
from earshot_pulumi.outputs import with_run_errors, without_dependencies
from earshot_pulumi.properties import write

if TYPE_CHECKING:
    from earshot_pulumi.aws.cluster_security import ClusterSecurity


class AwsBrokers(Brokers):
    """The EC2 instances of a cluster."""

    spec: AwsSpec
    plan: pulumi.Output[AwsPlan]
    """Unknown while one of its names is."""

    def __init__(
        self,
        at: ClusterContext,
        spec: AwsSpec,
        *,
        records: ChangeRecords | None = None,
        leaving: frozenset[str] = frozenset(),
        remembered: LastRun | None = None,
        down: Collection[int] = (),
    ) -> None:
        """Nodes report the clients of the listeners in ``leaving``. ``remembered`` is the last
        run's. The nodes ``down`` come first, so that no other node changes before they serve."""
        super().__init__("aws:AwsCluster", at, spec, records)
        name = self.stack
        self._leaving, self._down = leaving, frozenset(down)
        self._remembered = remembered or LastRun()
        self._settings = at.aws.to_props()
        check_region(spec.region, self)
        attached = attached_id(name, self)
        check_given(name, spec, spec.cluster_id or attached, self)
        own_volumes = self._remembered.volumes.values()
        if warning := idle(name, spec, spec.cluster_id or attached, own_volumes, self):
            pulumi.log.warn(warning, self)
        # groups need only ports and clients, which do not depend on names
        draft = plan_aws(spec, root=self.root)
        self.network = (
            existing(spec, self)
            if spec.vpc.id is not None
            else Network(name, NetworkArgs.of(spec), self._child).facts
        )
        self.vpc_id = pulumi.Output.from_input(self.network.vpc_id)
        self.cluster_id = cluster_identity(name, spec.cluster_id, attached, self)
        groups = SecurityGroups(name, draft.groups, self.network.vpc_id, self._child)
        self.groups = groups.ids
        self.names = Names(name, spec, self.network, groups.ids, self._child)
        self._nlb = balancer = self._balancer(draft)
        self.endpoint_service: EndpointService | None = None
        if balancer is not None and spec.expose is not None and spec.expose.private_link:
            self.endpoint_service = EndpointService(
                name, spec, spec.expose, draft.plan, balancer, self._child
            )

        def planned(
            names: Mapping[int, ProvisionedNames], balancer_name: HostOrMarker | None
        ) -> AwsPlan:
            return plan_aws(spec, names, self.network.dns, balancer=balancer_name, root=self.root)

        shown_plan = _with(
            self.names.provisioned, balancer.name_or_marker if balancer else None, planned
        )
        self.plan = _with(self.names.settled, balancer.settled if balancer else None, planned)
        self.create_gate(
            shown_plan.apply(lambda aws_plan: aws_plan.plan),
            shown_plan.apply(lambda aws_plan: aws_plan.addresses),
            cloud=shown_plan.apply(lambda aws_plan: aws_plan.cloud),
            certificates=draft.certificates,
        )
        self.shared = SharedInputs(
            name,
            spec,
            self.names,
            self.cluster_id,
            without_dependencies(self.plan),
            self.gate,
            self._preflight(),
            newest_images(instances_of(spec), self),
            self._settings,
            self._leaving,
        )
        self.secured = self._secured(self.shared)
        self.certificates = self.secured.certificates if self.secured else None
        self.nodes: dict[int, InstanceNode] = {}
        nodes = sorted(draft.plan.nodes, key=lambda node: node.id not in down)
        self.create_nodes(draft.plan, nodes, self.shared.preflight)

    def _balancer(self, draft: AwsPlan) -> Balancer | None:
        spec = self.spec
        if spec.expose is None:
            return None
        return Balancer(
            self.stack,
            spec,
            spec.expose,
            draft.plan,
            self.network,
            self.groups,
            self.names,
            self._child,
        )

    def _parameter(self, id: int) -> str:
        """The name of the parameter in which node ``id`` reports.

        Not a resource, because the last node's parameter is made after the first node's readiness.
        """
        return report_parameter(self.stack, self.spec.name_of(id))

    def _preflight(self) -> pulumi.Resource:
        spec = self.spec
        reports = [self._parameter(id) for id in spec.node_ids]
        properties: Any = without_dependencies(self.plan).apply(
            lambda aws_plan: settings_of(aws_plan.plan)
        )
        preflight = ChangePreflight(
            self.stack,
            {
                **write(HeldStack.of(self.stack, spec)),
                "region": spec.region,
                "reports": reports,
                "archive": spec.archive.model_dump(),
                "properties": pulumi.Output.secret(properties),
                **self._settings,
            },
            self.gated_options(*self.gate.before),
        )
        return self.first_predecessor(preflight)

    def _secured(self, shared: SharedInputs) -> ClusterSecurity | None:
        if self.spec.security is None:
            return None
        from earshot_pulumi.aws.cluster_security import ClusterSecurity  # slow to import

        return ClusterSecurity(shared, self.spec.security, self.root)

    def _granted(self) -> Granted:
        spec, remembered = self.spec, self._remembered
        are_in_turn = remembered.served and spec.in_turn
        nodes = deployed(self.stack, spec, remembered.nodes) if are_in_turn else []

        def granted(node: InstanceNode, wanted_inputs: pulumi.Output[Any]) -> pulumi.Output[Any]:
            is_new = all(other.node != node.id for other in nodes)
            earlier = self._earlier_down(node.id) if is_dry_run() else set()
            other_nodes = [
                asdict(other) for other in nodes if other.node not in {node.id, *earlier}
            ]
            return AwsTurn(
                f"{self.stack}-{node.name}",
                {
                    "node": node.id,
                    "wanted": wanted_inputs,
                    "root_gib": spec.instance_of(node.id).root_gib,
                    "others": [] if is_new else other_nodes,
                    "stack": self.stack,
                    "region": spec.region,
                    **self._shared_targets([node.id]),
                    **self._settings,
                },
                self.shared.opts(),
            ).granted

        return granted

    def _earlier_down(self, id: int) -> set[int]:
        """The nodes that are down and change before the node ``id``, which waits for them."""
        return {down for down in self._down if id not in self._down or down < id}

    def _shared_targets(self, ids: Iterable[int]) -> dict[str, object]:
        """The input `shared_targets` for the nodes ``ids``; empty without a balancer."""
        balancer = self._nlb
        targets_by_id = balancer.shared_targets if balancer else {}
        targets = [target for id in ids for target in targets_by_id.get(id, ())]
        return {"shared_targets": targets} if targets else {}

    def child_name(self, name: str) -> str:
        return f"{self.stack}-{name}"

    def node(self, name: str, node: Node, predecessor: pulumi.Resource) -> pulumi.Resource:
        turn = predecessor.id if isinstance(predecessor, AwsReadiness) else None
        version = self.secured.of_node(node.id) if self.secured else NO_SECRETS
        instance = InstanceNode(self.shared, node.id, turn, version, self._granted())
        self.nodes[node.id], self.incarnations[str(node.id)] = instance, instance.incarnation
        return instance.attachment

    def readiness(
        self, name: str, nodes: Sequence[Node], predecessor: pulumi.Resource, whole: bool = False
    ) -> AwsReadiness:
        balancer = self._nlb
        targets = balancer.targets if balancer else {}
        return AwsReadiness(
            name,
            {
                "nodes": [
                    self.nodes[node.id].awaited
                    | ({"targets": targets[node.id]} if targets.get(node.id) else {})
                    for node in nodes
                ],
                "region": self.spec.region,
                "deadline": self.spec.ready_seconds + GRACE,
                "whole": whole,
                "in_turn": self._remembered.served and self.spec.in_turn,
                **self._shared_targets(node.id for node in nodes),
                **self._settings,
            },
            # a target group without a listener has no health
            self.gated_options(predecessor, *([balancer] if balancer else [])),
        )


def _with(
    names: pulumi.Output[dict[int, ProvisionedNames]],
    balancer: pulumi.Output[Any] | None,
    planned: Callable[[Mapping[int, ProvisionedNames], HostOrMarker | None], AwsPlan],
) -> pulumi.Output[AwsPlan]:
    """``planned`` of ``names`` and ``balancer``. `Output.all` refuses maps with numbers as keys."""
    if balancer is None:
        return names.apply(with_run_errors(lambda known_names: planned(known_names, None)))
    return balancer.apply(
        lambda name: names.apply(with_run_errors(lambda known_names: planned(known_names, name)))
    )
