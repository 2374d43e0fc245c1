"""Plans brokers on EC2 instances: their names, security groups, and the names that AWS declares."""

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
"""The name of the validator in the VPC, and of its security group."""
ELASTIC_QUOTA = 5
"""AWS's default quota of Elastic IPs per region:
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/elastic-ip-addresses-eip.html"""

HostOrMarker = str | UnknownHost
"""A value, or a marker for the resource that will provide it."""


@dataclass(frozen=True)
class ProvisionedNames:
    """The names and addresses that AWS assigned to one node. Public ones are None without an
    Elastic IP."""

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
        all_addresses = (self.private_address, *self.elastic)
        return tuple(address for address in all_addresses if isinstance(address, str))


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
        public_names = (public, elastic) if spec.is_public(id) else (None, None)
        names_by_id[id] = ProvisionedNames(private, interface, *public_names)
    return names_by_id


def planned(spec: AwsSpec, _stack: str, state: Path) -> AwsPlan:
    """The plan of ``spec`` before its resources exist. Raises EarshotError.

    ``state`` is the folder of the stack's files.
    """
    return plan_aws(spec, root=state / "kafka")


def plan_aws(
    spec: AwsSpec,
    provisioned: Mapping[int, ProvisionedNames] | None = None,
    dns: VpcDns | None = None,
    *,
    balancer: HostOrMarker | None = None,
    root: Path = Path(),
) -> AwsPlan:
    """The plan of ``spec``.

    ``provisioned`` are the nodes' names by id (default: unknown), ``dns`` the DNS attributes of the
    VPC (default: both on, as in the stack's own VPC), ``balancer`` is the name of the balancer of
    ``spec`` (default: unknown). ``root`` is the folder of the stack's cluster, whose project
    contains certificates of other authorities.

    Raises EarshotError, also for a name that AWS left empty.
    """
    provisioned = unknown_names(spec) if provisioned is None else provisioned
    attributes = dns or VpcDns(support=True, hostnames=True)
    for id, node_names in provisioned.items():
        _check_dns_names(spec.name_of(id), node_names, attributes)
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
    aws_plan: AwsPlan,
    spec: AwsSpec,
    stack: str,
    id: int,
    cluster_id: str,
    volume: str,
    parameter: str,
    versions: SecretVersions = NO_SECRETS,
    leaving: Collection[str] = (),
) -> str:
    """The user data of node ``id`` of ``stack``.

    ``volume`` is the id of its data volume, ``parameter`` the SSM parameter for its reports, and
    ``versions`` are those of its secrets of `security`. ``leaving`` are names of listeners whose
    clients it reports, if the user data has room for that. Raises EarshotError.
    """
    node = aws_plan.plan.node(id)
    boot = Boot(
        system=System.AMAZON_LINUX_2023,
        archive=spec.archive,
        volume=volume,
        cluster_id=cluster_id,
        report=ssm_report(parameter, spec.region),
        heap=spec.heap,
        secrets=tuple(
            ssm_secret(name, source, spec.region)
            for name, source in _versioned_parameters(spec, stack, id, versions).items()
        ),
        version=versions.digest,
        makes_users=spec.security is not None and makes_users(spec, id),
        leaving={
            listener.name: listener.bind_port
            for listener in node.listeners
            if listener.name in leaving
        },
        client=spec.client,
    )
    try:
        return user_data(aws_plan.plan, node, boot)
    except EarshotError:
        if not boot.leaving:
            raise
        # a lack of room for this report must not stop a change
        return user_data(aws_plan.plan, node, boot.model_copy(update={"leaving": {}}))


def parameters_of(spec: AwsSpec, stack: str, id: int) -> dict[str, str]:
    """The SSM parameters for node ``id`` of ``stack``, by file name. Only this node, and the user
    who deploys the stack, may read them."""
    user_parameters = {
        name: source.replace("{id}", str(id)) for name, source in spec.secrets.items()
    }
    secrets = node_secrets(spec, id)
    return user_parameters | {
        name: secret_parameter(stack, parameter) for name, parameter in secrets.items()
    }


def _versioned_parameters(
    spec: AwsSpec, stack: str, id: int, versions: SecretVersions
) -> dict[str, str]:
    """The parameters by file name, with `:VERSION` as `ssm:GetParameter` accepts it."""
    numbers = {
        secret_parameter(stack, parameter): number for parameter, number in versions.numbers.items()
    }
    return {
        name: f"{source}:{numbers[source]}" if source in numbers else source
        for name, source in parameters_of(spec, stack, id).items()
    }


