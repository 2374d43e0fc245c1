"""The containers of a file: certain mistakes, each cause once, and one piece of security advice.

If Kafka or an image refuses a broker's settings, the broker does not start, and nothing else is
reported about its listeners. Advice is limited to one per file, as a file may be insecure on
purpose, and omitted for a cluster on one machine.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from earshot.facts.cluster import ClusterFacts
from earshot.facts.settings import BrokerSettings
from earshot.listeners.images import Family
from earshot.listeners.listed import shortened
from earshot.listeners.placeholders import is_known
from earshot.names.kinds import ip_of
from earshot.rules import (
    kl002_kafka,
    kl002_kafka_keys,
    kl014_clients,
    kl014_image,
    kl014_misspelt,
    kl016_replicas,
    kl016_zookeeper,
    kl019_clear_text,
    kl020_plain_passwords,
    kl022_host_verification,
)
from earshot.rules.evaluate import evaluate, rules_at
from earshot.rules.objections import known_objections
from earshot.rules.rule import AppliedAt, Finding
from earshot.sources.deployment import deployment
from earshot.sources.other_images import zookeeper_variable
from earshot.sources.redpanda import advertised_listeners
from earshot.sources.service import Service, brokers_among, with_empty
from earshot.topology.broker import Broker
from earshot.topology.model import Deployment
from earshot.topology.names import Member, Resolution, UnresolvedName

_ABOUT_CLIENTS = frozenset({kl019_clear_text.RULE.id, kl020_plain_passwords.RULE.id})


def mistakes(services: Sequence[Service]) -> tuple[Finding, ...]:
    """The findings about ``services`` with lines to write; `Finding.container` is the service."""
    check = _Check()
    findings = check(services, deployment(services))
    if not findings:
        return ()
    from earshot.checks.remedies import with_lines  # slow to import, and needed only here

    return with_lines(services, findings, check)


class _Check:
    """Checks a file, and each trial of a remedy, which changes few of its services."""

    def __init__(self) -> None:
        self._results: dict[int, tuple[Service, tuple[Finding, ...], bool]] = {}
        """(service, findings, whether it starts) by the service's `id()`; it is not hashable."""

    def __call__(self, services: Sequence[Service], whole: Deployment) -> tuple[Finding, ...]:
        kafka = {broker.service for broker in whole.brokers if broker.is_kafka}
        by_service: dict[str, tuple[Finding, ...]] = {}
        broken = set()
        for service in services:
            if service.name in kafka:
                by_service[service.name], starts = self._problems(service)
                broken |= set() if starts else {service.name}
        for broker in whole.brokers:
            if not broker.is_kafka:
                endpoints = broker.endpoints
                if endpoints is None:  # Redpanda refuses what it advertises, whatever it binds
                    service = next(one for one in services if one.name == broker.service)
                    endpoints = advertised_listeners(service)
                refused = kl002_kafka.redpanda_refusals(endpoints, "command")
                by_service[broker.service] = tuple(
                    replace(refusal, container=broker.service) for refusal in refused
                )
                broken |= {broker.service} if by_service[broker.service] else set()
        for name, lost in _lost_zookeepers(services, whole, kafka - broken):
            by_service[name] = (*by_service.get(name, ()), lost)
        for broker in whole.brokers:
            unbound = tuple(_unbound(whole, broker)) if broker.service not in broken else ()
            by_service[broker.service] = (*by_service.get(broker.service, ()), *unbound)
            broken |= {broker.service} if unbound else set()
        for name, shared in _replicas(services, whole, whole.by_service.keys() - broken):
            by_service[name] = (*by_service.get(name, ()), shared)
        clients = tuple(
            finding
            for service in services
            if service.name not in kafka
            for finding in _client_refusals(service)
        )
        of_kafka = {*by_service, *(client.service for client in whole.bootstraps)}
        networks = tuple(
            finding
            for service in services
            if service.name in of_kafka
            for finding in kl014_image.network_refusals(service.name, service.container)
        )
        facts = ClusterFacts(plan=None, deployment=_without_endpoints(whole, broken))
        between = evaluate(facts, rules_at(AppliedAt.FILE))
        own = (finding for findings in by_service.values() for finding in findings)
        return (*own, *clients, *networks, *between)

    def _problems(self, service: Service) -> tuple[tuple[Finding, ...], bool]:
        if id(service) not in self._results:
            self._results[id(service)] = service, *problems(service)
        return self._results[id(service)][1:]


