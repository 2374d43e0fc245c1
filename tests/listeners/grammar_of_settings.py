"""The strict grammar of a node's settings, which earshot's own settings follow.

Kafka takes more: hosts, ports and names that its clients cannot use or read differently.
"""

from collections.abc import Callable, Iterator, Mapping

from earshot.listeners import grammar
from earshot.listeners.grammar import Bad

READERS: dict[str, Callable[[str], Iterator[tuple[object, object] | Bad]]] = {
    "listeners": grammar.read_listeners,
    "advertised.listeners": grammar.read_listeners,
    "listener.security.protocol.map": grammar.read_protocols,
    "controller.quorum.voters": grammar.read_voters,
    "controller.quorum.bootstrap.servers": grammar.read_servers,
    "controller.listener.names": grammar.read_names,
    "inter.broker.listener.name": grammar.read_name,
    "early.start.listeners": grammar.read_names,
}


def grammar_problems(values: Mapping[str, str]) -> list[str]:
    """What the grammar refuses in ``values``, and advertised listeners without a host."""
    found = [
        f"{key}: {item.error.line}"
        for key in READERS
        if key in values
        for item in READERS[key](values[key])
        if isinstance(item, Bad)
    ]
    advertised = grammar.read_listeners(values.get("advertised.listeners", "A://a:1"))
    found += [
        f"advertised.listeners: {item[0]} has no host"
        for item in advertised
        if not isinstance(item, Bad) and not item[1].host
    ]
    return found
