"""The inputs of cluster components; `python -m toolchain.cluster_args` writes this file.

The keys are those of `earshot:cluster` in a stack file, whose models describe them and decide what
is allowed. The annotations must be no strings: Pulumi reads the schema from them.
"""

from typing import NotRequired, TypedDict

import pulumi

from earshot_pulumi.policy_args import PolicyArgs


class ControllerArgs(TypedDict):
    """The KRaft quorum: on the first brokers, or on separate nodes."""

    mode: NotRequired[pulumi.Input[str]]
    count: NotRequired[pulumi.Input[int]]
    name: NotRequired[pulumi.Input[str]]
    port: NotRequired[pulumi.Input[int]]
    protocol: NotRequired[pulumi.Input[str]]


class GivenArgs(TypedDict):
    """Node certificates that were issued elsewhere, as PEM, or that a private CA issues."""

    certificate: NotRequired[pulumi.Input[str]]
    key: NotRequired[pulumi.Input[str]]
    authority: NotRequired[pulumi.Input[str]]
    password: NotRequired[pulumi.Input[str]]
    region: NotRequired[pulumi.Input[str]]
    private_ca: NotRequired[pulumi.Input[str]]


class TlsArgs(TypedDict):
    """Where certificates come from, and how long they last."""

    issue: NotRequired[pulumi.Input[str]]
    files: NotRequired[pulumi.Input[GivenArgs]]
    days: NotRequired[pulumi.Input[int]]
    renew_days: NotRequired[pulumi.Input[int]]
    authorities: NotRequired[pulumi.Input[list[pulumi.Input[int]]]]


class UserArgs(TypedDict):
    """A client with its own password, and its permissions."""

    name: pulumi.Input[str]
    prefixes: NotRequired[pulumi.Input[list[pulumi.Input[str]]]]


class SecurityArgs(TypedDict):
    """TLS, users and ACLs of a cluster; without it listeners have their `protocol`."""

    tls: NotRequired[pulumi.Input[TlsArgs]]
    mechanism: NotRequired[pulumi.Input[str]]
    users: NotRequired[pulumi.Input[list[pulumi.Input[UserArgs]]]]
    password_numbers: NotRequired[pulumi.Input[dict[str, pulumi.Input[int]]]]


class ValidationArgs(TypedDict):
    """How the stack validates its listeners after an update."""

    records: NotRequired[pulumi.Input[int]]
    deadline: NotRequired[pulumi.Input[int]]


class ClusterArgs(TypedDict):
    """The inputs of all clusters."""

    brokers: NotRequired[pulumi.Input[int]]
    kafka_version: NotRequired[pulumi.Input[str]]
    inter_broker: NotRequired[pulumi.Input[str]]
    controllers: NotRequired[pulumi.Input[ControllerArgs]]
    replication_factor: NotRequired[pulumi.Input[int]]
    min_insync_replicas: NotRequired[pulumi.Input[int]]
    security: NotRequired[pulumi.Input[SecurityArgs]]
    extra: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    gate: NotRequired[pulumi.Input[str]]
    validation: NotRequired[pulumi.Input[ValidationArgs]]
    policy: NotRequired[pulumi.Input[PolicyArgs]]
    """The configuration of the gate. Its keys override those of the project's policies/config."""


class ForwardingPathArgs(TypedDict):
    """What forwards clients' connections to the brokers: a balancer, a gateway, NAT, a tunnel."""

    keeps_client_address: NotRequired[pulumi.Input[bool]]
    ends_tls: NotRequired[pulumi.Input[bool]]
    hairpins: NotRequired[pulumi.Input[bool]]
    per_broker: NotRequired[pulumi.Input[bool]]
    idle_seconds: NotRequired[pulumi.Input[int]]


class AddressArgs(TypedDict):
    """How the advertised addresses of a listener distinguish its brokers."""

    strategy: NotRequired[pulumi.Input[str]]
    host: NotRequired[pulumi.Input[str]]
    base_port: NotRequired[pulumi.Input[int]]
    pattern: NotRequired[pulumi.Input[str]]
    port: NotRequired[pulumi.Input[int]]
    bootstrap_host: NotRequired[pulumi.Input[str]]
    bootstrap_port: NotRequired[pulumi.Input[int]]
    path: NotRequired[pulumi.Input[ForwardingPathArgs]]


class ClusterListenerArgs(TypedDict):
    """One listener, for all brokers."""

    name: pulumi.Input[str]
    port: pulumi.Input[int]
    scopes: pulumi.Input[list[pulumi.Input[str]]]
    protocol: NotRequired[pulumi.Input[str]]
    bind: NotRequired[pulumi.Input[str]]
    mechanism: NotRequired[pulumi.Input[str]]
    client_auth: NotRequired[pulumi.Input[str]]
    advertised: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    address: NotRequired[pulumi.Input[AddressArgs]]


