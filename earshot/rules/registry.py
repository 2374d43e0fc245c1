"""What a rule is, and a finding: what one rule says about one thing.

One module per rule, `klNNN_subject.py`, ends in `RULE = Rule(...)`. A check is a generator over
`ClusterFacts` that yields findings, made with `RULE.finding(...)`. It states what it observed and
what it expected, and says "unknown" (never nothing) of what it cannot check. A finding's fields
hold the facts, the text is derived.
"""

from __future__ import annotations

import ipaddress
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.listed import shortened
from earshot.listeners.terms import DEFAULT_KAFKA, Role, Scope
from earshot.names.lookup import Diagnosis
from earshot.rules.objections import Check, Objection, known_objections, strict_settings

if TYPE_CHECKING:
    from earshot.listeners.model import Listener, Node
    from earshot.names.evidence import Evidence


_COMPARE = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_NUMBERS = re.compile(r"\d+(?:\.\d+)*", re.ASCII)
_OF_A_PLAN = ("certificates", "connected", "instances")
"""Facts that say nothing without a plan."""


class Door(StrEnum):
    """Where a rule is applied."""

    PLAN = "plan"
    """The gate, `earshot plan --check` and `earshot.evaluate`."""
    FILE = "file"
    """`earshot lint`."""
    PODS = "pods"
    """Its manifests."""
    REPLICAS = "replicas"
    """Its manifests, where every replica of a pod is one node."""
    CONTAINER = "container"
    """The policy pack, when a container is registered: of what one container may break."""
    CONTAINERS = "containers"
    """At the end of a run, all containers of one Docker engine."""
    INSTANCE = "instance"
    """When an instance is registered, by its own inputs."""
    INSTANCES = "instances"
    """At the end of a run, all instances, by everything that surrounds them."""


class Severity(StrEnum):
    """What a finding is worth where nothing else is configured."""

    ERROR = "error"
    WARNING = "warning"


WAITING = "nothing yet: the update checks it"
"""The remedy of a finding of state unknown about a host that a preview does not know."""


class FindingState(StrEnum):
    """Whether the rule is broken, or cannot be checked yet."""

    VIOLATED = "violated"
    UNKNOWN = "unknown"
    """A value is not known (yet): never a violation, and never a pass."""


@dataclass(frozen=True)
class LineToWrite:
    """One line to write: what a service's ``setting`` becomes, a variable, property or key.

    ``replaces`` is the part of the value that ``value`` takes the place of; where it is empty,
    ``value`` is the whole.
    """

    service: str
    setting: str
    value: str
    replaces: str = ""

    def __str__(self) -> str:
        """`kafka: KAFKA_LISTENERS: PLAINTEXT://:9092`, `app: command: a:1 in place of b:1`."""
        part = f" in place of {self.replaces}" if self.replaces else ""
        return f"{self.service}: {self.setting}: {self.value}{part}"


