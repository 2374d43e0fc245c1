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
    """combined: the first brokers are also controllers; separate: controllers are other nodes."""
    count: NotRequired[pulumi.Input[int]]
    """The number of voters, an odd number; it cannot change later. Default: 3 with at least three
    brokers or separate mode, else 1."""
    name: NotRequired[pulumi.Input[str]]
    """The name of the controllers' listener."""
    port: NotRequired[pulumi.Input[int]]
    """The port of the controllers' listener. On one machine, the first controller's; the next take
    the next ports."""
    protocol: NotRequired[pulumi.Input[str]]
    """The security protocol of the controllers' listener. With `security`, the default is SSL."""


class GivenArgs(TypedDict):
    """Node certificates that were issued elsewhere, as PEM, or that a private CA issues."""

    certificate: NotRequired[pulumi.Input[str]]
    """Place of the node's certificate chain as PEM, the node's own first: a file relative to the
    project, `ssm:NAME` or `secretsmanager:NAME`; `{node}` is replaced by the node's id."""
    key: NotRequired[pulumi.Input[str]]
    """Place of the private key. Default: with the certificate."""
    authority: NotRequired[pulumi.Input[str]]
    """Place of the certificates of the authority that clients trust."""
    password: NotRequired[pulumi.Input[str]]
    """Place of the password of the private keys. Default: they have none."""
    region: NotRequired[pulumi.Input[str]]
    """The AWS region of places in AWS. Default: the environment's."""
    private_ca: NotRequired[pulumi.Input[str]]
    """The ARN of a private CA of AWS Certificate Manager that issues a certificate per node;
    replaces the other keys."""


class TlsArgs(TypedDict):
    """Where certificates come from, and how long they last."""

    issue: NotRequired[pulumi.Input[str]]
    """stack: the stack's own authority issues a certificate per node and user."""
    files: NotRequired[pulumi.Input[GivenArgs]]
    """The source of node certificates, if not the stack's authority, which always issues those of
    users."""
    days: NotRequired[pulumi.Input[int]]
    """Days for which an issued certificate is valid."""
    renew_days: NotRequired[pulumi.Input[int]]
    """An update renews certificates that are valid for no more than this number of days."""
    authorities: NotRequired[pulumi.Input[list[pulumi.Input[int]]]]
    """Numbers of the stack's authorities: the first one issues, all are trusted."""


class UserArgs(TypedDict):
    """A client with its own password, and its permissions."""

    name: pulumi.Input[str]
    """The user's name."""
    prefixes: NotRequired[pulumi.Input[list[pulumi.Input[str]]]]
    """The user may do everything with topics, groups and transactional ids whose names begin with
    one of these prefixes, and nothing else."""


class SecurityArgs(TypedDict):
    """TLS, users and ACLs of a cluster; without it listeners have their `protocol`."""

    tls: NotRequired[pulumi.Input[TlsArgs]]
    """Where certificates come from, and how long they are valid."""
    mechanism: NotRequired[pulumi.Input[str]]
    """The SASL mechanism of SASL_SSL listeners."""
    users: NotRequired[pulumi.Input[list[pulumi.Input[UserArgs]]]]
    """The clients that log in, in addition to earshot's own user `validator`."""
    password_numbers: NotRequired[pulumi.Input[dict[str, pulumi.Input[int]]]]
    """By user, the number of the password; another number makes an update generate another
    password. Default: 1."""


class ValidationArgs(TypedDict):
    """How the stack validates its listeners after an update."""

    records: NotRequired[pulumi.Input[int]]
    """Records that Spark sends in all, in equal shares per listener; 0 validates only with `earshot
    doctor`, without Java."""
    deadline: NotRequired[pulumi.Input[int]]
    """Seconds for the whole validation."""


