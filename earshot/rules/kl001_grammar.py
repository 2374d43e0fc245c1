"""KL001: listeners, protocol map, voters and names follow a grammar that all programs read alike.

The grammar is stricter than Kafka's (see `earshot.listeners.grammar`): Kafka takes `host_1`,
`256.256.256.256`, an IPv6 address without brackets or port 99999 without a word, and clients fail
later. What Kafka makes of settings that follow the grammar is KL002's business.
"""

from collections.abc import Callable, Iterator

from earshot.errors import AddressError
from earshot.facts.cluster import ClusterFacts
from earshot.listeners import grammar
from earshot.listeners.address import HOST_ALLOWED
from earshot.listeners.grammar import Bad
from earshot.rules.registry import Finding, Rule

Entry = tuple[object, object]
Problem = tuple[str, AddressError]
"""The listener's name, where there is one, and what is wrong."""


def problems(key: str, text: str) -> Iterator[Problem]:
    """What the grammar refuses in the property ``key``; nothing for a property it does not know."""
    for item in READERS[key](text) if key in READERS else ():
        if isinstance(item, Bad):
            yield item.name, item.error


def check(facts: ClusterFacts) -> Iterator[Finding]:
    known: dict[tuple[str, str], tuple[Problem, ...]] = {}  # most nodes share most texts
    for id, settings in facts.settings.items():
        for key in (key for key in READERS if key in settings.values):
            text = settings.values[key]
            if (key, text) not in known:
                known[key, text] = tuple(problems(key, text))
            for listener, error in known[key, text]:
                yield RULE.finding(
                    f"{key}: {error.object} {error.observed}",
                    error.allowed,
                    node=id,
                    role=settings.role,
                    listener=listener or None,
                    remedy=error.remedy,
                    inputs=(key,),
                )


def _read_advertised(text: str) -> Iterator[Entry | Bad]:
    for item in grammar.read_listeners(text):
        if not isinstance(item, Bad) and not item[1].host:
            name, address = item
            error = AddressError(
                f"{name}://:{address.port}",
                observed="has no host, so that Kafka hands out the machine's own name",
                allowed=HOST_ALLOWED,
                remedy="name the host that was provisioned for these clients",
            )
            yield Bad(name, error)
        else:
            yield item


READERS: dict[str, Callable[[str], Iterator[Entry | Bad]]] = {
    "listeners": grammar.read_listeners,
    "advertised.listeners": _read_advertised,
    "listener.security.protocol.map": grammar.read_protocols,
    "controller.quorum.voters": grammar.read_voters,
    "controller.quorum.bootstrap.servers": grammar.read_servers,
    "controller.listener.names": grammar.read_names,
    "inter.broker.listener.name": grammar.read_name,
    "early.start.listeners": grammar.read_names,
}

RULE = Rule(
    id="KL001",
    title="Listeners, protocol map, voters and names follow a strict grammar",
    reason="Kafka accepts hosts, ports and names that its clients cannot use or read differently.",
    remedy="write it as the grammar allows",
    source="https://kafka.apache.org/documentation/#brokerconfigs_listeners",
    check=check,
    needs="settings",
    reads_hosts=True,
)
