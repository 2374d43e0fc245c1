"""The inputs of a cluster in the package's schema: `AwsSpec` by the names that it reads.

`AwsSpec` alone decides what is allowed and how the keys depend on each other.
"""

from typing import NotRequired, TypedDict

from earshot_pulumi.name_args import NameArgs


class Vpc(TypedDict):
    """A VPC of the cluster's own, or, with `id`, one that is there."""

    id: NotRequired[str]
    """The id of one that is there."""
    cidr: NotRequired[str]
    """Its range; of one that is there, its own. Default: 10.0.0.0/16."""
    zones: list[str]
    """Two or three availability zones; nodes are dealt out to them in turn."""
    public_subnets: NotRequired[dict[str, str]]
    """Of a VPC that is there: by zone, a subnet that is routed to its internet gateway."""
    private_subnets: NotRequired[dict[str, str]]
    """Of a VPC that is there: by zone, one that is not, and still reaches AWS's services."""


class ClusterListener(TypedDict):
    """One listener, for all brokers."""

    name: str
    """As in INTERNAL."""
    port: int
    """The port that brokers bind and advertise."""
    scopes: list[str]
    """Whom it is for: internal (the VPC), external (beyond it), or both."""
    protocol: NotRequired[str]
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. Default: PLAINTEXT."""
    bind: NotRequired[str]
    """The address to bind. Default: what the scopes need."""
    advertised: NotRequired[dict[str, str]]
    """By broker id, a host or host:port to advertise instead of the name that AWS gave."""


class Controllers(TypedDict):
    """The KRaft quorum."""

    mode: NotRequired[str]
    """combined: on the first brokers; separate: on nodes of its own. Default: combined."""
    count: NotRequired[int]
    """Voters, an odd number. Default: 3, or 1 where there are fewer brokers."""
    name: NotRequired[str]
    """The quorum's listener. Default: CONTROLLER."""
    port: NotRequired[int]
    """Its port. Default: 29092."""
    protocol: NotRequired[str]
    """Its protocol. Default: PLAINTEXT."""


class Zone(TypedDict):
    """A domain for the nodes: a private zone of the cluster, and records in a public one."""

    name: str
    """As in kafka.example.com."""
    public_zone_id: NotRequired[str]
    """The public hosted zone that holds `name`, or one above it; for external listeners."""
    record: NotRequired[str]
    """The first label of each broker's name. Default: broker-{id}."""
    ttl: NotRequired[int]
    """Seconds for which resolvers keep a record. Default: 60."""


class AllowedClients(TypedDict):
    """Who may come in, beside the nodes themselves and, for scope internal, the VPC."""

    ranges: NotRequired[dict[str, str]]
    """Of scope external: ranges of addresses by what they are called."""
    anywhere: NotRequired[bool]
    """Of scope external: the whole internet. Default: false."""
    groups: NotRequired[dict[str, str]]
    """Of scope internal: security groups by what they are called."""


class NodeInstance(TypedDict):
    """The instances of one role. They run Amazon Linux 2023."""

    type: NotRequired[str]
    """The instance type, ARM or x86. Default: m7g.large, of separate controllers t4g.medium."""
    architecture: NotRequired[str]
    """arm64 or x86_64. Default: the one that the type has."""
    ami: NotRequired[str]
    """An image to keep to. Default: the newest when an instance is made."""
    root_gib: NotRequired[int]
    """The size of the root volume. Default: 16."""


class DataVolume(TypedDict):
    """The data volume of each node of one role. It is encrypted, and outlives its instance."""

    size_gib: NotRequired[int]
    """Its size. Default: 100, of separate controllers 20."""
    type: NotRequired[str]
    """gp3 or io2. Default: gp3."""
    iops: NotRequired[int]
    """Operations per second. Default: what gp3 comes with."""
    throughput: NotRequired[int]
    """MiB/s, of gp3. Default: what it comes with."""


class KafkaDistribution(TypedDict):
    """Kafka as its project publishes it; the instances must reach it."""

    url: str
    """Where kafka_2.13-<version>.tgz is."""
    sha512: str
    """Its SHA-512 sum."""


class AwsClusterArgs(TypedDict):
    """A cluster of brokers on AWS."""

    region: str
    """The region, the same as the AWS provider's."""
    vpc: Vpc
    """The network that nodes stand in."""
    archive: KafkaDistribution
    """What they run."""
    brokers: NotRequired[int]
    """Brokers have the ids 1, 2, 3, ... One that goes must hold no replica. Default: 3."""
    kafka_version: NotRequired[str]
    """3.9.x or 4.x.y, the same as in the archive."""
    listeners: NotRequired[list[ClusterListener]]
    """Default: INTERNAL on port 19092, for scope internal."""
    inter_broker: NotRequired[str]
    """The listener between brokers. Default: the first of scope internal."""
    controllers: NotRequired[Controllers]
    """The quorum, whose voters must never change. Default: combined, with three voters."""
    replication_factor: NotRequired[int]
    """Of new topics. Default: 3, or the number of brokers where that is less."""
    min_insync_replicas: NotRequired[int]
    """Of new topics. Default: one less than the replication factor, at least 1."""
    extra: NotRequired[dict[str, str]]
    """Further properties of brokers; those that are computed are refused."""
    naming: NotRequired[str]
    """aws: EC2's own names; zone: names of a domain of yours. Default: aws."""
    zone: NotRequired[Zone]
    """The domain, with naming zone."""
    place: NotRequired[str]
    """Subnets of brokers, for good: private or public. Default: public for scope external."""
    clients: NotRequired[AllowedClients]
    """Who may come in."""
    clear_text: NotRequired[dict[str, str]]
    """By listener, why it needs no TLS although it is for scope external."""
    instance: NotRequired[NodeInstance]
    """The instances of brokers."""
    volume: NotRequired[DataVolume]
    """The data volumes of brokers."""
    controller_instance: NotRequired[NodeInstance]
    """The instances of separate controllers."""
    controller_volume: NotRequired[DataVolume]
    """The data volumes of separate controllers."""
    pinned: NotRequired[dict[str, str]]
    """By node id, the zone it stays in: where a zone is added or taken away."""
    volumes: NotRequired[dict[str, str]]
    """By node id, a volume that an earlier cluster of this name has kept, with its data."""
    heap: NotRequired[str]
    """Of each JVM, as in 4g. Default: 1g."""
    secrets: NotRequired[dict[str, str]]
    """By file name in /run/kafka/secrets, its SSM parameter; {id} there is the node's id."""
    client: NotRequired[dict[str, str]]
    """Properties with which a node reaches its own inter-broker listener, where it takes any."""
    nat: NotRequired[str]
    """NAT gateways of a new VPC: none, one or per-zone. Default: one where a node needs it."""
    flow_logs: NotRequired[bool]
    """Keep records of the VPC's traffic in a bucket. Default: false."""
    data: NotRequired[str]
    """What a destroy does with the data volumes: keep or delete. Default: keep."""
    cluster_id: NotRequired[str]
    """Kafka's id of the data that an earlier cluster has kept. Default: a new one, once."""
    deletion_protection: NotRequired[bool]
    """Nothing that holds data or addresses can be destroyed before this is false. Default: true."""
    in_turn: NotRequired[bool]
    """One node at a time; false is for a cluster that is down as a whole. Default: true."""
    names: NotRequired[NameArgs]
    """How advertised names are looked up."""
    ready_seconds: NotRequired[int]
    """How long a new or replaced node may take to be in sync. Default: 900."""
