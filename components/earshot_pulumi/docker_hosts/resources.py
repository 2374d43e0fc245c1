"""The resources of Docker hosts on EC2: keys, and per host an interface, volume and instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws

from earshot.aws.roles import docker_host_policy
from earshot.config.aws_docker_hosts import ENGINE_PORT, HOSTS, DockerHostsSpec
from earshot.config.aws_sections import Architecture
from earshot.facts.security_groups import Ingress, Members, SecurityGroup
from earshot.user_data.boot import ssm_report, ssm_secret
from earshot.user_data.docker_host import DockerHost, docker_host_user_data
from earshot.user_data.render import digest
from earshot_pulumi.aws.instances import Profile, SharedArgs, attached, instance, report_resource
from earshot_pulumi.aws.network import NetworkFacts, SecurityGroups
from earshot_pulumi.aws.tags import tags
from earshot_pulumi.aws_settings import StackSettings
from earshot_pulumi.change_memory import resources
from earshot_pulumi.docker_hosts.engine_ready import DockerEngineReady, DockerHostImages
from earshot_pulumi.docker_hosts.keys import DockerHostKeys, client_folder
from earshot_pulumi.docker_hosts.turns import DockerHostTurn
from earshot_pulumi.outputs import once, with_run_errors
from earshot_pulumi.provider.kind import Properties
from earshot_pulumi.provider.resource import outputs_of, types_of


def groups_of(spec: DockerHostsSpec) -> tuple[SecurityGroup, ...]:
    """The group of the hosts: engines for deployers, published ports for hosts and clients."""
    rules = [
        Ingress(spec.first_port, spec.last_port, Members(HOSTS), "Brokers on other hosts"),
        *(
            Ingress(ENGINE_PORT, ENGINE_PORT, members, "Docker engine, with TLS, for deployers")
            for members in spec.admitted_deployers
        ),
        *(
            Ingress(spec.first_port, spec.last_port, members, "Published ports")
            for members in (*spec.admitted_deployers, *spec.admitted_clients)
        ),
    ]
    return (SecurityGroup(HOSTS, tuple(rules)),)


def parameter(name: str, suffix: str) -> str:
    """The name of the SSM parameter ``suffix`` of the hosts ``name``."""
    return f"/earshot/{name}/docker/{suffix}"


@dataclass(frozen=True)
class HostInputs(SharedArgs):
    """The inputs that all hosts of a component share."""

    stack: str
    """The component's full name."""
    spec: DockerHostsSpec
    folder: Path
    network: NetworkFacts
    images: Mapping[Architecture, str]
    component: pulumi.Resource
    answered: frozenset[str] = frozenset()
    """The resource names of hosts whose engine has answered an earlier update."""
    settings: StackSettings = field(default_factory=StackSettings)

    def opts(self, *dependencies: pulumi.Resource, **options: Any) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self.component, depends_on=[*dependencies], **options)


def answered(name: str) -> frozenset[str]:
    """The resource names of those hosts of ``name`` whose engine answered an earlier update.

    Raises EarshotError.
    """
    hosts = outputs_of(resources(), *types_of("DockerEngineReady"))
    return frozenset(host for host in hosts if host.startswith(f"{name}-"))


