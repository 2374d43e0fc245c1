"""KL013: what the controllers advertise agrees with the quorum in every node's settings."""

from collections.abc import Iterator, Mapping

from earshot.errors import AddressError
from earshot.facts.cluster import ClusterFacts
from earshot.listeners.address import Address
from earshot.listeners.grammar import Bad, parse_voters, read_servers
from earshot.rules.registry import Finding, FindingState, Rule

VOTERS = "controller.quorum.voters"
SERVERS = "controller.quorum.bootstrap.servers"
Difference = tuple[str, str]
"""What was observed, and what was expected."""


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """`controller.quorum.voters` of every node, or the bootstrap servers of a dynamic quorum."""
    if facts.plan is None:
        return
    yield from RULE.pending(facts, only=facts.plan.controller)
    advertised: dict[int, Address | None] = {}
    for node in facts.plan.controllers:
        listener = node.listener(facts.plan.controller)
        known = listener is not None and listener.known
        advertised[node.id] = listener.advertised if listener is not None and known else None
    # each distinct setting is compared once: a thousand nodes usually say the same
    compared: dict[tuple[str, str], tuple[Difference, ...]] = {}
    for node in facts.plan.nodes:
        settings = facts.settings.get(node.id)
        if settings is None:
            yield RULE.finding(
                "its settings are not known",
                f"the settings, with {VOTERS}",
                node=node,
                state=FindingState.UNKNOWN,
                remedy="hand in the settings of every node",
            )
            continue
        key = VOTERS if VOTERS in settings.values else SERVERS
        text = settings.values.get(key, "")
        if (key, text) not in compared:
            compare = _voters if key == VOTERS else _servers
            compared[key, text] = tuple(compare(text, advertised))
        for observed, expected in compared[key, text]:
            yield RULE.finding(observed, expected, node=node)


def _voters(text: str, advertised: Mapping[int, Address | None]) -> Iterator[Difference]:
    try:
        voters = parse_voters(text)
    except AddressError:
        return  # KL001 says why
    for id in sorted({*voters, *advertised}):
        address, listed = advertised.get(id), voters.get(id)
        if id not in advertised:
            controllers = ", ".join(map(str, sorted(advertised)))
            expected = f"only controllers of this cluster: {controllers}"
            yield f"{VOTERS} has {id}@{listed}, and no such controller exists", expected
        elif address and str(listed).lower() != str(address).lower():
            held = f"has {id}@{listed}" if listed else f"lacks controller {id}"
            yield f"{VOTERS} {held}", f"{id}@{address}, which controller {id} advertises"


def _servers(text: str, advertised: Mapping[int, Address | None]) -> Iterator[Difference]:
    entries = [*read_servers(text)]
    if None in advertised.values() or any(isinstance(entry, Bad) for entry in entries):
        return  # an unknown controller may be the one that is meant
    known = {str(address).lower() for address in advertised.values()}
    for entry in filter(None, map(str.strip, text.split(","))):
        if entry.lower() not in known:
            expected = f"one of {', '.join(map(str, advertised.values()))}"
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
