"""Finds listeners of running nodes that a plan removes, and reports their connected clients."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime

from earshot.config.removal import goes_anyway
from earshot.listeners.grammar import parse_entries
from earshot.listeners.model import ClusterPlan
from earshot.transition.reach import protocols
from earshot_pulumi.node_links import Links

MAX_SHOWN = 5
"""Maximum number of origins in one message."""
_ADVICE = (
    ". Let them use another listener, then run the same command again; or set `remove: anyway`, "
    "or a date from which it may be removed"
)


def clients_block(remove: str) -> bool:
    """True if connected clients block the removal of a listener today, by the spec's ``remove``."""
    return not goes_anyway(remove, datetime.now(UTC).date())


def removed_ports(values: Mapping[str, str], plan: ClusterPlan, id: int) -> dict[int, str]:
    """Listeners of node ``id`` that ``plan`` lacks or has with another protocol, by port.

    ``values`` are the Kafka settings that the node was started with.
    """
    protocols = Links.of_settings(values).protocols
    planned_protocols = {listener.name: listener.protocol for listener in plan.node(id).listeners}
    return {
        address.port: name
        for name, address in parse_entries(values.get("listeners", ""))
        if planned_protocols.get(name) != protocols.get(name)
    }


def problems(used: Mapping[str, Counter[str]], plan: ClusterPlan | None = None) -> Iterator[str]:
    """A message for each listener in ``used``, which counts connections by origin.

    If ``plan`` has the listener, it is with another protocol.
    """
    for name, origins in used.items():
        total = sum(origins.values())
        counts = [f"{count} from {origin}" for origin, count in origins.most_common(MAX_SHOWN)]
        if len(origins) > MAX_SHOWN:
            counts.append(f"{len(origins) - MAX_SHOWN} more origins")
        protocol = ", ".join(sorted(protocols(plan, name))) if plan else ""
        fate = f"get the protocol {protocol}" if protocol else "be removed"
        connections = f"{total} connection{'s' * (total > 1)}"
        yield (
            f"listener {name} would {fate}, and has {connections} of clients: "
            f"{', '.join(counts)}{_ADVICE}"
        )


def blocking(remove: str, problems: Iterable[str], log: Callable[[str], None]) -> Iterator[str]:
    """``problems`` if connected clients block the removal today, by the spec's ``remove``.

    Otherwise the clients that lose their connections are logged.
    """
    if clients_block(remove):
        yield from problems
        return
    for problem in problems:
        if (text := problem.removesuffix(_ADVICE)) != problem:
            log(f"{text}. `remove: {remove}` allows that: these clients lose their connections")
