"""The plan of brokers that are EC2 instances: their names, their groups, and what AWS declares."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from earshot.config.aws import AwsSpec
from earshot.config.balancer import EVERYONE
from earshot.errors import EarshotError
from earshot.facts.cloud import Cloud, Instance
from earshot.facts.connected import ConnectedVpc
from earshot.facts.security_groups import (
    BALANCER,
    Clients,
    SecurityGroup,
    ingress_of,
    security_groups,
)
from earshot.listeners.model import ClusterPlan
from earshot.listeners.terms import Scope, UnknownHost
from earshot.names.aws import Interface, VpcDns, declaration
from earshot.names.evidence import Declaration, EvidenceKey
from earshot.placement.aws_secrets import (
    NO_SECRETS,
    SecretVersions,
    makes_users,
    node_secrets,
    secret_parameter,
)
from earshot.placement.plan import LOCALHOST, NodeNames, PlacementPlan, PlannedBalancer, plan
from earshot.placement.secured import secured
from earshot.user_data.boot import SECRETS, Boot, System, ssm_report, ssm_secret
from earshot.user_data.render import MOUNT, user_data

LOG_DIR = f"{MOUNT}/data"
VALIDATOR = "validator"
"""What the validator in the VPC and its security group are called."""
ELASTIC_QUOTA = 5
"""Elastic IPs per region that AWS allows before one asks for more:
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/elastic-ip-addresses-eip.html"""

HostOrMarker = str | UnknownHost
"""A value, or the marker of the resource that has yet to yield it."""


@dataclass(frozen=True)
class ProvisionedNames:
    """What AWS gave one node before it starts; the public half is None without an Elastic IP."""

    private_name: HostOrMarker
    private_address: HostOrMarker
    public_name: HostOrMarker | None = None
    public_address: HostOrMarker | None = None

    @property
    def elastic(self) -> tuple[HostOrMarker, ...]:
        """The address of its Elastic IP, if it has one."""
        return () if self.public_address is None else (self.public_address,)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The known addresses."""
        both = (self.private_address, *self.elastic)
        return tuple(address for address in both if isinstance(address, str))


@dataclass(frozen=True, kw_only=True)
class AwsPlan(PlacementPlan):
    """The plan of an aws spec, with the AWS network of each node."""

    groups: tuple[SecurityGroup, ...]
    clients: Clients
    instances: dict[int, Instance]
    """The instances that rules check, by node id."""
    declared: dict[EvidenceKey, Declaration]
    """The known names that the stack's own resources declare."""
    connected: tuple[ConnectedVpc, ...] = ()
    """Other VPCs with clients of scope internal."""

    @property
    def addresses(self) -> dict[int, tuple[str, ...]]:
        """The known addresses of each node, by node id."""
        return {id: name.addresses for id, name in self.names.items()}

    @property
    def cloud(self) -> Cloud:
        return Cloud(self.instances, self.clients, self.declared, self.connected)


def unknown_names(spec: AwsSpec) -> dict[int, ProvisionedNames]:
    """Placeholders for the names that AWS assigns to each node, by node id."""
    names_by_id = {}
    for id in spec.node_ids:
        interface = private = UnknownHost(what=f"the network interface of {spec.name_of(id)}")
        elastic = public = UnknownHost(what=f"the Elastic IP of {spec.name_of(id)}")
        if spec.naming == "zone":
            record = f"the record of {spec.name_of(id)}"
            private = UnknownHost(what=f"{record} in the private zone")
            public = UnknownHost(what=f"{record} in the public zone")
        both = (public, elastic) if spec.is_public(id) else (None, None)
        names_by_id[id] = ProvisionedNames(private, interface, *both)
    return names_by_id


def planned(spec: AwsSpec, stack: str, state: Path) -> AwsPlan:
    """The plan of ``spec`` as stack ``stack``, before its resources exist. Raises EarshotError.

    ``state`` is the folder of the stack's files.
    """
    return plan_aws(spec, stack, root=state / "kafka")


