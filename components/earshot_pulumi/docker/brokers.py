"""The brokers of the `docker` placement: gate, preflight, then the resources of hosts and nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pulumi
import pulumi_docker as docker

from earshot.config.docker import DockerSpec
from earshot.engine.connection import address_of, in_clear
from earshot.listeners.model import ClusterPlan, Node
from earshot.listeners.security import node_name
from earshot.placement.docker import DockerPlan
from earshot.placement.node_container import KEYS, NodeContainer
from earshot_pulumi.brokers import Brokers
from earshot_pulumi.certificates import Certificates
from earshot_pulumi.change_memory import ChangeRecords
from earshot_pulumi.deployment import ClusterContext
from earshot_pulumi.docker import labels
from earshot_pulumi.docker.engine_objects import TargetStack
from earshot_pulumi.docker.host_resources import HostResources, labelled
from earshot_pulumi.docker.keys import DockerKeys, with_versions
from earshot_pulumi.docker.kinds import digest
from earshot_pulumi.docker.preflight import EnginePreflight
from earshot_pulumi.docker.rolling_restart import GRACE
from earshot_pulumi.docker.volume_data import TO_BE_MADE
from earshot_pulumi.outputs import by_urn, plan_input
from earshot_pulumi.properties import write
from earshot_pulumi.provider.kind import Inputs, Properties
from earshot_pulumi.provider.resource import InternalResource
from earshot_pulumi.unknown_inputs import is_marker

if TYPE_CHECKING:
    from earshot_pulumi.docker.users import DockerUsers

OFF = ("init", "privileged", "publish_all_ports", "read_only", "rm", "stdin_open", "tty", "wait")
LOGS = {"max-size": "50m", "max-file": "3"}
MAX_ASKED_BROKERS = 10
"""Maximum number of brokers that are asked about one node. With all brokers, the inputs would grow
with the square of the nodes."""


class DockerStopPreflight(InternalResource):
    """The check before a running container is stopped."""


class DockerReadiness(InternalResource):
    """Starts stopped containers, and waits until their nodes are in sync."""

    incarnation: pulumi.Output[str]


class DockerBrokers(Brokers):
    """The containers of a cluster."""

    spec: DockerSpec

    def __init__(
        self,
        at: ClusterContext,
        spec: DockerSpec,
        planned: DockerPlan,
        *,
        final_plan: ClusterPlan | None = None,
        records: ChangeRecords | None = None,
        unsettled: Sequence[int] = (),
    ) -> None:
        """``final_plan`` is the plan at the end of a change of which ``planned`` is a step.

        ``unsettled`` nodes are first, in their order, so that no other node is stopped before these
        are in sync.
        """
        super().__init__("docker:DockerCluster", at, spec, records)
        name = self.stack
        self._planned, self.plan = planned, planned.plan
        self._target = TargetStack(
            name, "", "", self.plan, planned.containers, planned.hosts, spec.network or ""
        )
        self._host_props = [host.model_dump(mode="json") for host in planned.hosts]
        self.create_gate(
            self.plan,
            {},
            containers={
                id: container.inputs(TO_BE_MADE) for id, container in planned.containers.items()
            },
            certificates=planned.certificates,
        )
        self.preflight = self._preflight(final_plan)
        self.cluster_id = self.preflight.cluster_id
        self._labels = self.preflight.deployment.apply(
            lambda deployment: labelled(labels.of_deployment(name, deployment))
        )
        self._addresses = {
            node.id: self._target.address_of(node.id, self.root) for node in self.plan.nodes
        }
        self._hosts = {
            index: HostResources(
                name,
                planned.hosts[index],
                planned.hosts,
                container,
                self._opts,
                provider=at.provider,
                network_labels=self._labels if spec.network is None else None,
            )
            for index, container in {
                container.host: container for container in planned.containers.values()
            }.items()
        }
        self.certificates = self._issued_certificates()
        self._containers: dict[int, docker.Container] = {}
        ranks = {id: rank for rank, id in enumerate(unsettled)}
        nodes = sorted(self.plan.nodes, key=lambda node: ranks.get(node.id, len(ranks)))
        self.create_nodes(self.plan, nodes, self.first_predecessor(self.preflight))

    def _issued_certificates(self) -> Certificates | None:
        if self.spec.security is None:
            return None
        known_hosts = (host for host in self._planned.hosts if not is_marker(host.engine))
        for host in filter(in_clear, known_hosts):
            pulumi.log.warn(
                f"keys and passwords reach the engine at {address_of(host)} in clear text: use TLS "
                "(`hosts[].cert_path`), or an address that begins with ssh://",
                self,
            )
        return Certificates(self.stack, self.spec.security, self.plan, self.root, self._opts())

    def users(self) -> tuple[type[DockerUsers], Inputs]:
        from earshot_pulumi.docker.users import DockerUsers, access_inputs

        addresses = self._addresses.values()
        return DockerUsers, access_inputs(self.stack, self.spec, self._planned, addresses)

    def _keys(self, node: Node, host: HostResources, name: str) -> DockerKeys | None:
        """The node's key store in a volume of its container; None for a cluster without TLS."""
        if self.certificates is None:
            return None
        container = self._planned.containers[node.id]
        volume = docker.Volume(
            f"{name}-keys",
            name=container.keys,
            driver="local",
            labels=self._labels,
            opts=self._opts(provider=host.provider),
        )
        return DockerKeys(
            name,
            {
                "host": self._host_props[container.host],
                "volume": volume.name,
                "folder": KEYS,
                "image": host.image.image_id,
                "store": node_name(node.id),
                "certificate": self.certificates.of_node(node.id),
                "root": str(self.root),
            },
            self._opts(depends_on=[volume]),
        )

    def _preflight(self, final_plan: ClusterPlan | None) -> EnginePreflight:
        return EnginePreflight(
            self.stack,
            {
                **self._target.to_props(),
                "plan": plan_input(self.plan),
                "last": plan_input(final_plan) if final_plan and final_plan != self.plan else None,
                "configured": self.spec.cluster_id,
                "state_dir": str(self.at.folder),
                "gate": self.gate.approved,
                "remove": self.spec.remove,
            },
            self.gated_options(),
        )

    def _opts(self, **options: Any) -> pulumi.ResourceOptions:
        """Options of a child of the gate; its default ``depends_on`` is the preflight."""
        dependencies = options.pop("depends_on", [self.preflight])
        return pulumi.ResourceOptions(parent=self.gate, depends_on=dependencies, **options)

    def node(self, name: str, node: Node, after: pulumi.Resource) -> docker.Container:
        container = self._planned.containers[node.id]
        host = self._hosts[container.host]
        volume = docker.Volume(
            name,
            name=container.volume,
            driver="local",
            labels=self.cluster_id.apply(
                lambda cluster_id: labelled(
                    labels.of_volume(self.stack, cluster_id, self.plan, node)
                )
            ),
            opts=self._opts(
                provider=host.provider,
                retain_on_delete=self.spec.data == "keep" or None,
                # a change of labels would replace the volume with an empty one
                ignore_changes=["labels", "driver", "driverOpts"],
            ),
        )
        keys = self._keys(node, host, name)
        settings = self._settings(node, host, volume, keys)
        turn = by_urn(after)
        stop = DockerStopPreflight(
            name,
            {
                "place": write(self._addresses[node.id]),
                "hosts": self._host_props,
                "state_dir": str(self.at.folder),
                "settings": digest(settings),
            },
            self._opts(depends_on=[turn]),
        )
        self._containers[node.id] = docker.Container(
            name,
            **settings,
            opts=self._opts(
                provider=host.provider,
                depends_on=[turn, stop, *([keys] if keys else [])],
                delete_before_replace=True,
                hooks=host.hooks,
            ),
        )
        return self._containers[node.id]

    def _settings(
        self, node: Node, host: HostResources, volume: docker.Volume, keys: DockerKeys | None
    ) -> Properties:
        """All inputs of a node's container, with defaults.

        A default that only the engine sets would be a difference at the next update.
        """
        container = self._planned.containers[node.id]
        return {
            "name": container.name,
            "hostname": container.name,
            "image": host.image.image_id,
            "envs": pulumi.Output.secret(
                pulumi.Output.all(self.cluster_id, keys.certificate if keys else "").apply(
                    lambda values: [
                        f"{name}={value}"
                        for name, value in sorted(_variables(container, *values).items())
                    ]
                )
            ),
            "ports": [
                docker.ContainerPortArgs(
                    internal=port.container_port,
                    external=port.host_port,
                    ip=port.host_ip or "0.0.0.0",
                    protocol=port.protocol,
                )
                for port in container.ports
            ],
            "networks_advanced": [
                docker.ContainerNetworksAdvancedArgs(name=host.network, aliases=[container.name])
            ],
            "network_mode": "bridge",
            "volumes": [
                docker.ContainerVolumeArgs(
                    volume_name=volume.name if mount.volume == container.volume else mount.volume,
                    container_path=mount.path,
                    read_only=mount.read_only or None,
                )
                for mount in container.mounts
            ],
            "dns": list(self.spec.dns),
            "healthcheck": docker.ContainerHealthcheckArgs(
                tests=self._addresses[node.id].endpoint.health(),
                interval="10s",
                timeout="10s",
                start_period="1m0s",
                retries=3,
            ),
            "labels": pulumi.Output.all(
                self.preflight.deployment, keys.certificate if keys else ""
            ).apply(
                lambda values: labelled(
                    labels.of_container(self.stack, values[0], self.plan, node, values[1])
                )
            ),
            "restart": "unless-stopped",
            # with True, a refresh finds no ports of a stopped container, which is then replaced;
            # DockerReadiness starts it instead, so that its log and exit status stay
            "must_run": False,
            "start": True,
            "remove_volumes": True,
            "stop_signal": "SIGTERM",
            "stop_timeout": GRACE,
            "destroy_grace_seconds": GRACE,
            "ipc_mode": "private",
            "shm_size": 64,
            "log_driver": "json-file",
            "log_opts": LOGS,
            **dict.fromkeys(OFF, False),
        }

    def readiness(
        self, name: str, nodes: Sequence[Node], after: pulumi.Resource, whole: bool = False
    ) -> DockerReadiness:
        addresses, security = self._addresses, self.spec.security
        askable_brokers = [address for address in addresses.values() if address.can_be_asked]
        users_input = {}
        if security is not None:
            mechanisms = ",".join(self.spec.mechanisms(security))
            users = {**self.users()[1], "root": str(self.root), "mechanism": mechanisms}
            users_input = {"users": users}
        readiness = DockerReadiness(
            name,
            {
                "nodes": [
                    {
                        "place": write(addresses[node.id]),
                        "container": self._containers[node.id].id,
                    }
                    for node in nodes
                ],
                "voters": [write(addresses[node.id]) for node in self.plan.controllers],
                "tellers": [
                    write(broker)
                    for broker in (
                        askable_brokers if whole else askable_brokers[:MAX_ASKED_BROKERS]
                    )
                ],
                "incarnations": dict(self.incarnations) if whole else {},
                "cluster_id": self.cluster_id,
                "whole": whole,
                "state_dir": str(self.at.folder),
                **users_input,
            },
            self.gated_options(after),
        )
        if not whole:
            self.incarnations[str(nodes[0].id)] = readiness.incarnation
        return readiness


def _variables(container: NodeContainer, cluster_id: str, certificate: str) -> dict[str, str]:
    """The environment of a node; ``certificate`` is a fingerprint, empty for none."""
    variables = container.variables(cluster_id)
    return with_versions(variables, certificate) if certificate else variables