@dataclass(frozen=True)
class Finding:
    """``observed`` and ``expected`` are always set; the rest names the subject and the source."""

    rule: str
    severity: Severity
    observed: str
    expected: str
    remedy: str
    source: str
    """Where the rule comes from: a URL."""
    state: FindingState = FindingState.VIOLATED
    node: int | None = None
    role: Role = Role.BROKER
    listener: str | None = None
    scope: Scope | None = None
    host: str | None = None
    resolver: str | None = None
    diagnosis: Diagnosis | None = None
    inputs: tuple[str, ...] = ()
    """The properties or facts that the rule looked at."""
    container: str = ""
    """What the node runs in, where it runs in a container."""
    resource: str = ""
    """What declares the node, where that is a resource of an operator: `Kafka my-cluster`."""
    lines: tuple[LineToWrite, ...] = ()
    """What to write, where that is known to cure it and to break nothing else."""
    is_only_way: bool = False
    """No other change as small as ``lines`` cures it."""

    @property
    def is_certain_error(self) -> bool:
        """An error by the rule's own severity, and not one that waits for a value."""
        return self.severity is Severity.ERROR and self.state is FindingState.VIOLATED

    @property
    def subject(self) -> str:
        """Of what: `broker 2, listener EXTERNAL (scope external)`, what holds it first."""
        container = f"container {self.container}" if self.container else ""
        node = "" if self.node is None else f"{self.role} {self.node}"
        return ", ".join(filter(None, (self.resource, container, node, self.where))) or "cluster"

    @property
    def where(self) -> str:
        """`listener EXTERNAL (scope external)`, or an empty text."""
        if self.listener is None:
            return ""
        scope = f" (scope {self.scope})" if self.scope is not None else ""
        return f"listener {self.listener}{scope}"

    @property
    def fix(self) -> str:
        """The remedy, with the lines to write where they are known."""
        lines = f"; write {'; '.join(map(str, self.lines))}" if self.lines else ""
        return f"{self.remedy}{lines}"

    @property
    def line(self) -> str:
        """Everything on one line."""
        return (
            f"{self.subject}: {self.observed} - expected {self.expected} - {self.fix} "
            f"[{self.rule}] {self.source}"
        )

    def __str__(self) -> str:
        """The same, on four lines."""
        return (
            f"{self.subject}: {self.observed} [{self.rule}]\n"
            f"  expected: {self.expected}\n"
            f"  fix: {self.fix}\n"
            f"  source: {self.source}"
        )


@dataclass(frozen=True)
class Rule:
    """One check with a stable id."""

    id: str
    title: str
    reason: str
    """One sentence: what goes wrong otherwise."""
    remedy: str
    """What to do, where a finding has nothing better to say."""
    source: str
    """URL of what the rule rests on."""
    check: Callable[[ClusterFacts], Iterable[Finding]] | None = None
    """None: ``objections`` to the settings of each node."""
    inputs: tuple[str, ...] = ()
    """The settings and facts that it looks at, where a finding names no others."""
    severity: Severity = Severity.ERROR
    kafka: str = ">=3.9"
    """Versions that the rule holds for: comparisons joined with commas, as in `>=3.9,<4.2`."""
    needs: Literal[
        "plan",
        "settings",
        "containers",
        "instances",
        "connected",
        "deployment",
        "strimzi",
        "certificates",
    ] = "plan"
    """Which of the facts must be there for the rule to be checked at all."""
    doors: tuple[Door, ...] = (Door.PLAN,)
    objections: Check | None = None
    """Advice on the settings of one node."""
    weight: int = 0
    """Of all advice on a file the heaviest is shown."""
    compares_names: bool = False
    """What containers' networks call them must be known."""
    reads_hosts: bool = False
    """Hosts that are not known yet are reported."""

    def findings(self, facts: ClusterFacts) -> Iterator[Finding]:
        """What it finds in ``facts``, which have what it needs."""
        if self.reads_hosts:
            yield from self.pending(facts)
        if self.check is not None:
            yield from self.check(facts)
        elif self.objections is not None:
            for id, settings in facts.settings.items():
                view = strict_settings(settings.values, facts.kafka_version or DEFAULT_KAFKA)
                for objection in known_objections(self.objections, view):
                    yield self.finding_for(objection, id, settings.role)

    def finding_for(
        self, objection: Objection, node: int | None = None, role: Role = Role.BROKER
    ) -> Finding:
        """``objection`` as a finding of this rule."""
        return self.finding(
            objection.observed,
            objection.expected,
            node=node,
            role=role,
            listener=objection.listener,
            remedy=objection.remedy,
            inputs=(objection.key,),
        )

    @property
    def applied(self) -> str:
        """Where it is applied, for a reader."""
        places = ["to files by `earshot lint`"] if Door.FILE in self.doors else []
        if Door.PLAN in self.doors:
            places.append("to a stack's plan at the gate and by `earshot plan --check`")
        return ", and ".join(places)

    def finding(
        self,
        observed: str,
        expected: str,
        remedy: str = "",
        *,
        node: Node | int | None = None,
        listener: Listener | str | None = None,
        scope: Scope | None = None,
        host: str | None = None,
        evidence: Evidence | None = None,
        severity: Severity | None = None,
        state: FindingState = FindingState.VIOLATED,
        inputs: tuple[str, ...] | None = None,
        role: Role = Role.BROKER,
        container: str = "",
        source: str = "",
    ) -> Finding:
        """A finding of this rule; a Node gives both id and role, a Listener its name and host, and
        the evidence which resolver was asked."""
        lookup = evidence.lookup if evidence is not None else None
        if listener is not None and not isinstance(listener, str):
            host, listener = str(listener.host), listener.name
        if node is not None and not isinstance(node, int):
            role = Role.BROKER if node.is_broker else Role.CONTROLLER
        return Finding(
            rule=self.id,
            severity=severity or self.severity,
            observed=observed,
            expected=expected,
            remedy=remedy or self.remedy,
            source=source or self.source,
            state=state,
            node=node if node is None or isinstance(node, int) else node.id,
            role=role,
            listener=listener,
            scope=scope,
            host=host,
            resolver=lookup.resolver if lookup is not None else None,
            diagnosis=lookup.diagnosis if lookup is not None else None,
            inputs=self.inputs if inputs is None else inputs,
            container=container,
        )

    def pending(self, facts: ClusterFacts, only: str | None = None) -> Iterator[Finding]:
        """One finding of state unknown where hosts of the plan are not known yet, else none.

        ``only`` names the one listener that the rule is about.
        """
        unknown = [
            f"{label(node)} {listener.name}"
            for node in facts.nodes
            for listener in node.listeners
            if not listener.known and only in (None, listener.name)
        ]
        if unknown:
            yield self.finding(
                f"hosts are not known yet: {shortened(unknown)}",
                "every advertised host, checked again with its value",
                state=FindingState.UNKNOWN,
                remedy=WAITING,
                inputs=(),
            )

    def applies(self, facts: ClusterFacts) -> bool:
        """Whether ``facts`` hold what this rule is about, and it holds for their Kafka version.

        A version that is none (an image's tag `latest`) leaves no rule out.
        """
        version = facts.kafka_version
        if version and _NUMBERS.match(version) and not holds_for(self.kafka, version):
            return False
        needed = {self.needs, "plan"} if self.needs in _OF_A_PLAN else {self.needs}
        return all(getattr(facts, name) for name in needed)