class LocalClusterArgs(ClusterArgs):
    """A cluster: brokers as processes of this machine."""

    listeners: NotRequired[pulumi.Input[list[pulumi.Input[ClusterListenerArgs]]]]
    external_host: NotRequired[pulumi.Input[str]]
    heap: NotRequired[pulumi.Input[str]]
    data: NotRequired[pulumi.Input[str]]
    client_config: NotRequired[pulumi.Input[str]]
    remove: NotRequired[pulumi.Input[str]]


class DockerListenerArgs(ClusterListenerArgs):
    """One listener, for all brokers, with its published ports."""

    published: NotRequired[pulumi.Input[dict[str, pulumi.Input[int]]]]


class DockerHostArgs(TypedDict):
    """A Docker host: the address of its engine, and its names for other machines."""

    name: NotRequired[pulumi.Input[str]]
    engine: NotRequired[pulumi.Input[str]]
    cert_path: NotRequired[pulumi.Input[str]]
    external: NotRequired[pulumi.Input[str]]
    internal: NotRequired[pulumi.Input[str]]
    brokers: NotRequired[pulumi.Input[list[pulumi.Input[int]]]]


class ValidatorImageArgs(TypedDict):
    """The image of containers that validate from the clients' networks."""

    base: NotRequired[pulumi.Input[str]]


class DockerClusterArgs(ClusterArgs):
    """A cluster: brokers as containers."""

    listeners: NotRequired[pulumi.Input[list[pulumi.Input[DockerListenerArgs]]]]
    broker_ids: NotRequired[pulumi.Input[list[pulumi.Input[int]]]]
    names: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    image: NotRequired[pulumi.Input[str]]
    hosts: NotRequired[pulumi.Input[list[pulumi.Input[DockerHostArgs]]]]
    network: NotRequired[pulumi.Input[str]]
    dns: NotRequired[pulumi.Input[list[pulumi.Input[str]]]]
    heap: NotRequired[pulumi.Input[str]]
    data: NotRequired[pulumi.Input[str]]
    remove: NotRequired[pulumi.Input[str]]
    cluster_id: NotRequired[pulumi.Input[str]]
    validator: NotRequired[pulumi.Input[ValidatorImageArgs]]


class VpcArgs(TypedDict):
    """A VPC of the stack's own, or, with ``id``, an existing one."""

    id: NotRequired[pulumi.Input[str]]
    cidr: NotRequired[pulumi.Input[str]]
    zones: pulumi.Input[list[pulumi.Input[str]]]
    public_subnets: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    private_subnets: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]


class BalancerArgs(TypedDict):
    """A Network Load Balancer for the listeners with address strategy port and no host."""

    kind: NotRequired[pulumi.Input[str]]
    scheme: NotRequired[pulumi.Input[str]]
    record: NotRequired[pulumi.Input[str]]
    keep_client_address: NotRequired[pulumi.Input[bool]]
    idle_seconds: NotRequired[pulumi.Input[int]]
    drain_seconds: NotRequired[pulumi.Input[int]]
    name: NotRequired[pulumi.Input[str]]
    principals: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    acceptance: NotRequired[pulumi.Input[str]]
    private_dns: NotRequired[pulumi.Input[bool]]


class ZoneArgs(TypedDict):
    """A domain for the nodes: a private zone of the stack, and records in a public one."""

    name: pulumi.Input[str]
    public_zone_id: NotRequired[pulumi.Input[str]]
    record: NotRequired[pulumi.Input[str]]
    ttl: NotRequired[pulumi.Input[int]]


class ClientsArgs(TypedDict):
    """Clients that security groups admit, in addition to nodes and, for scope internal, the VPC."""

    ranges: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    anywhere: NotRequired[pulumi.Input[bool]]
    groups: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]


class ConnectedVpcArgs(TypedDict):
    """Another VPC, whose clients use the listeners of scope internal."""

    id: pulumi.Input[str]
    cidr: pulumi.Input[str]
    peering: NotRequired[pulumi.Input[str]]
    transit_gateway: NotRequired[pulumi.Input[str]]
    region: NotRequired[pulumi.Input[str]]
    associate: NotRequired[pulumi.Input[bool]]
    routed: NotRequired[pulumi.Input[bool]]
    resolver: NotRequired[pulumi.Input[list[pulumi.Input[str]]]]