def plan_aws(
    spec: AwsSpec,
    stack: str,
    provisioned: Mapping[int, ProvisionedNames] | None = None,
    dns: VpcDns | None = None,
    *,
    balancer: HostOrMarker | None = None,
    root: Path = Path(),
) -> AwsPlan:
    """The plan of ``spec`` as stack ``stack``.

    ``provisioned`` are the nodes' names by id (default: unknown), ``dns`` the DNS attributes of the
    VPC (default: both on, as in the stack's own VPC), ``balancer`` is the name of the balancer of
    ``spec`` (default: unknown). ``root`` is the folder of the stack's cluster, whose project
    contains certificates of other authorities.

    Raises EarshotError, also for a name that AWS left empty.
    """
    provisioned = unknown_names(spec) if provisioned is None else provisioned
    attributes = dns or VpcDns(support=True, hostnames=True)
    for id, node_names in provisioned.items():
        _check_given(spec.name_of(id), node_names, attributes)
    names = {id: _names(node_names, spec.zone_of[id]) for id, node_names in provisioned.items()}
    secured_plan = secured(
        plan(spec, names, _balancer(spec, balancer)), spec.security, root, SECRETS
    )
    cluster_plan = secured_plan.plan
    clients = spec.clients.admitted(spec.vpc.cidr, [vpc.range for vpc in spec.connected.values()])
    groups = security_groups(cluster_plan, clients)
    if spec.validator is not None:
        groups += (SecurityGroup(VALIDATOR, ()),)  # without ingress
    return AwsPlan(
        plan=cluster_plan,
        names=names,
        notes=(*_notes(spec), *secured_plan.notes),
        groups=groups,
        clients=clients,
        instances={
            node.id: Instance(
                ingress=ingress_of(node, groups), elastic=provisioned[node.id].elastic
            )
            for node in cluster_plan.nodes
        },
        declared=dict(_declarations(spec, cluster_plan, provisioned, attributes)),
        connected=_connected(spec),
        certificates=secured_plan.certificates,
    )


def node_user_data(
    planned: AwsPlan,
    spec: AwsSpec,
    stack: str,
    id: int,
    cluster_id: str,
    volume: str,
    parameter: str,
    versions: SecretVersions = NO_SECRETS,
    leaving: Collection[str] = (),
) -> str:
    """What the instance of node ``id`` of ``stack`` boots with; ``volume`` is the id of its data
    volume, ``parameter`` the SSM parameter that it reports in, ``versions`` those of its secrets of
    `security`, and ``leaving`` are listeners whose clients it reports, where the text has room for
    that. Raises EarshotError."""
    node = planned.plan.node(id)
    boot = Boot(
        system=System.AMAZON_LINUX_2023,
        archive=spec.archive,
        volume=volume,
        cluster_id=cluster_id,
        report=ssm_report(parameter, spec.region),
        heap=spec.heap,
        secrets=tuple(
            ssm_secret(name, source, spec.region)
            for name, source in _pinned(spec, stack, id, versions).items()
        ),
        version=versions.digest,
        makes_users=spec.security is not None and makes_users(spec, id),
        leaving={
            listener.name: listener.bind_port
            for listener in node.listeners
            if listener.name in leaving
        },
        client=spec.client,
        ready_seconds=spec.ready_seconds,
    )
    try:
        return user_data(planned.plan, node, boot)
    except EarshotError:
        if not boot.leaving:
            raise
        # a change must not end because there is no room to watch it
        return user_data(planned.plan, node, boot.model_copy(update={"leaving": {}}))


def parameters_of(spec: AwsSpec, stack: str, id: int) -> dict[str, str]:
    """By the file of node ``id`` of ``stack``, the SSM parameter that it alone, and who makes the
    stack, may read."""
    given = {name: source.replace("{id}", str(id)) for name, source in spec.secrets.items()}
    secrets = node_secrets(spec, id)
    return given | {name: secret_parameter(stack, what) for name, what in secrets.items()}


def _pinned(spec: AwsSpec, stack: str, id: int, versions: SecretVersions) -> dict[str, str]:
    """By file, the parameter with the number of its version, as `ssm:GetParameter` takes it."""
    numbers = {secret_parameter(stack, what): number for what, number in versions.numbers.items()}
    return {
        name: f"{source}:{numbers[source]}" if source in numbers else source
        for name, source in parameters_of(spec, stack, id).items()
    }


def report_parameter(stack: str, name: str) -> str:
    """The SSM parameter in which the node called ``name`` reports."""
    return f"/earshot/{stack}/{name}"