class ClusterArgs(TypedDict):
    """The inputs of all clusters."""

    brokers: NotRequired[pulumi.Input[int]]
    """The number of brokers. Their ids are 1, 2, 3, and so on."""
    kafka_version: NotRequired[pulumi.Input[str]]
    """The version of Apache Kafka, 3.9.x or 4.x.y, in quotes."""
    inter_broker: NotRequired[pulumi.Input[str]]
    """The listener that brokers reach each other through. Default: the first of scope internal."""
    controllers: NotRequired[pulumi.Input[ControllerArgs]]
    """The KRaft quorum."""
    replication_factor: NotRequired[pulumi.Input[int]]
    """Replicas of each partition. Default: 3, or the number of brokers if that is smaller."""
    min_insync_replicas: NotRequired[pulumi.Input[int]]
    """In-sync replicas that a write with acks=all needs. Default: one less than the replication
    factor, at least 1."""
    security: NotRequired[pulumi.Input[SecurityArgs]]
    """TLS certificates, users and ACLs, made by the update. Default: none; listeners have their
    `protocol`."""
    extra: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    """Further broker properties. Keys that earshot computes and secrets in plain text are refused.
    """
    gate: NotRequired[pulumi.Input[str]]
    """required: brokers change only after their advertised names were approved in this run; off:
    without a check."""
    validation: NotRequired[pulumi.Input[ValidationArgs]]
    """How the stack validates its listeners after an update."""
    policy: NotRequired[pulumi.Input[PolicyArgs]]
    """The configuration of the gate. Its keys override those of the project's policies/config."""


class ForwardingPathArgs(TypedDict):
    """What forwards clients' connections to the brokers: a balancer, a gateway, NAT, a tunnel."""

    keeps_client_address: NotRequired[pulumi.Input[bool]]
    """Whether brokers see the clients' addresses; false: they see the forwarder's own."""
    ends_tls: NotRequired[pulumi.Input[bool]]
    """Whether TLS ends there, so that clients see another certificate than the broker's."""
    hairpins: NotRequired[pulumi.Input[bool]]
    """Whether a process on a broker's machine reaches that broker through it. Balancers that keep
    the clients' addresses drop such connections."""
    per_broker: NotRequired[pulumi.Input[bool]]
    """Whether each advertised address leads to its broker; false: each leads to any broker."""
    idle_seconds: NotRequired[pulumi.Input[int]]
    """Seconds after which it drops a connection without traffic. Default: not known."""


class AddressArgs(TypedDict):
    """How the advertised addresses of a listener distinguish its brokers."""

    strategy: NotRequired[pulumi.Input[str]]
    """own: a name per broker, which the placement provisions; port: one name and a port per broker;
    sni: one port and a name per broker, which TLS clients send; given: `advertised` has all
    addresses."""
    host: NotRequired[pulumi.Input[str]]
    """With strategy port: the name of all brokers. Default: that of the stack's balancer."""
    base_port: NotRequired[pulumi.Input[int]]
    """With strategy port, and required: broker N has the port `base_port` + N."""
    pattern: NotRequired[pulumi.Input[str]]
    """With strategy sni, and required: the brokers' names; `{id}` is replaced by the broker's id,
    as in broker-{id}.kafka.example.com."""
    port: NotRequired[pulumi.Input[int]]
    """With strategy sni: the port of all brokers' names. Default: the listener's port."""
    bootstrap_host: NotRequired[pulumi.Input[str]]
    """A name for first connections, which reach any broker. Default: the brokers' own addresses, or
    with strategy port and a `bootstrap_port`, `host`."""
    bootstrap_port: NotRequired[pulumi.Input[int]]
    """A port for first connections, which reach any broker. Default: the brokers' own addresses, or
    with a `bootstrap_host` the port of the brokers."""
    path: NotRequired[pulumi.Input[ForwardingPathArgs]]
    """What forwards connections to the brokers. The gate checks that it suits the listener."""