def label(node: Node) -> str:
    """`broker 2`, or `controller 10001` for a node that is no broker."""
    return f"{Role.BROKER if node.is_broker else Role.CONTROLLER} {node.id}"


def holds_for(specifier: str, version: str) -> bool:
    """Whether ``version`` ("4.1.1") satisfies every comparison of ``specifier`` (">=3.9,<4.2").

    Raises ValueError for anything else. `packaging` would not do: 4.1.1 is above its 4.1.
    """
    release = _numbers(version)
    for part in specifier.split(","):
        match = re.fullmatch(r"\s*(>=|<=|==|!=|>|<)\s*(\d+(?:\.\d+)*)\s*", part, re.ASCII)
        if match is None:
            raise ValueError(f"version specifier {specifier!r}: {part!r} is no comparison")
        # compared as far as the specifier goes: 4.1.1 is neither above nor below 4.1
        bound = _numbers(match[2])
        if not _COMPARE[match[1]](release[: len(bound)], bound):
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    match = _NUMBERS.match(version)
    if match is None:
        raise ValueError(f"version {version!r} does not begin with a number")
    return tuple(int(part) for part in match[0].split("."))


def family(host: str) -> int | None:
    """4 or 6 for an IP address, None for a name or an empty host."""
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return None


def is_wildcard(host: str) -> bool:
    """Whether ``host`` binds every interface, so that no client can connect to it."""
    return not host or (family(host) is not None and ipaddress.ip_address(host).is_unspecified)
