"""The nodes of a cluster, whatever kind of host they are on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi

from earshot.config.cluster import ClusterSpec
from earshot.listeners.model import ClusterPlan, Node, SecurityPlan
from earshot.placement.standpoint import Standpoint
from earshot.validation.contract import Contract
from earshot_pulumi.client_output import client_outputs
from earshot_pulumi.deployment import ClusterContext, child_name
from earshot_pulumi.gate import AdvertisedListeners
from earshot_pulumi.outputs import applied, once_there
from earshot_pulumi.validation import Validation

if TYPE_CHECKING:
    from earshot_pulumi.certificates import Certificates
    from earshot_pulumi.users import Users


Begin = Callable[[pulumi.ResourceOptions], pulumi.Resource]


class Brokers(pulumi.ComponentResource):
    """The nodes of a cluster behind their gate; each kind of host has its own."""

    spec: ClusterSpec
    gate: AdvertisedListeners
    cluster_id: pulumi.Output[str]
    ready: pulumi.Resource
    """Known once all nodes are in sync, and users can log in."""
    incarnations: dict[str, pulumi.Output[str]]
    """By node id, what changes when the node is replaced or restarted."""
    certificates: Certificates | None = None

    def __init__(
        self, kind: str, at: ClusterContext, spec: ClusterSpec, begin: Begin | None = None
    ) -> None:
        """``begin`` makes what must be there before the first node is touched."""
        super().__init__(f"earshot:{kind}", at.name, {}, at.options())
        self._begin = begin
        self.stack, self.at, self.root, self.spec = at.name, at, at.folder / "kafka", spec
        self.incarnations = {}
        self._policy = at.policy(spec)
        self._child = pulumi.ResourceOptions(parent=self)

    @property
    def expires(self) -> pulumi.Output[str] | None:
        """When the first of the cluster's certificates ends; None where it has none."""
        return None if self.certificates is None else self.certificates.expires

    def gated(self, plan: Any, addresses: Any, **facts: Any) -> None:
        """Makes the gate of ``plan``; ``facts`` are those of `AdvertisedListeners`."""
        own = (self.spec.placement, addresses, self._child)
        self.gate = AdvertisedListeners(self.stack, plan, *own, policy=self._policy, **facts)

    def below(self, *after: pulumi.Resource) -> pulumi.ResourceOptions:
        """Options of a resource that waits for the gate's approval and for ``after``."""
        return pulumi.ResourceOptions(parent=self.gate, depends_on=list(after))

    def begun(self, after: pulumi.Resource) -> pulumi.Resource:
        """What must be there before the first node is touched, made once ``after`` is there."""
        return after if self._begin is None else self._begin(self.below(after))

    def in_turn(self, plan: ClusterPlan, nodes: Iterable[Node], after: pulumi.Resource) -> None:
        """Makes ``nodes`` one after the other, each once the one before is ready; then the users.

        `node` and `readiness` are what each kind of host does.
        """
        last = after
        for node in nodes:
            name = self.child_name(f"{node.roles[0]}-{node.id}")
            last = self.readiness(name, [node], self.node(name, node, last))
        self.ready = self.readiness(self.child_name("cluster"), plan.nodes, last, whole=True)
        if self.certificates is not None and (made := self.users()) is not None:
            users, reached = made
            own = (self.spec, self.root, self.cluster_id, self.certificates)
            self.ready = users(self.stack, *own, reached, self.below(self.ready))
        self.register_outputs({"incarnations": self.incarnations})

    def child_name(self, name: str) -> str:
        """The name in the program of the resource that is called ``name`` in the cluster."""
        return child_name(self.stack, name)

    def node(self, name: str, node: Node, after: pulumi.Resource) -> pulumi.Resource:
        """The process, container or instance of ``node``, touched once ``after`` is made."""
        raise NotImplementedError

    def readiness(
        self, name: str, nodes: Sequence[Node], after: pulumi.Resource, whole: bool = False
    ) -> pulumi.Resource:
        """Waits for ``nodes``, with ``whole`` for all of the cluster."""
        raise NotImplementedError

    def users(self) -> tuple[type[Users], Mapping[str, Any]] | None:
        """The class of the users' resource, and from where and how brokers are reached; None where
        the nodes make the users."""
        return None

    def proved(
        self,
        security: SecurityPlan | None,
        contract: Contract | pulumi.Output[Contract],
        remember: Callable[[pulumi.ResourceOptions], pulumi.Resource],
        *,
        after: Sequence[pulumi.Resource] = (),
        standpoints: Sequence[Standpoint] | pulumi.Output[Sequence[Standpoint]] = (),
        client_config: Path | None = None,
    ) -> dict[str, Any]:
        """The outputs of the cluster, whose ``contract`` is validated from ``standpoints``.

        Without standpoints, it is validated from here; again whenever one of the incarnations
        changes. ``contract`` may be without the cluster's id. The validation waits for ``after``,
        and ``remember`` makes what waits for it. ``client_config`` is a file with credentials, for
        listeners that ask for some.

        Addresses are known in a preview. What uses them waits until the brokers are ready.
        """
        spec = self.spec
        known = spec if isinstance(contract, pulumi.Output) else contract  # those that leave, too
        access = client_outputs(spec, security, contract, self.root, self.expires)
        identified = pulumi.Output.all(contract, self.cluster_id).apply(
            lambda it: it[0].identified(it[1]).model_dump(mode="json")
        )
        props = {
            "contract": identified,
            "incarnations": dict(self.incarnations),
            "records": spec.validation.records,
            "deadline": spec.validation.deadline,
            "state_dir": str(self.at.folder),
            "vantages": applied(
                standpoints, lambda known: [item.model_dump(mode="json") for item in known]
            ),
            "verdict": None,
            **self.at.aws.to_props(),
        }
        if config := access.file or client_config:
            props["client_config"] = str(config)
        proof = Validation(self.stack, props, self.at.options(depends_on=[self.ready, *after]))
        remember(self.at.options(depends_on=[proof]))
        return {
            "listeners": tuple(item.name for item in known.listeners),
            "cluster_id": self.cluster_id,
            "bootstrap": once_there(
                self.ready,
                applied(contract, lambda it: {one.name: one.bootstrap for one in it.listeners}),
            ),
            "contract": identified,
            "incarnations": self.incarnations,
            "approved": self.gate.approved,
            "proof": proof.verdict,
            **access.outputs,
        }