def report_parameter(stack: str, name: str) -> str:
    """The SSM parameter for the reports of the node called ``name``."""
    return f"/earshot/{stack}/{name}"


def _check_dns_names(name: str, provisioned: ProvisionedNames, dns: VpcDns) -> None:
    """Raises EarshotError for an empty DNS name, which AWS assigns if the VPC's attributes are
    off."""
    off_text = f"; {' and '.join(dns.off)} of the VPC: off" if dns.off else ""
    for kind, value in (("private", provisioned.private_name), ("public", provisioned.public_name)):
        if value == "":
            raise EarshotError(
                f"{name}: its {kind} DNS name",
                observed=f"AWS assigned none{off_text}",
                allowed="a name, which needs enableDnsSupport and enableDnsHostnames of the VPC",
                remedy="set both attributes on the VPC, or use `naming: zone`",
            )


def _names(provisioned: ProvisionedNames, zone: str) -> NodeNames:
    hosts: dict[Scope, HostOrMarker] = {
        Scope.CONTROLLER: provisioned.private_name,
        Scope.INTERNAL: provisioned.private_name,
        Scope.HOST: LOCALHOST,
    }
    if provisioned.public_name is not None:
        hosts[Scope.EXTERNAL] = provisioned.public_name
    return NodeNames(hosts=hosts, log_dir=LOG_DIR, rack=zone, addresses=provisioned.addresses)


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
    """The marker for the unknown name of the balancer."""
    resource = "the record of the balancer" if spec.naming == "zone" else "the balancer"
    return UnknownHost(what=resource)


def _balancer(spec: AwsSpec, name: HostOrMarker | None) -> PlannedBalancer | None:
    if spec.expose is None:
        return None
    host = name or spec.expose.consumers_name(spec.zone) or unknown_balancer(spec)
    return PlannedBalancer(host, spec.expose.path, BALANCER, spec.expose.private_link)


def _declarations(
    spec: AwsSpec, plan: ClusterPlan, provisioned: Mapping[int, ProvisionedNames], dns: VpcDns
) -> Iterator[tuple[EvidenceKey, Declaration]]:
    for node in plan.nodes:
        for listener in node.listeners:
            for scope in listener.scopes if isinstance(listener.host, str) else ():
                host = str(listener.host)
                if listener.front is not None and listener.front.private_link:
                    resource = (
                        "the private zone of each VPC with an endpoint of this stack's service"
                    )
                    yield (listener.name, scope, host), Declaration(resource, elsewhere=True)
                elif listener.front is not None and listener.front.group:
                    resource = "the balancer of this stack"
                    if spec.naming == "zone":
                        resource = f"record {host}, which leads to the balancer of this stack"
                    yield (listener.name, scope, host), Declaration(resource)
                elif own_declaration := _declaration(spec, host, scope, provisioned[node.id], dns):
                    yield (listener.name, scope, host), own_declaration


def _declaration(
    spec: AwsSpec, host: str, scope: Scope, provisioned: ProvisionedNames, dns: VpcDns
) -> Declaration | None:
    is_external = scope is Scope.EXTERNAL
    address = provisioned.public_address if is_external else provisioned.private_address
    if scope is Scope.HOST or not isinstance(address, str):
        return None
    if spec.naming == "aws":
        public_address = provisioned.public_address
        elastic = public_address if isinstance(public_address, str) else ""
        interface = Interface(spec.region, str(provisioned.private_address), elastic)
        return declaration(host, scope, interface, dns)
    if spec.zone is None or host != (
        provisioned.public_name if is_external else provisioned.private_name
    ):
        return None
    if is_external:
        resource = f"record {host} in zone {spec.zone.public_zone_id}"
    elif dns.off:
        return None  # then Amazon's resolver does not answer for private zones
    else:
        resource = f"record {host} in the private zone {spec.zone.name} of the VPC"
    return Declaration(resource, (address,))


def _notes(spec: AwsSpec) -> Iterator[str]:
    if spec.elastic_ips > ELASTIC_QUOTA:
        yield (
            f"{spec.elastic_ips} Elastic IPs are needed in {spec.region}; "
            f"AWS's default quota is {ELASTIC_QUOTA}"
        )
    if spec.clients.anywhere:
        yield "clients.anywhere: every address of the internet may connect to external listeners"
    if spec.expose is not None and EVERYONE in spec.expose.principals.values():
        yield "expose.principals: every AWS account may request an endpoint; accept only known ones"
    for name, reason in spec.clear_text.items():
        yield f"{name}: for scope external without TLS ({reason})"
