"""The classes of rules and findings.

Each rule is a module `klNNN_subject.py` that ends in `RULE = Rule(...)`. Its check is a generator
over `ClusterFacts` that yields findings from `RULE.finding(...)`, with what was observed and
expected. A value that it cannot check gives a finding of state unknown. The fields of a finding
contain the facts, from which the text is derived.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from earshot.errors import without_passwords
from earshot.facts.cluster import ClusterFacts
from earshot.listeners.listed import clipped, shortened
from earshot.listeners.terms import DEFAULT_KAFKA, Role, Scope
from earshot.names.lookup import Diagnosis
from earshot.rules.objections import Check, Objection, known_objections, strict_settings

if TYPE_CHECKING:
    from earshot.listeners.model import Listener, Node
    from earshot.names.evidence import Evidence


_RELEASE = re.compile(r"(\d+)(?:\.(\d+))?", re.ASCII)
_OF_A_PLAN = ("certificates", "connected", "instances")
"""Facts that need a plan."""


MAX_TEXT = 4000
"""The maximum length (characters) of a text of a finding, with values from files."""


class AppliedAt(StrEnum):
    """Where a rule is applied."""

    PLAN = "plan"
    """At the gate, by `earshot plan --check` and `earshot.evaluate`."""
    FILE = "file"
    """By `earshot lint`."""
    PODS = "pods"
    """By `earshot lint`, for manifests."""
    REPLICAS = "replicas"
    """By `earshot lint`, for manifests with each replica as a node."""
    CONTAINER = "container"
    """By the policy pack, when a container is registered."""
    CONTAINERS = "containers"
    """By the policy pack at the end, for all containers of one Docker engine."""
    INSTANCE = "instance"
    """By the policy pack, when an instance is registered."""
    INSTANCES = "instances"
    """By the policy pack at the end, for all instances with the stack's resources."""


_RESOURCES = {
    "containers": {AppliedAt.CONTAINER, AppliedAt.CONTAINERS},
    "EC2 instances": {AppliedAt.INSTANCE, AppliedAt.INSTANCES},
}


class Severity(StrEnum):
    """The default level of a finding."""

    ERROR = "error"
    WARNING = "warning"


WAITING = "nothing yet: the update checks it"
"""The remedy of a finding of state unknown about a host that a preview does not know."""


class FindingState(StrEnum):
    """Whether the rule is violated, or cannot be checked yet."""

    VIOLATED = "violated"
    UNKNOWN = "unknown"
    """A value is unknown; neither a violation nor a pass."""


