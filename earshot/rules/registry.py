"""What a rule is. One module per rule, `klNNN_subject.py`, ends in `RULE = Rule(...)`.

A check is a generator over `ClusterFacts` that yields findings, made with `RULE.finding(...)`. It
states what it observed and what it expected, and says "unknown" (never nothing) of what it cannot
check.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.listed import shortened
from earshot.listeners.terms import Role, Scope
from earshot.names.lookup import Diagnosis
from earshot.rules.finding import Finding, FindingState, Severity

if TYPE_CHECKING:
    from earshot.listeners.model import Listener, Node

_COMPARE = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}

_NUMBERS = re.compile(r"\d+(?:\.\d+)*", re.ASCII)


_OF_A_PLAN = ("certificates", "instances")
"""Facts that say nothing without a plan."""


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
    check: Callable[[ClusterFacts], Iterable[Finding]]
    inputs: tuple[str, ...] = ()
    """The settings and facts that it looks at, where a finding names no others."""
    severity: Severity = Severity.ERROR
    kafka: str = ">=3.9"
    """Versions that the rule holds for: comparisons joined with commas, as in `>=3.9,<4.2`."""
    needs: Literal[
        "plan", "settings", "containers", "instances", "deployment", "strimzi", "certificates"
    ] = "plan"
    """Which of the facts must be there for the rule to be checked at all."""
    in_files: bool = False
    """Whether `earshot lint` applies it to files as they stand; the others take a plan."""

    @property
    def applied(self) -> str:
        """Where it is applied, for a reader."""
        places = ["to files by `earshot lint`"] if self.in_files else []
        if self.needs not in ("deployment", "strimzi"):
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
        resolver: str | None = None,
        diagnosis: Diagnosis | None = None,
        severity: Severity | None = None,
        state: FindingState = FindingState.VIOLATED,
        inputs: tuple[str, ...] | None = None,
        role: Role = Role.BROKER,
        container: str = "",
        source: str = "",
    ) -> Finding:
        """A finding of this rule; a Node gives both id and role, a Listener its name and host."""
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
            resolver=resolver,
            diagnosis=diagnosis,
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
                remedy="nothing yet: the update checks it",
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
    found = _numbers(version)
    for part in specifier.split(","):
        match = re.fullmatch(r"\s*(>=|<=|==|!=|>|<)\s*(\d+(?:\.\d+)*)\s*", part, re.ASCII)
        if match is None:
            raise ValueError(f"version specifier {specifier!r}: {part!r} is no comparison")
        # compared as far as the specifier goes: 4.1.1 is neither above nor below 4.1
        wanted = _numbers(match[2])
        if not _COMPARE[match[1]](found[: len(wanted)], wanted):
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    match = _NUMBERS.match(version)
    if match is None:
        raise ValueError(f"version {version!r} does not begin with a number")
    return tuple(int(part) for part in match[0].split("."))
