"""The brokers of the `local` placement: gate, preflight, each node in turn, final readiness."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pulumi

from earshot.config.local import LocalSpec
from earshot.listeners.model import ClusterPlan, Node
from earshot.listeners.render import server_properties
from earshot.placement.local import LocalPlan
from earshot_pulumi.brokers import Brokers
from earshot_pulumi.certificates import Certificates
from earshot_pulumi.change_memory import ChangeRecords
from earshot_pulumi.deployment import ClusterContext
from earshot_pulumi.local import access
from earshot_pulumi.local.preflight import in_order
from earshot_pulumi.outputs import plan_input
from earshot_pulumi.provider.kind import Inputs
from earshot_pulumi.provider.resource import InternalResource

if TYPE_CHECKING:
    from earshot_pulumi.local.users import LocalUsers


class LocalPreflight(InternalResource):
    """Checks before any node changes. Also decides the cluster's id."""

    FORMER_NAMES = ("LocalPreflight", "LocalGround")

    cluster_id: pulumi.Output[str]


class LocalCertificates(Certificates):
    """The authority of a stack on this machine, and the certificates that it has issued."""

    FORMER_NAMES = ("Certificates",)


class LocalNode(InternalResource):
    """One Kafka process of this machine."""

    pid: pulumi.Output[int]
    incarnation: pulumi.Output[str]


class LocalReadiness(InternalResource):
    """Waits until brokers are in sync."""


class LocalBrokers(Brokers):
    """The processes of a cluster on this machine."""

    def __init__(
        self,
        at: ClusterContext,
        spec: LocalSpec,
        local: LocalPlan,
        *,
        final_plan: ClusterPlan | None = None,
        records: ChangeRecords | None = None,
        client_config: Path | None = None,
    ) -> None:
        """``final_plan`` is the plan at the end of a change of which ``local`` is a step.

        ``client_config`` is a file of client properties, for brokers that require credentials.
        """
        super().__init__("local:LocalCluster", at, spec, records)
        self.root = local.root
        self._heap, self.plan = spec.heap, local.plan
        self._access = {access.KEY: str(client_config)} if client_config else {}
        self.create_gate(self.plan, {}, certificates=local.certificates)
        preflight = LocalPreflight(
            self.stack,
            {
                "plan": plan_input(self.plan),
                "root": str(local.root),
                "data": spec.data,
                "remove": spec.remove,
                "wanted": plan_input(final_plan)
                if final_plan and final_plan != self.plan
                else None,
                "gate": self.gate.approved,
                **self._access,
            },
            self.gated_options(),
        )
        self.cluster_id = preflight.cluster_id
        last_resource: pulumi.Resource = preflight
        if spec.security is not None:
            last_resource = self.certificates = LocalCertificates(
                self.stack, spec.security, self.plan, local.root, self.gated_options(last_resource)
            )
        nodes = in_order(local.root, self.plan.nodes)
        self.create_nodes(self.plan, nodes, self.first_predecessor(last_resource))

    def node(self, name: str, node: Node, after: pulumi.Resource) -> LocalNode:
        certificate_input = {}
        if self.certificates is not None:
            # a new certificate restarts the node: Kafka 4.1.1 reloads it for listeners, but not
            # for fetching the quorum's log, see docs/certificates.md
            certificate_input["certificate"] = self.certificates.of_node(node.id)
        resource = LocalNode(
            name,
            {
                "node_id": node.id,
                "root": str(self.root),
                "properties": pulumi.Output.secret(server_properties(self.plan, node)),
                "heap": self._heap,
                "kafka_version": self.plan.kafka_version,
                "cluster_id": self.cluster_id,
                **certificate_input,
                **self._access,
            },
            pulumi.ResourceOptions.merge(
                self.gated_options(after), pulumi.ResourceOptions(delete_before_replace=True)
            ),
        )
        self.incarnations[str(node.id)] = resource.incarnation
        return resource

    def readiness(
        self, name: str, nodes: Sequence[Node], after: pulumi.Resource, whole: bool = False
    ) -> LocalReadiness:
        ids = [node.id for node in nodes if node.is_broker or whole]
        return LocalReadiness(
            name,
            {
                "root": str(self.root),
                "nodes": ids,
                "incarnations": {str(id): self.incarnations[str(id)] for id in ids},
                "cluster_id": self.cluster_id,
                "whole": whole,
                **self._access,
            },
            self.gated_options(after),
        )

    def users(self) -> tuple[type[LocalUsers], Inputs]:
        from earshot_pulumi.local.users import LocalUsers, access_inputs

        return LocalUsers, access_inputs(self.plan)
