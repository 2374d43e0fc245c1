"""The containers of a Pulumi program: each at its registration, all together at the end.

At registration a container's own settings are checked, and its advertised names are resolved by
its networks or by DNS. At the end all containers of one Docker engine, with the networks and images
of the stack, are checked for reachability by the rules for a Compose file.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from earshot.checks.deployment import advice_on_services, mistakes
from earshot.checks.instance_stack import StackEvaluation
from earshot.facts.cluster import ClusterFacts
from earshot.facts.settings import readable_entries
from earshot.listeners.grammar import read_voters
from earshot.listeners.images import Family, is_unnamed
from earshot.listeners.terms import Scope
from earshot.names.evidence import Declaration, Evidence, EvidenceKey, EvidenceKind, gather
from earshot.names.kinds import ip_of
from earshot.names.policy import ResolverPolicy, SystemResolvers
from earshot.rules import kl002_kafka, kl012_same_broker, kl014_image
from earshot.rules.evaluate import CheckResult, evaluate, remarks, rules_at
from earshot.rules.rule import AppliedAt, Finding, FindingState, Rule, Severity
from earshot.sources.container import facts_of
from earshot.sources.docker_container import in_stack
from earshot.sources.image_settings import hidden_variables
from earshot.sources.open_listeners import open_listeners
from earshot.sources.service import Service, brokers_among
from earshot.sources.stack_resources import RegisteredStack
from earshot.topology.container import DEFAULT_BRIDGES, MOUNTED, Container
from earshot.topology.names import is_gateway

_REFUSALS = frozenset({kl002_kafka.RULE.id, kl014_image.RULE.id})
_OF_ONE = rules_at(AppliedAt.CONTAINER)
_SCOPE_INPUTS = ("advertised.listeners", "ports")
"""Inputs of findings of KL017 that depend, for an unknown image, on a listener's scopes."""
_INSIDE = (Scope.INTERNAL, Scope.CONTROLLER)


@dataclass(frozen=True)
class RegisteredContainer:
    """One container, and the Docker engine that runs it."""

    urn: str
    service: Service
    engine: str
    behind_gate: bool = False
    """It is earshot's own: the gate has checked its plan and reported its warnings."""


class ContainerRun:
    """The containers of one run, in the order of their registration."""

    def __init__(self) -> None:
        self._registered: dict[str, RegisteredContainer] = {}
        self._reported: dict[str, tuple[Finding, ...]] = {}
        self._asked = SystemResolvers()

    def register(
        self,
        registered: RegisteredContainer,
        policy: ResolverPolicy,
        addresses: tuple[str, ...] | None = None,
    ) -> CheckResult:
        """The findings about ``registered`` itself.

        ``policy`` defines the resolvers for advertised names. ``addresses`` are those of the
        engine's machine, an empty tuple if unknown. Without ``addresses`` each name that resolves
        gives a finding of state unknown.
        """
        self._registered[registered.urn] = registered
        if not brokers_among([registered.service]):
            return CheckResult(() if registered.behind_gate else _undecided(registered.service))
        findings = _own_findings(registered.service)
        self._reported[registered.urn] = findings
        if registered.behind_gate:
            return CheckResult(tuple(finding for finding in findings if finding.is_certain_error))
        facts = _with_names(registered.service.container, policy, self._asked, addresses or ())
        compares = addresses != ()
        rules = [rule for rule in _OF_ONE if compares or rule is not kl012_same_broker.RULE]
        name_findings = tuple(_name_findings(facts, registered.service.name, rules))
        return CheckResult(
            (*_not_known_yet(registered.service), *findings, *name_findings), remarks(facts)
        )

    @property
    def brokers(self) -> tuple[str, ...]:
        """The URNs of the containers that run a broker or controller."""
        return tuple(
            urn for urn, container in self._registered.items() if brokers_among([container.service])
        )

    def evaluate_stack(self, stack: RegisteredStack) -> StackEvaluation:
        """The findings about all containers of each engine, without those of registration."""
        findings: list[tuple[str, Finding]] = []
        remarks: list[tuple[str, str]] = []
        # registration order varies: of two that clash, always report the same one
        registered = sorted(self._registered.values(), key=lambda container: container.urn)
        for engine in dict.fromkeys(container.engine for container in registered):
            containers = [container for container in registered if container.engine == engine]
            services = _with_unique_names(
                {
                    container.urn: in_stack(container.service, container.urn, stack)
                    for container in containers
                }
            )
            findings += self._stack_findings(containers, services)
            remarks += _unread_listeners(containers, services)
        return StackEvaluation(tuple(findings), tuple(remarks))

    def _stack_findings(
        self, containers: Sequence[RegisteredContainer], services: Mapping[str, Service]
    ) -> Iterator[tuple[str, Finding]]:
        urns = {service.name: urn for urn, service in services.items()}
        behind_gate = {container.urn for container in containers if container.behind_gate}
        gated = {name for name, urn in urns.items() if urn in behind_gate}
        whole = tuple(services.values())
        findings = mistakes(whole)
        for finding in (*findings, *advice_on_services(whole, findings, gated)):
            urn = urns[finding.container]
            if finding.container in gated and not finding.is_certain_error:
                continue
            if not any(_is_same(finding, reported) for reported in self._reported.get(urn, ())):
                yield urn, finding


