"""KL013: what the controllers advertise agrees with the quorum in every node's settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from earshot.errors import AddressError
from earshot.facts.cluster import ClusterFacts
from earshot.listeners.address import Address
from earshot.listeners.grammar import Bad, parse_voters, read_servers
from earshot.listeners.properties import NodeSettings
from earshot.rules.finding import Finding, FindingState
from earshot.rules.registry import Rule

if TYPE_CHECKING:
    from earshot.listeners.model import Node

VOTERS = "controller.quorum.voters"
SERVERS = "controller.quorum.bootstrap.servers"


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """`controller.quorum.voters` of every node, or the bootstrap servers of a dynamic quorum."""
    if facts.plan is None:
        return
    yield from RULE.pending(facts, only=facts.plan.controller)
    advertised: dict[int, Address] = {}
    unknown: set[int] = set()
    for node in facts.plan.controllers:
        listener = node.listener(facts.plan.controller)
        if listener is not None and listener.known:
            advertised[node.id] = listener.advertised
            continue
        unknown.add(node.id)
        # where it may be there, KL001 says why it cannot be read
        if listener is None and not facts.may_have(node.id, facts.plan.controller):
            yield RULE.finding(
                f"has no listener {facts.plan.controller}",
                "the controller listener on every controller",
                node=node,
                listener=facts.plan.controller,
            )
    read = _QuorumReader(advertised, unknown)
    for node in facts.plan.nodes:
        yield from read.node(node, facts.settings.get(node.id))


class _QuorumReader:
    """Compares each distinct setting once: a thousand nodes usually say the same."""

    def __init__(self, advertised: Mapping[int, Address], unknown: set[int]) -> None:
        self.advertised = advertised
        self.unknown = unknown
        self.compared: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {}

    def node(self, node: Node, settings: NodeSettings | None) -> Iterator[Finding]:
        if settings is None:
            yield RULE.finding(
                "its settings are not known",
                f"the settings, with {VOTERS}",
                node=node,
                state=FindingState.UNKNOWN,
                remedy="hand in the settings of every node",
            )
            return
        key = VOTERS if VOTERS in settings.values else SERVERS
        text = settings.values.get(key, "")
        if (key, text) not in self.compared:
            compare = self._voters if key == VOTERS else self._servers
            self.compared[key, text] = tuple(compare(text))
        for observed, expected in self.compared[key, text]:
            yield RULE.finding(observed, expected, node=node)

    def _voters(self, text: str) -> Iterator[tuple[str, str]]:
        try:
            voters = parse_voters(text)
        except AddressError:
            return  # KL001 says why
        for id, address in self.advertised.items():
            if id not in voters:
                yield f"{VOTERS} lacks controller {id}", f"{id}@{address}, which it advertises"
            elif str(voters[id]).lower() != str(address).lower():
                expected = f"{id}@{address}, which controller {id} advertises"
                yield f"{VOTERS} has {id}@{voters[id]}", expected
        known = sorted({*self.advertised, *self.unknown})
        expected = f"only controllers of this cluster: {', '.join(map(str, known))}"
        for id, address in voters.items():
            if id not in known:
                yield f"{VOTERS} has {id}@{address}, and no such controller exists", expected

    def _servers(self, text: str) -> Iterator[tuple[str, str]]:
        known = {str(address).lower() for address in self.advertised.values()}
        if self.unknown or any(isinstance(entry, Bad) for entry in read_servers(text)):
            return  # an unknown controller may be the one that is meant
        for entry in filter(None, map(str.strip, text.split(","))):
            if entry.lower() not in known:
                expected = f"one of {', '.join(map(str, self.advertised.values()))}"
                yield f"{SERVERS} has {entry}, which no controller advertises", expected


RULE = Rule(
    id="KL013",
    title="Controllers advertise what the quorum calls them",
    reason="A voter is known by its address: where the quorum and the controller disagree, no "
    "leader is elected or the voter is refused (INVALID_VOTER_KEY).",
    remedy="write into the quorum exactly what each controller advertises",
    source="https://kafka.apache.org/documentation/#brokerconfigs_controller.quorum.voters",
    check=check,
    inputs=(VOTERS, SERVERS, "advertised.listeners", "controller.listener.names"),
)