@dataclass(frozen=True)
class LineToWrite:
    """The new value of a service's ``setting``: a variable, property or key.

    ``value`` replaces the part ``replaces`` of the old value, or all of it if that is empty.
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
    """A finding of one rule; ``observed`` and ``expected`` are never empty."""

    rule: str
    severity: Severity
    observed: str
    expected: str
    remedy: str
    source: str
    """The URL of the rule's source."""
    state: FindingState = FindingState.VIOLATED
    node: int | None = None
    role: Role = Role.BROKER
    listener: str | None = None
    scope: Scope | None = None
    host: str | None = None
    resolver: str | None = None
    diagnosis: Diagnosis | None = None
    inputs: tuple[str, ...] = ()
    """The checked properties or facts."""
    container: str = ""
    """The container of the node, or empty."""
    resource: str = ""
    """The operator's resource that declares the node, as in `Kafka my-cluster`, or empty."""
    lines: tuple[LineToWrite, ...] = ()
    """Lines that fix the finding and break nothing else, if known."""
    is_only_way: bool = False
    """No other change as small as ``lines`` fixes it."""
    is_consequence: bool = False
    """It is left out if another error names the same listener: that error is the cause."""

    def __post_init__(self) -> None:
        # they contain values of files
        for name in ("observed", "expected", "remedy", *(["listener"] if self.listener else [])):
            text = without_passwords(getattr(self, name))
            object.__setattr__(self, name, clipped(text, MAX_TEXT))

    @property
    def is_certain_error(self) -> bool:
        """Whether it is a violation with severity error."""
        return self.severity is Severity.ERROR and self.state is FindingState.VIOLATED

    @property
    def subject(self) -> str:
        """`broker 2, listener EXTERNAL (scope external)`, after its resource and container."""
        container = f"container {self.container}" if self.container else ""
        node = "" if self.node is None else f"{self.role} {self.node}"
        return ", ".join(filter(None, (self.resource, container, node, self.where))) or "cluster"

    @property
    def where(self) -> str:
        """`listener EXTERNAL (scope external)`, or an empty string."""
        if self.listener is None:
            return ""
        scope = f" (scope {self.scope})" if self.scope is not None else ""
        return f"listener {self.listener}{scope}"

    @property
    def fix(self) -> str:
        """The remedy, with the lines to write."""
        lines = f"; write {'; '.join(map(str, self.lines))}" if self.lines else ""
        return f"{self.remedy}{lines}"

    @property
    def line(self) -> str:
        """The finding on one line."""
        return (
            f"{self.subject}: {self.observed} - expected {self.expected} - {self.fix} "
            f"[{self.rule}] {self.source}"
        )

    def __str__(self) -> str:
        """The finding on four lines."""
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
    """The consequence of a violation, in one sentence."""
    remedy: str
    """The default remedy of findings."""
    source: str
    """The URL of the rule's source."""
    check: Callable[[ClusterFacts], Iterable[Finding]] | None = None
    """None if ``objections`` to the settings of each node are the check."""
    inputs: tuple[str, ...] = ()
    """The default inputs of findings: settings and facts."""
    severity: Severity = Severity.ERROR
    oldest: tuple[int, int] = (3, 9)
    """The first Kafka release that the rule is about."""
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
    """The facts without which the rule is skipped."""
    applied_at: tuple[AppliedAt, ...] = (AppliedAt.PLAN,)
    objections: Check | None = None
    """The check of one node's settings, for a rule that gives security advice."""
    weight: int = 0
    """Distinct for each rule with ``objections``. A file shows only one piece of advice, that of
    the rule with the greatest weight."""
    compares_names: bool = False
    """The rule is skipped if the containers' names are unknown."""
    reads_hosts: bool = False
    """The rule reports hosts that are not known yet."""

    def findings(self, facts: ClusterFacts) -> Iterator[Finding]:
        """The findings about ``facts``, which contain the facts that it needs (`needs`)."""
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
    def kafka(self) -> str:
        """The Kafka releases that the rule is about, for documentation."""
        return f">={self.oldest[0]}.{self.oldest[1]}"

    @property
    def applied(self) -> str:
        """The places where it is applied, for documentation."""
        places = ["to files by `earshot lint`"] if AppliedAt.FILE in self.applied_at else []
        if AppliedAt.PLAN in self.applied_at:
            places.append("to a stack's plan at the gate and by `earshot plan --check`")
        resources = [
            name
            for name, resource_places in _RESOURCES.items()
            if resource_places & {*self.applied_at}
        ]
        if resources:
            places.append(f"to {' and '.join(resources)} of a program by the policy pack")
        return "; ".join(places)

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
        """A finding of this rule.

        A Node sets id and role, a Listener its name and host, evidence the resolver and diagnosis.
        """
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
        """A finding of state unknown if hosts of the plan are not known yet.

        ``only`` limits it to the listener of this name.
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
        """Whether ``facts`` contain the needed facts, and their Kafka version fits.

        A text that is not a version (an image's tag `latest`) fits every rule.
        """
        release = _RELEASE.match(facts.kafka_version)
        if release and tuple(int(part) for part in release.groups() if part) < self.oldest:
            return False
        needed = {self.needs, "plan"} if self.needs in _OF_A_PLAN else {self.needs}
        return all(getattr(facts, name) for name in needed)


def label(node: Node) -> str:
    """`broker 2`, or `controller 10001` for a node without the role broker."""
    return f"{Role.BROKER if node.is_broker else Role.CONTROLLER} {node.id}"