class ClusterListenerArgs(TypedDict):
    """One listener, for all brokers."""

    name: pulumi.Input[str]
    """The listener's name: upper-case letters, digits and underscores, as Kafka's settings have it.
    """
    port: pulumi.Input[int]
    """The port that brokers bind. On one machine, the first broker's; the next brokers take the
    next ports."""
    scopes: pulumi.Input[list[pulumi.Input[str]]]
    """The clients that the listener serves: internal (the brokers' own network), host (processes of
    the brokers' machine), external (other machines)."""
    protocol: NotRequired[pulumi.Input[str]]
    """The security protocol. With `security`, the default is SSL between brokers and SASL_SSL
    elsewhere."""
    bind: NotRequired[pulumi.Input[str]]
    """The interface address to bind. Default: chosen by the placement for the scopes."""
    mechanism: NotRequired[pulumi.Input[str]]
    """The SASL mechanism of this listener, only with `security`. Default: `security.mechanism`."""
    client_auth: NotRequired[pulumi.Input[str]]
    """Whether clients present certificates, only with `security`. Default: required on SSL
    listeners, none on SASL_SSL listeners."""
    advertised: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    """By broker id, a `host` or `host:port` to advertise instead of the provisioned name."""
    address: NotRequired[pulumi.Input[AddressArgs]]
    """How the advertised addresses distinguish the brokers. Default: a name per broker."""


class LocalClusterArgs(ClusterArgs):
    """A cluster: brokers as processes of this machine."""

    listeners: NotRequired[pulumi.Input[list[pulumi.Input[ClusterListenerArgs]]]]
    """The listeners of all brokers. At least one serves scope internal."""
    external_host: NotRequired[pulumi.Input[str]]
    """A name under which other machines reach this one. Listeners of scope host then serve scope
    external and bind all interfaces."""
    heap: NotRequired[pulumi.Input[str]]
    """The heap of each JVM, as `-Xmx` takes it, such as 256m or 1g."""
    data: NotRequired[pulumi.Input[str]]
    """What `pulumi destroy` does with the brokers' data: keep or delete."""
    client_config: NotRequired[pulumi.Input[str]]
    """A file with Kafka client properties, relative to the project. earshot logs in with them where
    listeners ask for credentials and there is no `security`."""
    remove: NotRequired[pulumi.Input[str]]
    """When a listener that a change removes goes: unused (once no client is connected), anyway, or
    from a date on (UTC, such as 2030-12-31)."""


class DockerListenerArgs(ClusterListenerArgs):
    """One listener, for all brokers, with its published ports."""

    published: NotRequired[pulumi.Input[dict[str, pulumi.Input[int]]]]
    """By broker id, the host port that is published. Default: `port` for the first broker of a
    host, the next ports for its next brokers, on listeners that clients outside the network reach.
    """


class DockerHostArgs(TypedDict):
    """A Docker host: the address of its engine, and its names for other machines."""

    name: NotRequired[pulumi.Input[str]]
    """A label for the host, for messages and resource names."""
    engine: NotRequired[pulumi.Input[str]]
    """The Docker engine: `unix://SOCKET`, `ssh://USER@HOST` or `tcp://HOST:PORT`. Default:
    DOCKER_HOST, or this machine's socket."""
    cert_path: NotRequired[pulumi.Input[str]]
    """A folder with ca.pem, cert.pem and key.pem, for TLS with an engine at `tcp://`."""
    external: NotRequired[pulumi.Input[str]]
    """The name or address under which clients on other machines reach the host."""
    internal: NotRequired[pulumi.Input[str]]
    """The name or address under which the other Docker hosts reach the host. Default: `external`.
    """
    brokers: NotRequired[pulumi.Input[list[pulumi.Input[int]]]]
    """Ids of the brokers on this host. Default: brokers are spread over the hosts in turn."""


class ValidatorImageArgs(TypedDict):
    """The image of containers that validate from the clients' networks."""

    base: NotRequired[pulumi.Input[str]]
    """The Debian image, or a mirror of one, that the validator image is built on."""