def _check_given(name: str, given: ProvisionedNames, dns: VpcDns) -> None:
    """An attribute of the VPC that is off shows as an empty name, which is a value like others."""
    off = f"; {' and '.join(dns.off)} of the VPC: off" if dns.off else ""
    for what, value in (("private", given.private_name), ("public", given.public_name)):
        if value == "":
            raise EarshotError(
                f"{name}: its {what} DNS name",
                observed=f"AWS gave it none{off}",
                allowed="a name, which takes enableDnsSupport and enableDnsHostnames of the VPC",
                remedy="set both attributes on the VPC, or use `naming: zone`",
            )


def _names(given: ProvisionedNames, zone: str) -> NodeNames:
    hosts: dict[Scope, HostOrMarker] = {
        Scope.CONTROLLER: given.private_name,
        Scope.INTERNAL: given.private_name,
        Scope.HOST: LOCALHOST,
    }
    if given.public_name is not None:
        hosts[Scope.EXTERNAL] = given.public_name
    return NodeNames(hosts=hosts, log_dir=LOG_DIR, rack=zone, addresses=given.addresses)


def _connected(spec: AwsSpec) -> tuple[ConnectedVpc, ...]:
    return tuple(
        ConnectedVpc(
            name=name,
            id=vpc.id,
            cidr=vpc.cidr,
            zone=spec.zone.name if spec.zone is not None else "",
            is_associated=vpc.associate if spec.zone is not None else None,
            is_routed=vpc.routed,
            resolver=vpc.resolver,
        )
        for name, vpc in spec.connected.items()
    )


def unknown_balancer(spec: AwsSpec) -> UnknownHost:
    """The marker of the balancer's name while that is not known."""
    what = "the record of the balancer" if spec.naming == "zone" else "the balancer"
    return UnknownHost(what=what)


def _balancer(spec: AwsSpec, name: HostOrMarker | None) -> PlannedBalancer | None:
    if spec.expose is None:
        return None
    host = name or spec.expose.consumers_name(spec.zone) or unknown_balancer(spec)
    return PlannedBalancer(host, spec.expose.path, BALANCER, spec.expose.private_link)


def _declarations(
    spec: AwsSpec, plan: ClusterPlan, given: Mapping[int, ProvisionedNames], dns: VpcDns
) -> Iterator[tuple[EvidenceKey, Declaration]]:
    for node in plan.nodes:
        for listener in node.listeners:
            for scope in listener.scopes if isinstance(listener.host, str) else ():
                host = str(listener.host)
                if listener.front is not None and listener.front.private_link:
                    why = "the private zone of each VPC with an endpoint of this stack's service"
                    yield (listener.name, scope, host), Declaration(why, elsewhere=True)
                elif listener.front is not None and listener.front.group:
                    why = "the balancer of this stack"
                    if spec.naming == "zone":
                        why = f"record {host}, which leads to the balancer of this stack"
                    yield (listener.name, scope, host), Declaration(why)
                elif declared := _declared(spec, host, scope, given[node.id], dns):
                    yield (listener.name, scope, host), declared


def _declared(
    spec: AwsSpec, host: str, scope: Scope, given: ProvisionedNames, dns: VpcDns
) -> Declaration | None:
    beyond = scope is Scope.EXTERNAL
    address = given.public_address if beyond else given.private_address
    if scope is Scope.HOST or not isinstance(address, str):
        return None
    if spec.naming == "aws":
        public = given.public_address
        elastic = public if isinstance(public, str) else ""
        interface = Interface(spec.region, str(given.private_address), elastic)
        return declaration(host, scope, interface, dns)
    if spec.zone is None or host != (given.public_name if beyond else given.private_name):
        return None
    if beyond:
        why = f"record {host} in zone {spec.zone.public_zone_id}"
    elif dns.off:
        return None  # Amazon's resolver answers for no private zone then
    else:
        why = f"record {host} in the private zone {spec.zone.name} of the VPC"
    return Declaration(why, (address,))


def _notes(spec: AwsSpec) -> Iterator[str]:
    if spec.elastic_ips > ELASTIC_QUOTA:
        yield (
            f"{spec.elastic_ips} Elastic IPs are needed in {spec.region}; "
            f"AWS allows {ELASTIC_QUOTA} before one asks for more"
        )
    if spec.clients.anywhere:
        yield "clients.anywhere: every address of the internet may connect to external listeners"
    if spec.expose is not None and EVERYONE in spec.expose.principals.values():
        yield "expose.principals: every account of AWS may ask for an endpoint; accept known ones"
    for name, reason in spec.clear_text.items():
        yield f"{name}: for scope external without TLS ({reason})"