class InstanceArgs(TypedDict):
    """The instances of one role. They run Amazon Linux 2023."""

    type: NotRequired[pulumi.Input[str]]
    architecture: NotRequired[pulumi.Input[str]]
    ami: NotRequired[pulumi.Input[str]]
    root_gib: NotRequired[pulumi.Input[int]]


class VolumeArgs(TypedDict):
    """The data volume of each node of one role. It is encrypted, and outlives its instance."""

    size_gib: NotRequired[pulumi.Input[int]]
    type: NotRequired[pulumi.Input[str]]
    iops: NotRequired[pulumi.Input[int]]
    throughput: NotRequired[pulumi.Input[int]]


class KafkaReleaseArgs(TypedDict):
    """Kafka's release archive, `kafka_2.13-<version>.tgz`, and its SHA-512 sum."""

    url: pulumi.Input[str]
    sha512: pulumi.Input[str]


class ValidatorInstanceArgs(TypedDict):
    """A separate instance, without a public address, that validates the internal scope."""

    instance: NotRequired[pulumi.Input[InstanceArgs]]
    every: NotRequired[pulumi.Input[int]]
    keep_days: NotRequired[pulumi.Input[int]]
    client: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    secrets: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]


class AwsClusterArgs(ClusterArgs):
    """A cluster: brokers as EC2 instances."""

    listeners: NotRequired[pulumi.Input[list[pulumi.Input[ClusterListenerArgs]]]]
    region: pulumi.Input[str]
    vpc: pulumi.Input[VpcArgs]
    expose: NotRequired[pulumi.Input[BalancerArgs]]
    naming: NotRequired[pulumi.Input[str]]
    zone: NotRequired[pulumi.Input[ZoneArgs]]
    place: NotRequired[pulumi.Input[str]]
    clients: NotRequired[pulumi.Input[ClientsArgs]]
    connected: NotRequired[pulumi.Input[dict[str, pulumi.Input[ConnectedVpcArgs]]]]
    clear_text: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    instance: NotRequired[pulumi.Input[InstanceArgs]]
    volume: NotRequired[pulumi.Input[VolumeArgs]]
    controller_instance: NotRequired[pulumi.Input[InstanceArgs]]
    controller_volume: NotRequired[pulumi.Input[VolumeArgs]]
    pinned: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    volumes: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    drained: NotRequired[pulumi.Input[list[pulumi.Input[int]]]]
    archive: pulumi.Input[KafkaReleaseArgs]
    heap: NotRequired[pulumi.Input[str]]
    secrets: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    client: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    nat: NotRequired[pulumi.Input[str]]
    flow_logs: NotRequired[pulumi.Input[bool]]
    data: NotRequired[pulumi.Input[str]]
    remove: NotRequired[pulumi.Input[str]]
    cluster_id: NotRequired[pulumi.Input[str]]
    deletion_protection: NotRequired[pulumi.Input[bool]]
    prove: NotRequired[pulumi.Input[str]]
    validator: NotRequired[pulumi.Input[ValidatorInstanceArgs]]
    in_turn: NotRequired[pulumi.Input[bool]]
    ready_seconds: NotRequired[pulumi.Input[int]]


class DockerHostsArgs(TypedDict):
    """The inputs of `DockerHosts`."""

    host_zones: pulumi.Input[dict[str, pulumi.Input[str]]]
    deployers: pulumi.Input[dict[str, pulumi.Input[str]]]
    clients: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    first_port: NotRequired[pulumi.Input[int]]
    last_port: NotRequired[pulumi.Input[int]]
    zones: NotRequired[pulumi.Input[list[pulumi.Input[str]]]]
    cidr: NotRequired[pulumi.Input[str]]
    vpc_id: NotRequired[pulumi.Input[str]]
    subnets: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    nat: NotRequired[pulumi.Input[str]]
    instance: NotRequired[pulumi.Input[InstanceArgs]]
    instances: NotRequired[pulumi.Input[dict[str, pulumi.Input[InstanceArgs]]]]
    volume: NotRequired[pulumi.Input[VolumeArgs]]
    images: NotRequired[pulumi.Input[list[pulumi.Input[str]]]]
    data: NotRequired[pulumi.Input[str]]
    deletion_protection: NotRequired[pulumi.Input[bool]]
    in_turn: NotRequired[pulumi.Input[bool]]
    ready_seconds: NotRequired[pulumi.Input[int]]


class AwsNetworkArgs(TypedDict):
    """The inputs of `AwsNetwork`."""

    zones: pulumi.Input[list[pulumi.Input[str]]]
    cidr: NotRequired[pulumi.Input[str]]
    nat: NotRequired[pulumi.Input[str]]
    flow_logs: NotRequired[pulumi.Input[bool]]
    deletion_protection: NotRequired[pulumi.Input[bool]]