class DockerClusterArgs(ClusterArgs):
    """A cluster: brokers as containers."""

    listeners: NotRequired[pulumi.Input[list[pulumi.Input[DockerListenerArgs]]]]
    """The listeners of all brokers. At least one serves scope internal."""
    broker_ids: NotRequired[pulumi.Input[list[pulumi.Input[int]]]]
    """The brokers' ids. Default: 1, 2, 3, and so on."""
    names: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    """By node id, the container's name, which is also its alias on the network. Default: kafka-ID,
    controller-ID."""
    image: NotRequired[pulumi.Input[str]]
    """The image of every node. Default: apache/kafka of `kafka_version`."""
    hosts: NotRequired[pulumi.Input[list[pulumi.Input[DockerHostArgs]]]]
    """The Docker hosts; in a stack file also `aws`, with hosts that the stack creates. Default:
    this machine's."""
    network: NotRequired[pulumi.Input[str]]
    """The name of an existing Docker network for the brokers, which is never removed. With several
    Docker hosts, each must have it. Default: a network that the stack creates."""
    dns: NotRequired[pulumi.Input[list[pulumi.Input[str]]]]
    """DNS servers of the containers, as IP addresses. Default: those of the engine."""
    heap: NotRequired[pulumi.Input[str]]
    """The heap of each JVM, as `-Xmx` takes it, such as 256m or 1g."""
    data: NotRequired[pulumi.Input[str]]
    """What `pulumi destroy` does with the brokers' volumes: keep or delete."""
    remove: NotRequired[pulumi.Input[str]]
    """When a listener that a change removes goes: unused (once no client is connected), anyway, or
    from a date on (UTC, such as 2030-12-31)."""
    cluster_id: NotRequired[pulumi.Input[str]]
    """Kafka's cluster id, only to take over volumes that an earlier stack has kept. Default: a new
    one, made once."""
    validator: NotRequired[pulumi.Input[ValidatorImageArgs]]
    """The image in which the internal and external vantages are validated."""


class VpcArgs(TypedDict):
    """A VPC of the stack's own, or, with ``id``, an existing one."""

    id: NotRequired[pulumi.Input[str]]
    """The id of an existing VPC. Default: a new VPC."""
    cidr: NotRequired[pulumi.Input[str]]
    """The VPC's CIDR block, from /16 to /24. For an existing VPC, its own."""
    zones: pulumi.Input[list[pulumi.Input[str]]]
    """Two or three availability zones; nodes are spread over them in turn."""
    public_subnets: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    """By availability zone, a subnet of an existing VPC with a route to its internet gateway."""
    private_subnets: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    """By availability zone, a subnet of an existing VPC without that route, which reaches AWS's
    services."""


class BalancerArgs(TypedDict):
    """A Network Load Balancer for the listeners with address strategy port and no host."""

    kind: NotRequired[pulumi.Input[str]]
    """nlb: a Network Load Balancer, which forwards TCP unchanged, a port per broker; privatelink:
    the same with an endpoint service, for clients in other VPCs and accounts."""
    scheme: NotRequired[pulumi.Input[str]]
    """internal: addresses of the VPC; internet: public ones, in public subnets."""
    record: NotRequired[pulumi.Input[str]]
    """With naming zone: the balancer's name below `zone.name`. Otherwise AWS gives it one."""
    keep_client_address: NotRequired[pulumi.Input[bool]]
    """Whether brokers see the clients' addresses. Then no process on a broker's instance reaches
    that broker through the balancer. Default: true with nlb; AWS allows only false with
    privatelink."""
    idle_seconds: NotRequired[pulumi.Input[int]]
    """Seconds after which a connection without traffic is dropped. The default is longer than
    Kafka's own `connections.max.idle.ms`."""
    drain_seconds: NotRequired[pulumi.Input[int]]
    """Seconds for which a removed target keeps its connections."""
    name: NotRequired[pulumi.Input[str]]
    """With privatelink, and required with naming aws: the name that brokers advertise. Each
    consumer's private zone has it. With naming zone it is `record` below `zone.name`."""
    principals: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    """With privatelink: by a name of your choice, ARNs of the accounts, users or roles that may
    connect an endpoint. Default: the stack's own account."""
    acceptance: NotRequired[pulumi.Input[str]]
    """With privatelink: whether each endpoint waits until it is accepted in the stack's account
    (`aws ec2 accept-vpc-endpoint-connections`)."""
    private_dns: NotRequired[pulumi.Input[bool]]
    """With privatelink: whether the endpoint service has the advertised name as its private DNS
    name. You must own its domain; the output `endpoint_service` has the TXT record that proves it.
    """