def _unread_listeners(
    containers: Iterable[RegisteredContainer], services: Mapping[str, Service]
) -> Iterator[tuple[str, str]]:
    """A remark, with the URN, on each broker whose listeners its inputs set where nothing reads
    them; unknown inputs are findings of their registration."""
    for container in containers:
        service = services[container.urn]
        if container.behind_gate or any(_not_known_yet(service)):
            continue
        for _, reason in open_listeners([service]):
            yield container.urn, f"container {service.name}: {reason}; not checked"


def _is_same(finding: Finding, reported: Finding) -> bool:
    """Whether both findings are of one rule and listener, or both prevent a start."""
    if {finding.rule, reported.rule} <= _REFUSALS:
        return True
    return (finding.rule, finding.listener) == (reported.rule, reported.listener)


def _own_findings(service: Service) -> tuple[Finding, ...]:
    """The findings that hold whatever other containers exist."""
    container = replace(service.container, open_networks=True)
    is_known = container.family is not Family.UNKNOWN
    return tuple(
        mistake
        for mistake in mistakes([replace(service, container=container)])
        if mistake.rule in {rule.id for rule in _OF_ONE}
        and (is_known or mistake.inputs != _SCOPE_INPUTS)
    )


def _with_unique_names(services: Mapping[str, Service]) -> dict[str, Service]:
    """``services`` by URN with unique names: the container's name, or else the URN.

    If a name or a network is unknown, networks may have any name.
    """
    is_open = any(
        what not in ("variables", "ports")
        for service in services.values()
        for what in service.container.unknown
    )
    used_names: set[str] = set()
    by_name = {}
    for urn, service in services.items():
        container = service.container
        has_own_name = service.name not in used_names and "its name" not in container.unknown
        name = service.name if has_own_name else urn
        used_names.add(name)
        container = replace(container, open_networks=container.open_networks or is_open)
        by_name[urn] = replace(service, name=name, container=container)
    return by_name


def _with_names(
    container: Container, policy: ResolverPolicy, asked: SystemResolvers, addresses: tuple[str, ...]
) -> ClusterFacts:
    facts = facts_of(container)
    asks = any(_is_full_name(str(listener.host)) for _, listener, _ in facts.advertised())
    evidence_by_key = evidence(facts, policy, asked) if asks else {}
    return replace(
        facts,
        evidence={key: by for key, by in evidence_by_key.items() if _is_full_name(key[2])},
        waivers=policy.waivers,
        addresses=dict.fromkeys(facts.containers, addresses) if addresses else {},
    )


def _is_full_name(host: str) -> bool:
    """Whether only DNS resolves ``host``; networks may define a short name."""
    return "." in host and ip_of(host) is None and not is_gateway(host)


def _name_findings(facts: ClusterFacts, service: str, rules: Iterable[Rule]) -> Iterator[Finding]:
    for finding in evaluate(facts, rules):
        if not _is_full_name(finding.host or ""):
            continue
        # the host may be behind a router
        mild = finding.rule == kl012_same_broker.RULE.id
        severity = Severity.WARNING if mild else finding.severity
        yield replace(finding, severity=severity, container=service, node=None)


