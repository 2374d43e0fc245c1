"""Adopts a file: its listeners, mistakes and open questions, and the cluster for a stack file.

Without an answer to every question there is no cluster; nothing is guessed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from earshot.adopt.cluster_document import Leftover, docker_document, leftovers, local_document
from earshot.checks import deployment
from earshot.checks.lone_settings import is_of_broker, mistakes_in_properties
from earshot.config.document import read_spec
from earshot.errors import EarshotError, SpecError
from earshot.facts.settings import controller_names, readable_entries
from earshot.json_object import Document, JsonObject
from earshot.listeners.grammar import Bad, read_listeners
from earshot.listeners.listed import numbered
from earshot.listeners.terms import CLIENT_SCOPES, Scope
from earshot.project import CLUSTER_KEY
from earshot.rules.rule import Finding
from earshot.sources.compose import Compose
from earshot.sources.kafka_broker import KafkaBroker, brokers_in, read_broker
from earshot.sources.parsed_listener import ParsedListener
from earshot.sources.service import Service

LOOKED_UP_LATER = tuple(
    f"{rule}: names are looked up by the policy pack, with the DNS servers of their clients"
    for rule in ("KL011", "KL012")
)

Scopes = Mapping[str, tuple[Scope, ...]]


@dataclass(frozen=True)
class AdoptedListener:
    """One listener of one broker, and the scopes that it serves."""

    broker: str
    id: int
    listener: ParsedListener
    published: tuple[str, ...]


@dataclass(frozen=True)
class Question:
    """A fact about a listener that the source does not show, and how to decide it."""

    broker: str
    id: int
    listener: str
    why: str
    remedy: str


@dataclass(frozen=True)
class Adoption:
    """The result. ``document`` is `earshot:cluster`; None with open questions."""

    source: str
    listeners: tuple[AdoptedListener, ...]
    undecided: tuple[Question, ...]
    mistakes: tuple[Finding, ...]
    unchecked: tuple[str, ...]
    leftovers: tuple[Leftover, ...]
    notes: tuple[str, ...]
    document: Document | None
    refusal: str = ""
    """Why ``document`` is not a valid cluster although no rule is broken; else empty."""

    @property
    def exit_code(self) -> int:
        """1 with open questions, broken rules or without a valid cluster; else 0."""
        broken = _are_broken(self.mistakes) or bool(self.refusal)
        return 1 if broken or self.undecided or self.document is None else 0


def adopt_compose(
    compose: Compose,
    as_checked: Compose,
    file_name: str,
    chosen: Sequence[str] = (),
    scopes: Scopes | None = None,
) -> Adoption:
    """The brokers of a compose file as a stack of placement `docker`. Raises EarshotError.

    ``as_checked`` is the same file, read leniently like by `earshot lint`: the empty text of an
    unset variable is not a mistake, and mounted properties files are read.
    """
    brokers = brokers_in(compose.services, chosen, scopes or {})
    if not any(broker.is_broker for broker in brokers):
        raise EarshotError(
            file_name, observed="runs controllers only", allowed="at least one broker"
        )
    names = [broker.name for broker in brokers]
    notes = [f"{name} is not set, so it is read as empty text" for name in compose.missing]
    notes += [
        f"service {service.name}: runs {service.replicas} times in the source, with one id and one "
        "advertised address; it becomes one broker"
        for service in compose.services
        if service.replicas not in ("", "1") and service.name in names
    ]
    findings = deployment.mistakes(as_checked.services)
    mistakes = tuple(finding for finding in findings if not chosen or finding.container in names)
    return _adoption(file_name, brokers, "docker", compose.services, notes, scopes or {}, mistakes)


def adopt_properties(text: str, file_name: str, scopes: Scopes | None = None) -> Adoption:
    """The broker of a properties file as a stack of placement `local`. Raises EarshotError."""
    broker = read_broker(text, file_name, scopes or {})
    if not broker.is_broker:
        raise EarshotError(file_name, observed="is a controller only", allowed="a broker")
    mistakes = mistakes_in_properties(text) if is_of_broker(text) else ()
    return _adoption(file_name, (broker,), "local", (), [], scopes or {}, mistakes)


def _adoption(
    file_name: str,
    brokers: Sequence[KafkaBroker],
    placement: str,
    services: Sequence[Service],
    notes: list[str],
    scopes: Scopes,
    mistakes: tuple[Finding, ...],
) -> Adoption:
    listeners = []
    for broker in brokers:
        for parsed in broker.listeners:
            published = broker.container.published_at(parsed.bind.port) if broker.container else ()
            ports = tuple(map(str, published))
            listeners.append(AdoptedListener(broker.name, broker.id, parsed, ports))
    known_names = {listener.listener.name for listener in listeners}
    for name in scopes:
        if name not in known_names:
            raise EarshotError(
                f"--scope {name}",
                observed=f"{file_name} has no such listener",
                allowed=", ".join(sorted(known_names)) or "none: no listener could be read",
            )
    undecided = tuple(question for broker in brokers for question in _questions(broker))
    clients = [
        listener
        for listener in listeners
        if Scope.CONTROLLER not in listener.listener.audience.scopes
    ]
    document: JsonObject | None = None
    document_notes: tuple[str, ...] = ()
    if clients and not undecided:
        build = docker_document(brokers) if placement == "docker" else local_document(brokers[0])
        document, document_notes = build
    return Adoption(
        source=file_name,
        listeners=tuple(listeners),
        undecided=undecided,
        mistakes=mistakes,
        unchecked=LOOKED_UP_LATER,
        leftovers=leftovers(brokers, services),
        notes=(*notes, *_unadvertised(brokers), *document_notes),
        document=document,
        refusal="" if document is None or _are_broken(mistakes) else _refusal(document),
    )


def _are_broken(mistakes: Iterable[Finding]) -> bool:
    return any(mistake.is_certain_error for mistake in mistakes)


def _refusal(document: Document) -> str:
    """Why ``document`` is not a valid cluster; empty if it is."""
    try:
        read_spec(document, CLUSTER_KEY)
    except SpecError as error:
        return str(error)
    return ""


def _questions(broker: KafkaBroker) -> Iterator[Question]:
    """Listeners that cannot be read, and those whose clients are unknown."""
    for key in ("listeners", "advertised.listeners"):
        for name, why in _unread(broker.values.get(key), key != "listeners"):
            remedy = "fix it in the source, and adopt that"
            yield Question(broker.name, broker.id, name or "?", f"{key}: {why}", remedy)
    for name in _self_named(broker.values):
        why = "advertises the machine's own name, which the source does not show"
        remedy = "set advertised.listeners in the source, and adopt that"
        yield Question(broker.name, broker.id, name, why, remedy)
    for listener in broker.listeners:
        if not listener.audience.scopes:
            name, why = listener.name, listener.audience.why
            remedy = f"--scope {name}={'|'.join(CLIENT_SCOPES)}"
            yield Question(broker.name, broker.id, name, why, remedy)


def _unread(text: str | None, is_advertised: bool) -> Iterator[tuple[str, str]]:
    """Unusable entries of a listener list: their listeners, with the reasons."""
    for entry in read_listeners(text) if text is not None else ():
        if isinstance(entry, Bad):
            yield entry.name, f"{entry.error.object} {entry.error.observed}"
        elif is_advertised and not entry[1].host:
            yield entry[0], f"{entry[0]}://:{entry[1].port} has no host"


def _self_named(values: Mapping[str, str]) -> Iterator[str]:
    """Listeners without a host, for which Kafka advertises the machine's name."""
    if {"advertised.listeners", "advertised.host.name", "host.name"} & values.keys():
        return
    for name, bind in readable_entries(read_listeners(values.get("listeners", ""))):
        if not bind.host and name not in controller_names(values):
            yield name


def _unadvertised(brokers: Sequence[KafkaBroker]) -> Iterator[str]:
    brokers_of: dict[str, list[int]] = {}
    for broker in brokers:
        known_names = {listener.name for listener in broker.listeners}
        known_names |= {question.listener for question in _questions(broker)}
        known_names |= {*controller_names(broker.values)}
        for name, _ in readable_entries(read_listeners(broker.values.get("listeners", ""))):
            if name not in known_names:
                brokers_of.setdefault(name, []).append(broker.id)
    for name, ids in brokers_of.items():
        yield (
            f"{numbered('broker', ids)}: {name} is bound and not advertised, so no client uses it; "
            "it is left out"
        )
