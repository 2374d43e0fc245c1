"""The `docker` placement as a component: gate, ground, then per host and per node what it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pulumi
import pulumi_docker as docker
from pulumi.dynamic import Resource

from components.docker import labels
from components.docker.ground import Wanted
from components.docker.leftovers import clearing
from components.docker.place import Place
from components.docker.providers import GRACE, GroundProvider, ReadinessProvider
from components.gate import AdvertisedListeners, GateSeal
from earshot.engine import address_of
from earshot.listeners.model import Node
from earshot.placement import DockerPlan, NodeContainer
from earshot.spec.docker import DockerHost, DockerSpec

LOGS = {"max-size": "50m", "max-file": "3"}


class DockerGround(Resource, module="earshot", name="DockerGround"):
    """What must hold on the engines before anything is touched."""

    deployment: pulumi.Output[str]
    """A word that the labels of this deployment's containers and networks carry."""


class DockerReadiness(Resource, module="earshot", name="DockerReadiness"):
    """Sees to it that containers run, and waits until their nodes are in sync."""

    incarnation: pulumi.Output[str]


class _Host:
    """What one Docker host gets beside its containers."""

    def __init__(
        self,
        cluster: DockerCluster,
        host: DockerHost,
        container: NodeContainer,
        opts: Callable[..., pulumi.ResourceOptions],
    ) -> None:
        self.hooks = clearing(host)
        certificates = host.cert_path and str(Path(host.cert_path).expanduser())
        self.provider = docker.Provider(
            host.name, host=address_of(host), cert_path=certificates, opts=opts()
        )
        self.network = docker.Network(
            host.name,
            name=container.network,
            driver="bridge",
            labels=cluster.ground.deployment.apply(
                lambda own: _labels(labels.of_network(cluster.stack, own))
            ),
            opts=opts(provider=self.provider, hooks=self.hooks),
        )
        self.image = docker.RemoteImage(
            host.name,
            name=container.image,
            keep_locally=True,
            opts=opts(provider=self.provider),
        )


