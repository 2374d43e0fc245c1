"""The nodes of a cluster of any placement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi

from earshot.certificates.client import public_properties
from earshot.certificates.target import numbered
from earshot.config.cluster import ClusterSpec
from earshot.config.security import SecuritySpec
from earshot.listeners.model import ClusterPlan, Node, SecurityPlan
from earshot.listeners.security import FOLDER, VALIDATOR_FILE, trusted_by
from earshot.placement.standpoint import Standpoint
from earshot.project import Project
from earshot.validation.contract import Contract
from earshot_pulumi.deployment import ClusterContext, child_name
from earshot_pulumi.gate import AdvertisedListeners
from earshot_pulumi.outputs import applied, once_there
from earshot_pulumi.provider.kind import Inputs, Outputs, Properties
from earshot_pulumi.validation import Validation

if TYPE_CHECKING:
    from earshot_pulumi.certificates import Certificates
    from earshot_pulumi.change_memory import ChangeRecords
    from earshot_pulumi.users import Users


class Brokers(pulumi.ComponentResource):
    """The nodes of a cluster behind their gate; each placement has a subclass."""

    spec: ClusterSpec
    gate: AdvertisedListeners
    cluster_id: pulumi.Output[str]
    ready: pulumi.Resource
    """The resource that exists once all nodes are in sync and users can log in."""
    incarnations: dict[str, pulumi.Output[str]]
    """By node id, a value that changes when the node is replaced or restarted."""
    certificates: Certificates | None = None

    def __init__(
        self,
        kind: str,
        at: ClusterContext,
        spec: ClusterSpec,
        records: ChangeRecords | None = None,
    ) -> None:
        """``records`` are those of the change that these brokers make."""
        super().__init__(f"earshot:{kind}", at.name, {}, at.options())
        self._records = records
        self.stack, self.at, self.root, self.spec = at.name, at, at.folder / "kafka", spec
        self.incarnations = {}
        self._policy = at.policy(spec)
        self._child = pulumi.ResourceOptions(parent=self)

    @property
    def expires(self) -> pulumi.Output[str] | None:
        """The earliest expiry of the cluster's certificates; None without certificates."""
        return None if self.certificates is None else self.certificates.expires

    def create_gate(self, plan: Any, addresses: Any, **facts: Any) -> None:
        """Creates the gate of ``plan``; ``facts`` are arguments of `AdvertisedListeners`."""
        self.gate = AdvertisedListeners(
            self.stack,
            plan,
            self.spec.placement,
            addresses,
            self._child,
            policy=self._policy,
            **facts,
        )

    def gated_options(self, *after: pulumi.Resource) -> pulumi.ResourceOptions:
        """Options of a resource that waits for the gate's approval and for ``after``."""
        return pulumi.ResourceOptions(parent=self.gate, depends_on=list(after))

    def first_predecessor(self, after: pulumi.Resource) -> pulumi.Resource:
        """The resource that precedes the first node, created after ``after``."""
        return self._records.begin(self.gated_options(after)) if self._records else after

    def create_nodes(
        self, plan: ClusterPlan, nodes: Iterable[Node], after: pulumi.Resource
    ) -> None:
        """Creates ``nodes`` one after the other, and then the users.

        Each node waits for the readiness of the one before. At a first start that readiness does
        not wait for Kafka, because all voters must start before one of them is ready. Each
        placement implements `node` and `readiness`.
        """
        last_resource = after
        for node in nodes:
            name = self.child_name(f"{node.roles[0]}-{node.id}")
            last_resource = self.readiness(name, [node], self.node(name, node, last_resource))
        name = self.child_name("cluster")
        self.ready = self.readiness(name, plan.nodes, last_resource, whole=True)
        if self.certificates is not None and (users := self.users()) is not None:
            users_class, access_inputs = users
            self.ready = users_class(
                self.stack,
                self.spec,
                self.root,
                self.cluster_id,
                self.certificates,
                access_inputs,
                self.gated_options(self.ready),
            )
        self.register_outputs({"incarnations": self.incarnations})

    def child_name(self, name: str) -> str:
        """The name in the program of the cluster's resource ``name``."""
        return child_name(self.stack, name)

    def node(self, name: str, node: Node, after: pulumi.Resource) -> pulumi.Resource:
        """The process, container or instance of ``node``, changed after ``after``."""
        raise NotImplementedError

    def readiness(
        self, name: str, nodes: Sequence[Node], after: pulumi.Resource, whole: bool = False
    ) -> pulumi.Resource:
        """Waits for ``nodes``; with ``whole``, these are all nodes of the cluster."""
        raise NotImplementedError

    def users(self) -> tuple[type[Users], Inputs] | None:
        """The class of the users' resource and its inputs that say how to reach the brokers.

        None if the nodes create the users.
        """
        return None

    def register_validation(
        self,
        security: SecurityPlan | None,
        contract: Contract | pulumi.Output[Contract],
        *,
        after: Sequence[pulumi.Resource] = (),
        standpoints: Sequence[Standpoint] | pulumi.Output[Sequence[Standpoint]] = (),
        client_config: Path | None = None,
    ) -> Properties:
        """Registers the validation of ``contract`` and the record of its verdict, and returns the
        cluster's outputs.

        The validation runs from ``standpoints`` (default: this machine), after ``after``, and again
        whenever an incarnation changes.
        ``contract`` may lack the cluster's id. ``client_config`` is a file with credentials for
        listeners that require them.

        Addresses are known in a preview; resources that use them wait until the brokers are ready.
        """
        spec = self.spec
        # a contract also has the listeners that a change removes
        listeners_source = spec if isinstance(contract, pulumi.Output) else contract
        if self.certificates is not None:
            client_config = self.root / FOLDER / VALIDATOR_FILE
        identified = pulumi.Output.all(contract, self.cluster_id).apply(
            lambda values: values[0].identified(values[1]).model_dump(mode="json")
        )
        props = {
            "contract": identified,
            "incarnations": dict(self.incarnations),
            "records": spec.validation.records,
            "deadline": spec.validation.deadline,
            "state_dir": str(self.at.folder),
            "vantages": applied(
                standpoints,
                lambda known_standpoints: [
                    standpoint.model_dump(mode="json") for standpoint in known_standpoints
                ],
            ),
            **self.at.aws.to_props(),
        }
        if client_config is not None:
            props["client_config"] = str(client_config)
        proof = Validation(self.stack, props, self.at.options(depends_on=[self.ready, *after]))
        verdict = proof.verdict_on(identified, self.incarnations)
        if self._records is not None:
            self._records.complete(verdict, self.at.options(depends_on=[proof]))
        return {
            "listeners": tuple(listener.name for listener in listeners_source.listeners),
            "cluster_id": self.cluster_id,
            "bootstrap": once_there(
                self.ready,
                applied(
                    contract,
                    lambda known_contract: {
                        listener.name: listener.bootstrap for listener in known_contract.listeners
                    },
                ),
            ),
            "contract": identified,
            "incarnations": self.incarnations,
            "approved": self.gate.approved,
            "proof": verdict,
            **client_outputs(spec, security, contract, self.root, self.expires),
        }