def _client_refusals(service: Service) -> Iterator[Finding]:
    if service.is_plain and not service.files:
        yield from kl014_clients.refusals(service.name, service.container)


def has_refused_client(services: Iterable[Service]) -> bool:
    """Whether a client with variables does not start. A container without any may only be the
    source of files (`docker cp`)."""
    return any(service.container.env and any(_client_refusals(service)) for service in services)


def _lost_zookeepers(
    services: Sequence[Service], whole: Deployment, names: Collection[str]
) -> Iterator[tuple[str, Finding]]:
    """A finding for each of the brokers ``names`` that reaches no ZooKeeper."""
    known = kl016_zookeeper.zookeepers(whole.containers)
    plain = {service.name: service for service in services if service.is_plain}
    known = {name: port if name in plain else None for name, port in known.items()}
    for service in plain.values():
        if service.name not in names:
            continue
        settings, container = service.settings, service.container
        own_variable = zookeeper_variable(container)
        # an unknown image may contain a ZooKeeper
        if container.unknown or (container.family is Family.UNKNOWN and not own_variable):
            continue
        if settings.is_zookeeper:
            connect = settings.values[kl016_zookeeper.KEY]
            variable = own_variable or kl016_zookeeper.KEY
            for lost in kl016_zookeeper.lost_zookeeper(
                whole, service.name, connect, known, variable=variable
            ):
                yield service.name, lost


def _replicas(
    services: Sequence[Service], whole: Deployment, names: Collection[str]
) -> Iterator[tuple[str, Finding]]:
    """A finding for each of the brokers ``names`` whose replicas have one id or address."""
    for service in services:
        if service.replicas and service.name in names:
            broker, container = whole.by_service[service.name], service.container
            settings = service.settings if broker.is_kafka else None
            has_own_command = bool(service.command) and settings is not None
            is_plain = not (has_own_command or service.is_built or container.unknown)
            values = settings.values if settings else {}
            advertised = [text for key, text in values.items() if key.startswith("advertised.")]
            for shared in kl016_replicas.same_nodes(
                broker,
                service.replicas,
                " ".join((*advertised, *service.command, service.redpanda)),
                has_zookeeper=settings is not None and settings.is_zookeeper,
                certain=is_plain and broker.is_image_known and not container.has_own_script,
            ):
                yield service.name, shared


def _unbound(whole: Deployment, broker: Broker) -> Iterator[Finding]:
    """A finding for the first listener that binds a name that is certainly not its container's."""
    if broker.container.on_host_network or not broker.is_kafka:
        return
    for endpoint in broker.endpoints or ():
        host = endpoint.bind.host
        if not host or ip_of(host) is not None or not is_known(host):
            continue
        meant = whole.names.resolve(broker.service, host)
        if isinstance(meant, UnresolvedName):
            reason = meant.because
        elif isinstance(meant, Resolution) and not meant.doubt:
            target_names = [
                target.service for target in meant.targets if isinstance(target, Member)
            ]
            if whole.names.owner(broker.service) in target_names or not target_names:
                continue
            reason = f"{host} is {shortened(target_names)}"
        else:
            continue
        yield kl002_kafka.RULE.finding(
            f"listeners: {endpoint.name} listens on {endpoint.bind}, and {reason}; Kafka does not "
            "start",
            "0.0.0.0, or a name of the container",
            listener=endpoint.name,
            container=broker.service,
            remedy=f"write {endpoint.name}://0.0.0.0:{endpoint.bind.port}, and keep what it "
            "advertises",
            inputs=("listeners",),
        )
        return


def problems(service: Service) -> tuple[tuple[Finding, ...], bool]:
    """The reasons why a broker does not start, or else its unusable addresses; and whether it
    starts."""
    settings = service.settings
    refused = tuple(refusals(service, settings))
    starts = not any(refusal.is_certain_error for refusal in refused)
    return (*refused, *(unusable(service, settings) if starts else ())), starts