class ZoneArgs(TypedDict):
    """A domain for the nodes: a private zone of the stack, and records in a public one."""

    name: pulumi.Input[str]
    """The domain, such as kafka.example.com. Inside the VPC only the private zone answers for it.
    """
    public_zone_id: NotRequired[pulumi.Input[str]]
    """The id of the public hosted zone that holds `name` or a parent domain; required for listeners
    of scope external."""
    record: NotRequired[pulumi.Input[str]]
    """The first label of each broker's name; `{id}` is replaced by the broker's id."""
    ttl: NotRequired[pulumi.Input[int]]
    """The records' time to live in seconds."""


class ClientsArgs(TypedDict):
    """Clients that security groups admit, in addition to nodes and, for scope internal, the VPC."""

    ranges: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    """By a name of your choice, CIDR blocks of external clients."""
    anywhere: NotRequired[pulumi.Input[bool]]
    """Whether external clients from any address are admitted."""
    groups: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    """By a name of your choice, ids of security groups of internal clients, in addition to the
    VPC's own range."""


class ConnectedVpcArgs(TypedDict):
    """Another VPC, whose clients use the listeners of scope internal."""

    id: pulumi.Input[str]
    """The id of the VPC."""
    cidr: pulumi.Input[str]
    """The VPC's CIDR block, which security groups admit. It overlaps no other one."""
    peering: NotRequired[pulumi.Input[str]]
    """The id of the active peering connection between both VPCs."""
    transit_gateway: NotRequired[pulumi.Input[str]]
    """The id of the Transit Gateway that both VPCs are attached to."""
    region: NotRequired[pulumi.Input[str]]
    """The VPC's region. Default: that of the stack."""
    associate: NotRequired[pulumi.Input[bool]]
    """With naming zone: whether the stack associates its private zone with the VPC, which needs
    credentials for both. Otherwise the names do not resolve there."""
    routed: NotRequired[pulumi.Input[bool]]
    """Whether the subnets of both VPCs have routes to each other, apart from those that the stack
    creates from its own VPC. Default: not known."""
    resolver: NotRequired[pulumi.Input[list[pulumi.Input[str]]]]
    """DNS servers (`ip` or `ip:port`) with the answers of the VPC's resolver, which this machine
    reaches: the gate looks up the names there. Default: none."""


class InstanceArgs(TypedDict):
    """The instances of one role. They run Amazon Linux 2023."""

    type: NotRequired[pulumi.Input[str]]
    """The EC2 instance type, such as m7g.large."""
    architecture: NotRequired[pulumi.Input[str]]
    """The processor architecture: arm64 or x86_64. Default: that of `type`."""
    ami: NotRequired[pulumi.Input[str]]
    """The id of an Amazon Linux 2023 image. Default: the newest one when an instance is created;
    running instances keep theirs."""
    root_gib: NotRequired[pulumi.Input[int]]
    """The size of the root volume in GiB."""


class VolumeArgs(TypedDict):
    """The data volume of each node of one role. It is encrypted, and outlives its instance."""

    size_gib: NotRequired[pulumi.Input[int]]
    """The size in GiB."""
    type: NotRequired[pulumi.Input[str]]
    """The EBS volume type: gp3 or io2."""
    iops: NotRequired[pulumi.Input[int]]
    """Provisioned I/O operations per second; required for io2."""
    throughput: NotRequired[pulumi.Input[int]]
    """Provisioned throughput in MiB/s, for gp3 only."""


class KafkaReleaseArgs(TypedDict):
    """Kafka's release archive, `kafka_2.13-<version>.tgz`, and its SHA-512 sum."""

    url: pulumi.Input[str]
    """The http or https URL of kafka_2.13-VERSION.tgz. Instances must reach it."""
    sha512: pulumi.Input[str]
    """The archive's SHA-512 sum in hexadecimal digits, as published with it (.tgz.sha512)."""


class ValidatorInstanceArgs(TypedDict):
    """A separate instance, without a public address, that validates the internal scope."""

    instance: NotRequired[pulumi.Input[InstanceArgs]]
    """The instance. Spark needs two GiB of memory."""
    every: NotRequired[pulumi.Input[int]]
    """Minutes between validations on the timer."""
    keep_days: NotRequired[pulumi.Input[int]]
    """Days for which dated reports are kept."""
    client: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    """Kafka client properties, if an internal listener uses TLS or SASL."""
    secrets: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    """By file name below /run/earshot/secrets, the SSM parameter that holds the file."""