OUTPUT = "client_properties"


def client_outputs(
    spec: ClusterSpec,
    security: SecurityPlan | None,
    contract: Contract | pulumi.Output[Contract],
    root: Path,
    expires: pulumi.Output[str] | None,
) -> Outputs:
    """The outputs for the clients of a cluster, without secrets; empty without `security`.

    A state may be encrypted with a well-known passphrase. So the outputs have the paths of the
    files with passwords and keys, not their contents.
    ``root`` is the folder of the cluster on this machine, ``expires`` the earliest expiry of a
    certificate. Paths are relative to the project's folder, so that all checkouts have the same.
    """
    if spec.security is None or security is None:
        return {}
    properties_of = partial(_by_user, spec, spec.security)
    project, folder = Project.of_program().root, root / FOLDER
    if folder.is_relative_to(project):
        folder = folder.relative_to(project)
    trusted = trusted_by(security)
    properties = applied(
        contract, lambda known_contract: properties_of(known_contract, folder, trusted)
    )
    return {"certificates_expire": expires, OUTPUT: properties}


def _by_user(
    cluster: ClusterSpec, spec: SecuritySpec, contract: Contract, folder: Path, trusted: str
) -> Properties:
    """Properties by user and listener, with the password's file if the listener needs one."""
    clients: Properties = {}
    for user in spec.user_names:
        password_file = numbered(f"{user}.password", spec.password_numbers.get(user, 1))
        clients[user] = {
            listener.name: {
                "properties": public_properties(
                    folder,
                    trusted,
                    user,
                    cluster.mechanism(listener.name, spec),
                    listener.protocol,
                    listener.bootstrap,
                    certified=cluster.asks_for_certificates(listener.name),
                )
            }
            | ({"password_file": str(folder / password_file)} if listener.protocol.sasl else {})
            for listener in contract.listeners
            if listener.protocol.tls
        }
    return clients