class DockerCluster(pulumi.ComponentResource):
    """A Kafka cluster of containers, behind its gate."""

    def __init__(
        self,
        name: str,
        spec: DockerSpec,
        planned: DockerPlan,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``name`` is the stack's: names of volumes and networks come from it."""
        super().__init__("earshot:docker:DockerCluster", name, {}, opts)
        self.stack, self._spec, self._planned = name, spec, planned
        self.plan = planned.plan
        self._gate = AdvertisedListeners(
            name,
            self.plan,
            spec.placement,
            {},
            pulumi.ResourceOptions(parent=self),
            containers={id: item.inputs() for id, item in planned.containers.items()},
        )
        self.ground = self._lay_ground()
        self._places = {node.id: self._place(node) for node in self.plan.nodes}
        self._hosts: dict[int, _Host] = {}
        self.incarnations: dict[str, pulumi.Output[str]] = {}
        self._containers: dict[int, docker.Container] = {}
        last: pulumi.Resource = self.ground
        for node in self.plan.nodes:
            last = self._node(node, after=last)
        self.ready = self._readiness("cluster", self.plan.nodes, last, whole=True)
        self.register_outputs({"incarnations": self.incarnations})

    def _lay_ground(self) -> DockerGround:
        sealed: pulumi.Input[str] = "off"
        if self._spec.gate == "required":
            sealed = GateSeal(self.stack, self.plan, self._gate).digest
        else:
            pulumi.log.warn("gate: off - nobody has judged the advertised listeners", self)
        planned = self._planned
        wanted = Wanted(self.stack, "", self.plan, planned.containers, planned.hosts)
        return DockerGround(
            GroundProvider(),
            self.stack,
            {**wanted.to_props(), "gate": sealed, "deployment": None},
            pulumi.ResourceOptions(parent=self._gate),
        )

    def _place(self, node: Node) -> Place:
        container = self._planned.containers[node.id]
        return Place.of(self.plan, node, container, self._planned.hosts[container.host])

    def _opts(self, **options: Any) -> pulumi.ResourceOptions:
        """Nothing is made on an engine before the ground was found good."""
        after = options.pop("depends_on", [self.ground])
        return pulumi.ResourceOptions(parent=self._gate, depends_on=after, **options)

    def _host(self, container: NodeContainer) -> _Host:
        if container.host not in self._hosts:
            host = self._planned.hosts[container.host]
            self._hosts[container.host] = _Host(self, host, container, self._opts)
        return self._hosts[container.host]

    def _node(self, node: Node, after: pulumi.Resource) -> pulumi.Resource:
        """The node and its readiness; a change waits here before the next node is touched."""
        container = self._planned.containers[node.id]
        host, name = self._host(container), f"{node.roles[0]}-{node.id}"
        volume = docker.Volume(
            name,
            name=container.volume,
            driver="local",
            labels=_labels(labels.of_volume(self.stack, self.plan, node)),
            opts=self._opts(
                provider=host.provider,
                retain_on_delete=self._spec.data == "keep",
                # a volume with other labels would be another volume, and an empty one
                ignore_changes=["labels", "driver", "driverOpts"],
            ),
        )
        self._containers[node.id] = docker.Container(
            name,
            **self._settings(node, host, volume),
            opts=self._opts(
                provider=host.provider,
                depends_on=[after],
                delete_before_replace=True,
                hooks=host.hooks,
            ),
        )
        return self._readiness(name, (node,), self._containers[node.id])

    def _settings(self, node: Node, host: _Host, volume: docker.Volume) -> dict[str, Any]:
        """All inputs of a node's container, defaults too: what is not said may be said by the
        engine, and then a second update would find a difference."""
        container = self._planned.containers[node.id]
        return {
            "name": container.name,
            "hostname": container.name,
            "image": host.image.image_id,
            "envs": [f"{key}={value}" for key, value in sorted(container.environment.items())],
            "ports": [
                docker.ContainerPortArgs(
                    internal=item.container_port,
                    external=item.host_port,
                    ip=item.host_ip or "0.0.0.0",
                    protocol=item.protocol,
                )
                for item in container.ports
            ],
            "networks_advanced": [
                docker.ContainerNetworksAdvancedArgs(
                    name=host.network.name, aliases=[container.name]
                )
            ],
            "network_mode": "bridge",
            "volumes": [
                docker.ContainerVolumeArgs(volume_name=volume.name, container_path=node.log_dir)
            ],
            "dns": list(self._spec.dns),
            "healthcheck": docker.ContainerHealthcheckArgs(
                tests=self._places[node.id].door.health(),
                interval="10s",
                timeout="10s",
                start_period="1m0s",
                retries=3,
            ),
            "labels": self.ground.deployment.apply(
                lambda own: _labels(labels.of_container(self.stack, own, self.plan, node))
            ),
            "restart": "unless-stopped",
            "must_run": True,
            "start": True,
            "wait": False,
            "rm": False,
            "remove_volumes": True,
            "stop_signal": "SIGTERM",
            "stop_timeout": GRACE,
            "destroy_grace_seconds": GRACE,
            "init": False,
            "privileged": False,
            "publish_all_ports": False,
            "read_only": False,
            "stdin_open": False,
            "tty": False,
            "ipc_mode": "private",
            "shm_size": 64,
            "log_driver": "json-file",
            "log_opts": LOGS,
        }

    def _readiness(
        self, name: str, nodes: tuple[Node, ...], after: pulumi.Resource, whole: bool = False
    ) -> DockerReadiness:
        places = self._places
        ready = DockerReadiness(
            ReadinessProvider(),
            name,
            {
                "nodes": [
                    {"place": places[it.id].to_props(), "container": self._containers[it.id].id}
                    for it in nodes
                ],
                "voters": [places[it.id].to_props() for it in self.plan.controllers],
                "tellers": [it.to_props() for it in places.values() if it.can_tell],
                "incarnations": dict(self.incarnations) if whole else {},
                "whole": whole,
                "incarnation": None,
            },
            pulumi.ResourceOptions(parent=self._gate, depends_on=[after]),
        )
        if not whole:
            self.incarnations[str(nodes[0].id)] = ready.incarnation
        return ready


def _labels(values: Mapping[str, str]) -> Any:
    return [{"label": key, "value": value} for key, value in sorted(values.items())]
