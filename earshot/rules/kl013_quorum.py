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
            compared[key, text] = tuple(compare(text, advertised, unknown))
        for observed, expected in compared[key, text]:
            yield RULE.finding(observed, expected, node=node)


def _voters(
    text: str, advertised: Mapping[int, Address], unknown: set[int]
) -> Iterator[Difference]:
    try:
        voters = parse_voters(text)
    except AddressError:
        return  # KL001 says why
    for id, address in advertised.items():
        if id not in voters:
            yield f"{VOTERS} lacks controller {id}", f"{id}@{address}, which it advertises"
        elif str(voters[id]).lower() != str(address).lower():
            expected = f"{id}@{address}, which controller {id} advertises"
            yield f"{VOTERS} has {id}@{voters[id]}", expected
    known = sorted({*advertised, *unknown})
    expected = f"only controllers of this cluster: {', '.join(map(str, known))}"
    for id, address in voters.items():
        if id not in known:
            yield f"{VOTERS} has {id}@{address}, and no such controller exists", expected


def _servers(
    text: str, advertised: Mapping[int, Address], unknown: set[int]
) -> Iterator[Difference]:
    known = {str(address).lower() for address in advertised.values()}
    if unknown or any(isinstance(entry, Bad) for entry in read_servers(text)):
        return  # an unknown controller may be the one that is meant
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
