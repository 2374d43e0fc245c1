"""A finding: what one rule says about one thing. The fields hold the facts, the text is derived."""

from dataclasses import dataclass
from enum import StrEnum

from earshot.listeners.terms import Role, Scope
from earshot.names.lookup import Diagnosis


class Severity(StrEnum):
    """What a finding is worth where nothing else is configured."""

    ERROR = "error"
    WARNING = "warning"


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
    """``observed`` and ``expected`` are always said; the rest says of what, and by whose word."""

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