class AwsClusterArgs(ClusterArgs):
    """A cluster: brokers as EC2 instances."""

    listeners: NotRequired[pulumi.Input[list[pulumi.Input[ClusterListenerArgs]]]]
    """The listeners of all brokers. At least one serves scope internal."""
    region: pulumi.Input[str]
    """The AWS region, such as eu-central-1."""
    vpc: pulumi.Input[VpcArgs]
    """A VPC of the stack's own, or, with `id`, an existing one."""
    expose: NotRequired[pulumi.Input[BalancerArgs]]
    """nlb: a Network Load Balancer with a port per broker, for the listeners with address strategy
    port and no host. Brokers then need no public addresses. privatelink: the same for clients in
    other VPCs, which connect through endpoints. Default: none."""
    naming: NotRequired[pulumi.Input[str]]
    """The names that brokers advertise. aws: EC2's own (`ip-...`, `ec2-...`); zone: names of your
    domain, see `zone`."""
    zone: NotRequired[pulumi.Input[ZoneArgs]]
    """A domain for the nodes, only with naming zone."""
    place: NotRequired[pulumi.Input[str]]
    """The subnets of brokers, which cannot change later: public, with an Elastic IP each, or
    private. Default: where they are; for a new cluster, public if a listener serves scope external.
    """
    clients: NotRequired[pulumi.Input[ClientsArgs]]
    """The clients that security groups admit."""
    connected: NotRequired[pulumi.Input[dict[str, pulumi.Input[ConnectedVpcArgs]]]]
    """By a name of your choice (also that of the vantage there), other VPCs with clients of scope
    internal, connected by peering or a Transit Gateway."""
    clear_text: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    """By listener, the reason why a listener of scope external needs no TLS."""
    instance: NotRequired[pulumi.Input[InstanceArgs]]
    """The brokers' instances."""
    volume: NotRequired[pulumi.Input[VolumeArgs]]
    """The brokers' data volumes."""
    controller_instance: NotRequired[pulumi.Input[InstanceArgs]]
    """The instances of separate controllers."""
    controller_volume: NotRequired[pulumi.Input[VolumeArgs]]
    """The data volumes of separate controllers."""
    pinned: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    """By node id, the availability zone in which the node stays when `vpc.zones` changes."""
    volumes: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    """By node id, the data volume to take over, kept by an earlier stack of this name."""
    drained: NotRequired[pulumi.Input[list[pulumi.Input[int]]]]
    """Ids of brokers without replicas, which may be removed."""
    archive: pulumi.Input[KafkaReleaseArgs]
    """Kafka's release archive, which instances download."""
    heap: NotRequired[pulumi.Input[str]]
    """The heap of each JVM, as `-Xmx` takes it, such as 256m or 1g."""
    secrets: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    """By file name below /run/kafka/secrets, the SSM parameter that holds the file; `{id}` is
    replaced by the node's id."""
    client: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    """Kafka client properties with which a node connects to its own inter-broker listener, if it
    needs any."""
    nat: NotRequired[pulumi.Input[str]]
    """NAT gateways of a new VPC: none, one, or per-zone. Default: one if a node is in a private
    subnet."""
    flow_logs: NotRequired[pulumi.Input[bool]]
    """Whether the VPC's traffic is recorded, in a bucket of the stack."""
    data: NotRequired[pulumi.Input[str]]
    """What `pulumi destroy` does with the data volumes: keep or delete."""
    remove: NotRequired[pulumi.Input[str]]
    """When a listener that a change removes goes: unused (once no client is connected, as the
    instances report), anyway, or from a date on (UTC, such as 2030-12-31)."""
    cluster_id: NotRequired[pulumi.Input[str]]
    """Kafka's cluster id, only to take over volumes that an earlier stack has kept. Default: a new
    one, made once."""
    deletion_protection: NotRequired[pulumi.Input[bool]]
    """Whether resources that hold data or an address are protected from deletion."""
    prove: NotRequired[pulumi.Input[str]]
    """here: external listeners without credentials are validated from this machine, which must be
    among `clients`; later: by `earshot validate`."""
    validator: NotRequired[pulumi.Input[ValidatorInstanceArgs]]
    """An instance in a private subnet that validates the internal scope after each update and on a
    timer; true for its defaults. Default: none."""
    in_turn: NotRequired[pulumi.Input[bool]]
    """true: one node changes at a time, and none while another is down; false: all at once, for a
    cluster that is down as a whole."""
    ready_seconds: NotRequired[pulumi.Input[int]]
    """Seconds for a new or replaced node to be in sync."""