class DockerHostGroup:
    """All hosts of a component."""

    ready: Mapping[str, DockerEngineReady]
    hosts: pulumi.Output[list[dict[str, str]]]
    """The input `hosts` of a `DockerCluster`."""
    instance_ids: Mapping[str, pulumi.Output[str]]

    def __init__(self, shared: HostInputs) -> None:
        self._shared, spec = shared, shared.spec
        child = pulumi.ResourceOptions(parent=shared.component)
        groups = SecurityGroups(shared.stack, groups_of(spec), shared.network.vpc_id, child)
        self._group = groups.ids[HOSTS]
        self.interfaces = {host: self._interface(host) for host in spec.host_zones}
        self._keys = self._issued_keys()
        self._image_list = self._images()
        self._pulled_images: dict[str, DockerHostImages] = {}
        self.ready, self.instance_ids = {}, {}
        existing_hosts = [
            host for host in spec.host_zones if self._full_name(host) in shared.answered
        ]
        existing_hosts = existing_hosts if spec.in_turn else []
        new_hosts = [host for host in spec.host_zones if host not in existing_hosts]
        for host in new_hosts:
            self._make(host, [], [])
        predecessors: list[pulumi.Resource] = [self.ready[host] for host in new_hosts]
        for host in existing_hosts:
            self._make(host, existing_hosts, predecessors)
            predecessors = [self.ready[host]]
        self.hosts = pulumi.Output.all(*(self._host_output(host) for host in spec.host_zones))

    def _interface(self, host: str) -> aws.ec2.NetworkInterface:
        shared, full_name = self._shared, self._full_name(host)
        return aws.ec2.NetworkInterface(
            # so the instance waits, too: at its boot it needs routes
            **shared.common_args(
                full_name,
                *shared.network.routes,
                protect=shared.spec.deletion_protection or None,
            ),
            subnet_id=shared.network.subnets[shared.spec.host_zones[host], False],
            security_groups=[self._group],
            description=f"Docker host {host} of {shared.stack}",
        )

    def _issued_keys(self) -> DockerHostKeys:
        shared = self._shared
        names: Properties = {
            host: [interface.private_dns_name, interface.private_ip]
            for host, interface in self.interfaces.items()
        }
        props = {
            "name": shared.stack,
            "folder": str(shared.folder),
            "region": shared.spec.region,
            "tags": tags(shared.stack, f"{shared.stack}-keys"),
            "authority": parameter(shared.stack, "authority"),
            "parameters": {host: self._key_parameter(host) for host in shared.spec.host_zones},
            "hosts": names,
            **shared.settings.to_props(),
        }
        return DockerHostKeys(f"{shared.stack}-keys", props, shared.opts())

    def _images(self) -> aws.ssm.Parameter | None:
        """The parameter with the images that hosts pull; None without images.

        They are not in the user data, so that another image does not replace the instance.
        """
        shared = self._shared
        if not shared.spec.images:
            return None
        return aws.ssm.Parameter(
            **shared.common_args(f"{shared.stack}-images"),
            name=self._images_parameter,
            type="String",
            insecure_value=" ".join(shared.spec.images),
            description=f"Images that the Docker hosts of {shared.stack} pull",
        )

    def _make(
        self, host: str, engine_hosts: Sequence[str], predecessors: Sequence[pulumi.Resource]
    ) -> None:
        """The resources of ``host``. Its instance changes after ``predecessors``, when the brokers
        on the other ``engine_hosts`` are in sync."""
        shared, full_name = self._shared, self._full_name(host)
        spec, zone = shared.spec, shared.spec.host_zones[host]
        report = report_resource(
            shared,
            full_name,
            parameter(shared.stack, f"{host}/report"),
            f"Docker host {host} of {shared.stack}",
        )
        volume = self._volume(host)
        user_data = pulumi.Output.all(
            self.interfaces[host].private_ip,
            volume.id,
            report.name,
            self._keys.certificate,
            self._keys.versions.apply(lambda versions: versions[host]),
        ).apply(with_run_errors(lambda values: docker_host_user_data(self._host(host, *values))))
        settings = spec.instance_of(host)
        policy = report.arn.apply(
            lambda arn: docker_host_policy(
                arn, self._key_parameter(host), self._images_parameter, spec.ecr_images
            )
        )
        turn = DockerHostTurn(
            full_name,
            {
                "host": host,
                "hosts": [self._engine(engine_host) for engine_host in engine_hosts],
                "wanted": pulumi.Output.all(
                    user_data.apply(digest), settings.type, settings.root_gib, settings.ami or ""
                ),
                "arch": settings.arch,
                "answered": full_name in shared.answered,
                "seconds": spec.ready_seconds,
            },
            shared.opts(*predecessors),
        )
        machine = instance(
            shared,
            full_name,
            settings,
            zone,
            self.interfaces[host].id,
            Profile(shared, full_name, policy),
            user_data,
            [turn],
            protected=spec.deletion_protection,
        )
        attachment = attached(shared, full_name, volume.id, machine)
        self.instance_ids = {**self.instance_ids, host: machine.id}
        boot = user_data.apply(lambda text: f"{digest(text)[:16]} {settings.type}")
        props = {
            **self._engine(host),
            "instance": machine.id,
            "boot": boot,
            "seconds": spec.ready_seconds,
            "report": report.name,
            "region": spec.region,
            **shared.settings.to_props(),
        }
        ready = DockerEngineReady(full_name, props, shared.opts(attachment))
        self.ready = {**self.ready, host: ready}
        if self._image_list is not None:
            image_inputs = {
                **{key: props[key] for key in ("name", "engine", "cert_path", "instance")},
                "images": list(spec.images),
                "parameter": self._image_list.name,
                "seconds": spec.ready_seconds,
                "report": report.name,
                "region": spec.region,
                **shared.settings.to_props(),
            }
            self._pulled_images[host] = DockerHostImages(
                full_name, image_inputs, shared.opts(ready)
            )

    def _engine(self, host: str) -> Properties:
        """The fields that `host_of` reads."""
        address = self.interfaces[host].private_ip
        return {
            "name": host,
            "engine": pulumi.Output.concat("tcp://", address, f":{ENGINE_PORT}"),
            "cert_path": str(client_folder(self._shared.folder)),
        }

    def _host(
        self, host: str, address: str, volume: str, report: str, authority: str, version: str
    ) -> DockerHost:
        region, bridge = self._shared.spec.region, self._shared.spec.bridge
        assert bridge is not None  # the spec refuses networks without room for a bridge
        return DockerHost(
            name=host,
            address=address,
            volume=volume,
            authority=authority,
            version=version[:16],
            fetch=ssm_secret("server.pem", self._key_parameter(host), region).command,
            report=ssm_report(report, region),
            bridge=bridge,
            registries=tuple(sorted({image.registry for image in self._shared.spec.ecr_images})),
            images=ssm_secret("images", self._images_parameter, region).command,
        )

    def _volume(self, host: str) -> aws.ebs.Volume:
        shared, settings = self._shared, self._shared.spec.volume
        return aws.ebs.Volume(
            **shared.common_args(
                self._full_name(host),
                protect=shared.spec.deletion_protection or None,
                retain_on_delete=shared.spec.data == "keep" or None,
            ),
            availability_zone=shared.spec.host_zones[host],
            size=settings.size_gib,
            type=settings.type,
            iops=settings.iops,
            throughput=settings.throughput,
            encrypted=True,
        )

    def _host_output(self, host: str) -> pulumi.Output[dict[str, str]]:
        """The host. Its engine is known when it answers, its addresses earlier."""
        ready, interface = self.ready[host], self.interfaces[host]
        engine = pulumi.Output.all(ready.engine, ready.engine_id)
        if host in self._pulled_images:
            engine = once(self._pulled_images[host].id, engine)
        description: pulumi.Output[dict[str, str]] = pulumi.Output.all(
            name=host,
            # unknown in a preview of another checkout, which has not waited for the engine yet
            engine=engine.apply(lambda values: values[0]),
            cert_path=ready.cert_path,
            internal=interface.private_dns_name,
            external=interface.private_dns_name,
        )
        return description

    def _full_name(self, host: str) -> str:
        return f"{self._shared.stack}-{host}"

    @property
    def _images_parameter(self) -> str:
        return parameter(self._shared.stack, "images")

    def _key_parameter(self, host: str) -> str:
        return parameter(self._shared.stack, f"{host}/key")