def unusable(service: Service, settings: BrokerSettings) -> Iterator[Finding]:
    """Findings for addresses that Kafka accepts and nothing can bind or connect to."""
    container = service.container
    derived = not service.properties and "listeners" not in container.settings.values
    blank = (
        container.property_of(name) for name, text in container.env.items() if not text.strip()
    )
    unverified = {key: "" for key in blank if key.endswith(kl022_host_verification.KEY)}
    settings = replace(settings, values={**settings.values, **unverified})
    for finding in kl002_kafka.unusable(settings.read(), has_keys=True):
        if not (derived and finding.inputs == ("listeners",)):  # derived from the advertised list
            yield replace(finding, container=service.name)


def refusals(service: Service, settings: BrokerSettings) -> Iterator[Finding]:
    """The first reason why the image's script, or Kafka, does not start.

    If it starts, warnings for a misspelt variable and for values that reach Kafka changed.
    """
    container, by_variables = service.container, service.is_plain and not service.properties
    misspelt = [*kl014_misspelt.misspelt_variables(container)] if by_variables else []
    if (refusal := next(_refusals(service, settings), None)) is not None:
        cause = next((variable for variable in misspelt if variable.is_cause_of(refusal)), None)
        yield replace(cause.as_cause_of(refusal) if cause else refusal, container=service.name)
        return
    warnings = (*(item.finding() for item in misspelt[:1]), *kl014_image.changed(container))
    yield from (replace(warning, container=service.name) for warning in warnings)


def _refusals(service: Service, settings: BrokerSettings) -> Iterator[Finding]:
    """Refusals of a command that is an option, of the image's script, of Kafka, and of Kafka for a
    listener without a login."""
    if option := service.option_as_program:
        yield kl014_image.RULE.finding(
            f"runs {option} as the program of {service.container.image}, which does not start",
            "options of docker run before the image, and a program as the first word after it",
            f"move {option} and the options behind it before the image",
            inputs=("command",),
            source="https://docs.docker.com/reference/cli/docker/container/run/",
        )
    yield from kl014_image.refusals(service.container, settings, plain=service.is_plain)
    yield from kl002_kafka.startup_refusals(settings)
    if (empty := with_empty(service, settings)) is not settings:
        yield from kl002_kafka.startup_refusals(empty)
    for login in kl002_kafka_keys.without_login(service.container, settings):
        yield kl002_kafka.as_finding(login)


def _without_endpoints(whole: Deployment, broken: set[str]) -> Deployment:
    """``whole`` with unknown endpoints for ``broken`` brokers, which are reported already."""
    brokers = tuple(
        replace(broker, endpoints=None) if broker.service in broken else broker
        for broker in whole.brokers
    )
    return replace(whole, brokers=brokers)


def advice_on_settings(settings: BrokerSettings) -> tuple[Finding, ...]:
    """The most important advice on one broker's settings, or none."""
    return _first(_findings(settings))


def advice_on_services(
    services: Sequence[Service], reported: Iterable[Finding] = (), excluded: Iterable[str] = ()
) -> tuple[Finding, ...]:
    """The most important advice on the brokers among ``services``, without those that are
    ``excluded`` and those with a ``reported`` finding."""
    containers = {finding.container for finding in reported} | set(excluded)
    all_containers = [service.container for service in services]
    advice: list[Finding] = []
    for service in brokers_among(services):
        if service.name in containers:
            continue
        settings = service.settings
        addresses = settings.values.get("advertised.listeners", "")
        hosts = [part.partition("://")[2].rpartition(":")[0] for part in addresses.split(",")]
        is_among_containers = any(
            container.has_name(host) for container in all_containers for host in hosts
        )
        silent = _ABOUT_CLIENTS if is_among_containers else ()
        candidates = (finding for finding in _findings(settings) if finding.rule not in silent)
        advice += [replace(candidate, container=service.name) for candidate in candidates]
    return _first(advice)


def _findings(settings: BrokerSettings) -> Iterator[Finding]:
    view = settings.read()
    for rule in rules_at(AppliedAt.FILE):
        if rule.objections is not None:
            yield from (
                rule.finding_for(objection) for objection in known_objections(rule.objections, view)
            )


def _first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    weights = {rule.id: rule.weight for rule in rules_at(AppliedAt.FILE)}
    by_weight = sorted(findings, key=lambda finding: -weights[finding.rule])
    rules = [*dict.fromkeys(finding.rule for finding in by_weight)]
    more = f" (there is more about security: {', '.join(rules[1:])})" if rules[1:] else ""
    return tuple(replace(first, observed=f"{first.observed}{more}") for first in by_weight[:1])
