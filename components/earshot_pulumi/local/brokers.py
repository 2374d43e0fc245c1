"""The brokers of the `local` placement: gate, preflight, nodes in turn, a last readiness check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi

from earshot.config.local import LocalSpec
from earshot.listeners.model import ClusterPlan, Node
from earshot.listeners.render import server_properties
from earshot.placement.local import LocalPlan
from earshot_pulumi.deployment import child_name
from earshot_pulumi.gate import AdvertisedListeners
from earshot_pulumi.local import access, quorum
from earshot_pulumi.outputs import kept
from earshot_pulumi.provider.internal import InternalResource

if TYPE_CHECKING:
    from earshot_pulumi.local.secured import LocalCertificates


class LocalPreflight(InternalResource):
    """Checks before any node is touched; also decides the cluster's id."""

    FORMER_NAMES = ("LocalPreflight", "LocalGround")

    cluster_id: pulumi.Output[str]


class LocalNode(InternalResource):
    """One Kafka process of this machine."""

    pid: pulumi.Output[int]
    incarnation: pulumi.Output[str]


class LocalReadiness(InternalResource):
    """Waits until brokers are in sync."""


class LocalBrokers(pulumi.ComponentResource):
    """The processes of a cluster on this machine, behind its gate."""

    def __init__(
        self,
        name: str,
        spec: LocalSpec,
        local: LocalPlan,
        opts: pulumi.ResourceOptions | None = None,
        *,
        policy: Mapping[str, Any] | None,
        wanted: ClusterPlan | None = None,
        client_config: Path | None = None,
    ) -> None:
        """``name`` is the cluster's full name.

        ``policy`` is the gate's configuration; None turns the gate off.

        ``wanted`` is the plan of a later step, where ``local`` is not the last of a change.

        ``client_config`` is a file of client properties, for brokers that ask for credentials.
        """
        super().__init__("earshot:local:LocalCluster", name, {}, opts)
        self._name, self._spec, self._local = name, spec, local
        self._access = {access.KEY: str(client_config)} if client_config else {}
        self.plan = local.plan
        self.gate = gate = AdvertisedListeners(
            name,
            self.plan,
            spec.placement,
            {},
            pulumi.ResourceOptions(parent=self),
            policy=policy,
            certificates=local.certificates,
        )
        self._preflight = LocalPreflight(
            name,
            {
                "plan": kept(self.plan),
                "root": str(local.root),
                "state_dir": str(local.root.parent),
                "data": spec.data,
                "remove": spec.remove,
                "wanted": kept(wanted) if wanted and wanted != self.plan else None,
                "gate": gate.approved,
                "cluster_id": None,
                **self._access,
            },
            pulumi.ResourceOptions(parent=gate),
        )
        self.cluster_id = self._preflight.cluster_id
        self.incarnations: dict[str, pulumi.Output[str]] = {}
        last: pulumi.Resource = self._preflight
        self._certificates: LocalCertificates | None = None
        if spec.security is not None:
            from earshot_pulumi.local.secured import LocalCertificates  # slow to import

            beneath = pulumi.ResourceOptions(parent=gate, depends_on=[last])
            last = self._certificates = LocalCertificates(
                name, spec.security, self.plan, local.root, beneath
            )
        for node in quorum.ended_first(local.root, self.plan.nodes):
            last = self._node(node, gate, after=last)
        self.ready: pulumi.Resource = self._readiness(
            "cluster", self.plan.nodes, gate, last, whole=True
        )
        if self._certificates is not None:
            from earshot_pulumi.local.users import LocalUsers, reached

            self.ready = LocalUsers(
                name,
                spec,
                local.root,
                self.cluster_id,
                self._certificates,
                reached(self.plan),
                pulumi.ResourceOptions(parent=gate, depends_on=[self.ready]),
            )
        self.register_outputs({"incarnations": self.incarnations})

    @property
    def expires(self) -> pulumi.Output[str] | None:
        """When the first of the cluster's certificates ends; None where it has none."""
        return None if self._certificates is None else self._certificates.expires

    def _node(
        self, node: Node, gate: AdvertisedListeners, after: pulumi.Resource
    ) -> pulumi.Resource:
        """The readiness of a node, made with its process; the next node waits for it."""
        certificate = {}
        if self._certificates is not None:
            # a restart: Kafka 4.1.1 reloads listeners, but not what fetches the quorum's log, see
            # docs/security.md
            certificate["certificate"] = self._certificates.of_node(node.id)
        resource = LocalNode(
            child_name(self._name, f"{node.roles[0]}-{node.id}"),
            {
                "node_id": node.id,
                "root": str(self._local.root),
                "properties": pulumi.Output.secret(server_properties(self.plan, node)),
                "heap": self._spec.heap,
                "kafka_version": self.plan.kafka_version,
                "cluster_id": self.cluster_id,
                "pid": None,
                "incarnation": None,
                **certificate,
                **self._access,
            },
            pulumi.ResourceOptions(parent=gate, depends_on=[after]),
        )
        self.incarnations[str(node.id)] = resource.incarnation
        nodes = [node] if node.is_broker else []
        return self._readiness(f"{node.roles[0]}-{node.id}", nodes, gate, resource)

    def _readiness(
        self,
        name: str,
        nodes: Sequence[Node],
        gate: AdvertisedListeners,
        after: pulumi.Resource,
        whole: bool = False,
    ) -> LocalReadiness:
        ids = [node.id for node in nodes]
        return LocalReadiness(
            child_name(self._name, name),
            {
                "root": str(self._local.root),
                "nodes": ids,
                "brokers": {str(it.id): _address(self.plan, it) for it in nodes if it.is_broker},
                "incarnations": {str(id): self.incarnations[str(id)] for id in ids},
                "cluster_id": self.cluster_id,
                "whole": whole,
                **self._access,
            },
            pulumi.ResourceOptions(parent=gate, depends_on=[after]),
        )


def _address(plan: ClusterPlan, broker: Node) -> str:
    """Where the other brokers reach this one."""
    listener = broker.listener(plan.inter_broker)
    assert listener is not None  # the spec holds the inter-broker listener for every broker
    return str(listener.advertised)