def _not_known_yet(service: Service) -> Iterator[Finding]:
    container = service.container
    if MOUNTED in container.unknown:
        observed = f"{MOUNTED}: what they set is not read here"
        remedy = "check the file with `earshot lint`, or set its listeners in variables"
        yield _unknown(service, observed, "the broker's settings", ("uploads", "volumes"), remedy)
    unknown_inputs = [
        *hidden_variables(container),
        *(name for name in container.unknown if name != MOUNTED),
    ]
    if unknown_inputs:
        expected = "the container's variables, ports and networks, checked again with their values"
        yield _unknown(
            service, f"{', '.join(unknown_inputs)}: not known yet", expected, tuple(unknown_inputs)
        )


def _undecided(service: Service) -> tuple[Finding, ...]:
    """A finding if unknown variables may make the container a broker."""
    container = service.container
    may_be_kafka = container.family is not Family.UNKNOWN or is_unnamed(container.image)
    if "variables" not in container.unknown or not may_be_kafka:
        return ()
    observed = "variables: not known yet, so it is not clear whether a broker runs here"
    expected = "the container's variables, checked again with their values"
    return (_unknown(service, observed, expected, ("envs",)),)


def _unknown(
    service: Service,
    observed: str,
    expected: str,
    inputs: tuple[str, ...],
    remedy: str = "nothing yet: the update checks it",
) -> Finding:
    return kl014_image.RULE.finding(
        observed,
        expected,
        remedy,
        state=FindingState.UNKNOWN,
        inputs=inputs,
        container=service.name,
    )


def declarations(facts: ClusterFacts) -> dict[EvidenceKey, Declaration]:
    """The plan's names that the containers' own networks declare, for `gather`."""
    declared_hosts: dict[EvidenceKey, Declaration] = {}
    for node, listener, scope in facts.advertised():
        container = facts.containers.get(node.id)
        host = listener.host
        if container is None or not isinstance(host, str) or not container.has_name(host):
            continue
        is_own = host.lower() == container.hostname.lower()
        if joined := [
            network.name for network in container.networks if network.name not in DEFAULT_BRIDGES
        ]:
            why = f"container {container.name} has this name on network {', '.join(joined)}"
        elif is_own and _is_lone_voter(facts, node.id, scope):
            why = f"it is the hostname of container {container.name}, the one voter"
        else:
            continue
        addresses = tuple(sorted(container.addresses))
        declared_hosts[listener.name, scope, host] = Declaration(why, addresses)
    return declared_hosts


def _is_lone_voter(facts: ClusterFacts, id: int, scope: Scope) -> bool:
    """Whether the node is the only voter, which resolves its own hostname without a network."""
    if scope is not Scope.CONTROLLER:
        return False
    settings = facts.settings.get(id)
    text = settings.values.get("controller.quorum.voters", "") if settings is not None else ""
    return [voter for voter, _ in readable_entries(read_voters(text))] == [id]


def evidence(
    facts: ClusterFacts,
    policy: ResolverPolicy,
    asked: SystemResolvers | None = None,
    *,
    declared: Mapping[EvidenceKey, Declaration] | None = None,
) -> dict[EvidenceKey, Evidence]:
    """The evidence for every advertised name of nodes in containers.

    ``declared`` adds names to those that the containers' networks declare. A full name without a
    declaration, such as another Docker host's, is looked up with the resolver of scope external, as
    Docker's resolver forwards it to such servers.
    """
    if facts.plan is None:
        return {}
    declared = {**declarations(facts), **(declared or {})}
    asked = asked or SystemResolvers()
    evidence_by_key = gather(facts.plan, policy, facts.placement, declared, asked)
    external_keys = [
        (listener, scope, host)
        for (listener, scope, host), by in evidence_by_key.items()
        if by.kind is EvidenceKind.NONE and by.lookup is None
        if scope in _INSIDE and "." in host and not policy.waiver(host)
    ]
    if external_keys:
        again = gather(
            facts.plan, policy, facts.placement, declared, asked, otherwise=Scope.EXTERNAL
        )
        evidence_by_key |= {key: again[key] for key in external_keys}
    return evidence_by_key