class DockerHostsArgs(TypedDict):
    """The inputs of `DockerHosts`."""

    host_zones: pulumi.Input[dict[str, pulumi.Input[str]]]
    """By a name of your choice, the availability zone of each host. A host's zone cannot change:
    its data volume is there."""
    deployers: pulumi.Input[dict[str, pulumi.Input[str]]]
    """By a name of your choice, CIDR blocks from which the engines may be reached, with TLS: those
    of the machines that run `pulumi up`."""
    clients: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    """By a name of your choice, CIDR blocks from which the published ports may be reached, in
    addition to the hosts themselves and the deployers."""
    first_port: NotRequired[pulumi.Input[int]]
    """The first published port that clients reach."""
    last_port: NotRequired[pulumi.Input[int]]
    """The last published port that clients reach."""
    zones: NotRequired[pulumi.Input[list[pulumi.Input[str]]]]
    """Two or three availability zones of a new VPC. Default: those of the hosts."""
    cidr: NotRequired[pulumi.Input[str]]
    """The VPC's CIDR block, from /16 to /24. For an existing VPC, its own."""
    vpc_id: NotRequired[pulumi.Input[str]]
    """The id of an existing VPC. Default: a new VPC."""
    subnets: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    """By availability zone, a private subnet of an existing VPC that reaches AWS's services."""
    nat: NotRequired[pulumi.Input[str]]
    """NAT gateways of a new VPC: one, or per-zone. Default: one."""
    instance: NotRequired[pulumi.Input[InstanceArgs]]
    """The instances, with Amazon Linux 2023. Default: m7g.large with a root volume of 16 GiB."""
    instances: NotRequired[pulumi.Input[dict[str, pulumi.Input[InstanceArgs]]]]
    """By host, its own instance."""
    volume: NotRequired[pulumi.Input[VolumeArgs]]
    """Each host's data volume, with all data of Docker, which outlives the instance. Default: gp3
    with 100 GiB."""
    images: NotRequired[pulumi.Input[list[pulumi.Input[str]]]]
    """Images in private registries of Amazon ECR, which each host pulls by its instance's role. In
    a stack file, those of the brokers and of the validator need not be listed."""
    data: NotRequired[pulumi.Input[str]]
    """What `pulumi destroy` does with the data volumes: keep or delete."""
    deletion_protection: NotRequired[pulumi.Input[bool]]
    """Whether resources that hold data or an address are protected from deletion."""
    in_turn: NotRequired[pulumi.Input[bool]]
    """true: one host changes at a time, and none while another host or a broker on it is down;
    false: all at once, for clusters that are down as a whole."""
    ready_seconds: NotRequired[pulumi.Input[int]]
    """Seconds for a new or replaced host until its engine answers, and after that for the brokers
    on it until the next host changes."""


class AwsNetworkArgs(TypedDict):
    """The inputs of `AwsNetwork`."""

    zones: pulumi.Input[list[pulumi.Input[str]]]
    """Two or three availability zones of one region, as in us-east-1a."""
    cidr: NotRequired[pulumi.Input[str]]
    """The VPC's CIDR block, private, from /16 to /24."""
    nat: NotRequired[pulumi.Input[str]]
    """NAT gateways for the private subnets: none, one or per-zone."""
    flow_logs: NotRequired[pulumi.Input[bool]]
    """true: the VPC's traffic is logged in a bucket."""
    deletion_protection: NotRequired[pulumi.Input[bool]]
    """true: resources with data or addresses cannot be deleted."""
