"""All containers of a file that others wrote: what is certainly wrong with them, each cause once.

What Kafka or an image refuses stands alone: of the listeners of a broker that does not start,
nothing more is said.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from earshot.errors import without_users
from earshot.facts.cluster import ClusterFacts
from earshot.facts.deployment import Deployment
from earshot.facts.settings import BrokerSettings, ForeignSettings, Unreadable
from earshot.listeners.grammar import Bad
from earshot.rules import (
    kl002_kafka,
    kl014_misspelt,
    kl014_start_script,
    kl015_clients,
    kl016_nodes,
    kl017_published,
)
from earshot.rules.registry import Finding
from earshot.sources.compose import Service
from earshot.sources.deployment import deployment, settings_of, with_empty

OLDEST = (3, 3)
"""Of what an unknown image may hold, as far as the rules know Kafka."""
_BETWEEN = (kl015_clients.RULE, kl016_nodes.RULE, kl017_published.RULE)


def mistakes(services: Sequence[Service]) -> tuple[Finding, ...]:
    """What is wrong with ``services``, and what to write; `Finding.container` is the service."""
    check = _Check()
    found = check(services, deployment(services))
    if not found:
        return ()
    from earshot.checks.remedies import with_lines  # slow to import, and for mistakes alone

    return with_lines(services, found, check)


class _Check:
    """Checks a file, and again each trial of a remedy, which changes few of its services."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Service, tuple[Finding, ...]]] = {}
        """By identity, for a service cannot be hashed: itself, and why it does not start."""

    def __call__(self, services: Sequence[Service], whole: Deployment) -> tuple[Finding, ...]:
        kafka = {item.service for item in whole.brokers if item.is_kafka}
        by_service = {
            service.name: found
            for service in services
            if service.name in kafka and (found := self._refusals(service))
        }
        for item in whole.brokers:
            if not item.is_kafka:
                refused = kl002_kafka.redpanda_refusals(item.endpoints or (), "command")
                by_service[item.service] = tuple(
                    replace(it, container=item.service) for it in refused
                )
        broken = {
            name for name, found in by_service.items() if any(it.is_certain_error for it in found)
        }
        facts = ClusterFacts(plan=None, deployment=_without(whole, broken))
        between = (item for rule in _BETWEEN for item in rule.check(facts))
        return (*(item for found in by_service.values() for item in found), *between)

    def _refusals(self, service: Service) -> tuple[Finding, ...]:
        if id(service) not in self._known:
            self._known[id(service)] = service, tuple(refusals(service, settings_of(service)))
        return self._known[id(service)][1]


def refusals(service: Service, settings: BrokerSettings) -> Iterator[Finding]:
    """Why the image, or Kafka in it, does not start; the first of both that says so.

    Where nothing keeps it from that, a variable that sets nothing, as its name is misspelt.
    """
    plain = not (service.command or service.is_built)
    found = [*kl014_start_script.refusals(service.container, settings, plain=plain)]
    found = found or [*kafka_refusals(settings)]
    empty = with_empty(service, settings)
    if empty is not settings:
        found = found or [*kafka_refusals(empty)]
    by_variables = plain and not service.properties
    misspelt = [*kl014_misspelt.misspelt(service.container)] if by_variables else []
    for item in found[:1]:
        cause = next((it for it in misspelt if it.explains(item)), None)
        yield replace(cause.as_cause_of(item) if cause else item, container=service.name)
    for cause in misspelt[:1] if not found else ():
        yield replace(cause.finding(), container=service.name)


def _without(whole: Deployment, broken: set[str]) -> Deployment:
    """What is said about a broker that does not start is said already."""
    brokers = tuple(
        replace(item, endpoints=None) if item.service in broken else item for item in whole.brokers
    )
    return replace(whole, brokers=brokers)


def kafka_refusals(settings: BrokerSettings) -> tuple[Finding, ...]:
    """Why Kafka does not start with ``settings``, as far as they are known."""
    found = tuple(_kafka(settings.read()))
    if settings.release is None:  # what an older Kafka takes is not certain
        older = {item.observed for item in _kafka(settings.read(OLDEST))}
        found = tuple(item for item in found if item.observed in older)
    return found


def _kafka(view: ForeignSettings) -> Iterator[Finding]:
    for key, item in _unread(view):
        yield kl002_kafka.RULE.finding(
            f"{key}: {without_users(item.error.object)} {item.error.observed}",
            item.error.allowed,
            listener=item.name or None,
            remedy=item.error.remedy,
            inputs=(key,),
        )
    for objection in kl002_kafka.refusals(view):
        observed = f"{objection.key}: {objection.observed}; Kafka does not start"
        yield replace(objection.finding(kl002_kafka.RULE), observed=observed)


def _unread(view: ForeignSettings) -> Iterator[tuple[str, Bad]]:
    readers = {
        "listeners": view.grammar.read_listeners,
        "advertised.listeners": view.grammar.read_listeners,
        "listener.security.protocol.map": view.grammar.read_protocols,
        "controller.quorum.voters": view.grammar.read_voters,
        "controller.quorum.bootstrap.servers": view.grammar.read_servers,
        "controller.listener.names": view.grammar.read_names,
    }
    for key, read in readers.items():
        if key not in view.values:
            continue
        try:
            text = view.text(key)
        except Unreadable:
            continue
        for item in read(text):
            if isinstance(item, Bad):
                yield key, item
