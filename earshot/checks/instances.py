"""Brokers on the instances of any program, judged one after the other by their own inputs.

What takes other resources is for `instance_stack`, once they are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from earshot.checks.instance_names import is_never, never_but_asked
from earshot.facts.cluster import ClusterFacts
from earshot.facts.container import is_loopback
from earshot.names.kinds import ip_of
from earshot.rules import (
    kl001_grammar,
    kl002_kafka,
    kl003_kind_of_address,
    kl004_unique_address,
    kl008_inter_broker,
    kl011_resolves,
)
from earshot.rules.evaluate import evaluate
from earshot.rules.finding import Finding, FindingState
from earshot.sources.instance import instance_facts
from earshot.sources.user_data import UserDataFile

if TYPE_CHECKING:
    from earshot.listeners.model import Listener, Node
    from earshot.names.policy import ResolverPolicy

RULES = (
    kl001_grammar.RULE,
    kl002_kafka.RULE,
    kl003_kind_of_address.RULE,
    kl008_inter_broker.RULE,
    kl011_resolves.RULE,
)
"""What one instance's inputs answer; of KL011 only what no other resource can fix. KL004 is
judged between instances."""
_WHOLE = frozenset({"KL002", "KL008"})
"""Rules that must know every setting of a node, and Kafka's rules for it."""


@dataclass(frozen=True)
class Broker:
    """A broker that an instance's user data set up, and what its own inputs showed."""

    holder: str
    """The instance's URN."""
    written: UserDataFile
    findings: tuple[Finding, ...] = ()


def skipped_rules(written: UserDataFile) -> dict[str, str]:
    """By rule id, why a rule is not asked about ``written``."""
    path = written.path or "its properties file"
    if not written.whole:
        return dict.fromkeys(_WHOLE, f"what stands in {path} before is not known")
    if computed := [key for key in written.computed if key not in written.places]:
        return dict.fromkeys(_WHOLE, f"the instance computes {', '.join(computed)}")
    values = written.settings.values
    if "zookeeper.connect" in values and "process.roles" not in values:
        return {"KL002": "it is set up for ZooKeeper"}
    return {}


class InstanceRun:
    """The brokers of one run, in the order in which their instances are registered."""

    def __init__(self) -> None:
        self._brokers: dict[str, list[Broker]] = {}
        self._advertised: dict[tuple[str, int], str] = {}

    @property
    def brokers(self) -> tuple[Broker, ...]:
        """All that were judged."""
        return tuple(item for listed in self._brokers.values() for item in listed)

    def evaluate(
        self, holder: str, written: Iterable[UserDataFile], policy: ResolverPolicy
    ) -> tuple[Finding, ...]:
        """What shows in the inputs of the instance ``holder``, and in those of earlier ones.

        The same holder may come again.
        """
        self._brokers[holder] = [self._broker(holder, item, policy) for item in written]
        listed = self._brokers[holder]
        computed = (found for item in listed for found in _computed(item.written))
        return (*(found for item in listed for found in item.findings), *computed)

    def _broker(self, holder: str, written: UserDataFile, policy: ResolverPolicy) -> Broker:
        facts = replace(instance_facts(written), waivers=policy.waived)
        facts = replace(facts, evidence=never_but_asked(facts, policy))
        silent = skipped_rules(written)
        found = evaluate(facts, [rule for rule in RULES if rule.id not in silent])
        shown = [item for item in found if not _is_open(item)]
        return Broker(holder, written, (*shown, *self._claim(holder, facts)))

    def _claim(self, holder: str, facts: ClusterFacts) -> Iterator[Finding]:
        """What earlier instances advertise already."""
        for node in facts.plan.nodes if facts.plan is not None else ():
            for listener in node.listeners:
                host = str(listener.host)
                if listener.known and not is_loopback(host):
                    key = (str(ip_of(host) or host.lower()), listener.port)
                    other = self._advertised.setdefault(key, holder)
                    if other != holder:
                        yield _taken(node, listener, other)


def _taken(node: Node, listener: Listener, holder: str) -> Finding:
    other = holder.rsplit("::", 1)[-1]
    return kl004_unique_address.RULE.finding(
        f"advertises {listener.advertised}, which instance {other} has taken",
        "a host:port of its own for every listener of every broker",
        node=node,
        listener=listener.name,
        host=str(listener.host),
        inputs=kl004_unique_address.INPUTS,
    )


def _is_open(finding: Finding) -> bool:
    """Whether it cannot be said yet: a host that is not known, a name that others may declare."""
    if finding.state is FindingState.UNKNOWN:
        return True
    scope, host = finding.scope, finding.host
    if finding.rule != kl011_resolves.RULE.id or scope is None or host is None:
        return False
    return not is_never(host, scope)


def _computed(written: UserDataFile) -> Iterator[Finding]:
    """What only the instance knows: neither a preview nor an update ever judges it."""
    for key, text in written.computed.items():
        if key in written.places or key.endswith("listeners"):
            where = "a listener's host" if key in written.places else key
            yield kl011_resolves.RULE.finding(
                f"{where} is computed on the instance: {text}",
                "a name that the program gives it",
                state=FindingState.UNKNOWN,
                remedy="advertise the name of a resource (an Elastic IP, a record), or prove the "
                "listeners where their clients are with `earshot doctor`",
                inputs=("user data",),
            )
