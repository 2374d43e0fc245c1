"""Brokers with unknown listeners, and the reason: an unknown value, or an unreadable source of
settings.

Fields of a pod and values that a shell computes at its start do not count.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from earshot.listeners.listed import clipped
from earshot.listeners.placeholders import is_known
from earshot.listeners.secrets import without_secrets
from earshot.sources.deployment import broker_of
from earshot.sources.redpanda import addresses_in_flags, redpanda_among, redpanda_broker
from earshot.sources.service import UNREAD, Service, brokers_among
from earshot.topology.broker import Broker

LISTENER_KEYS = (
    "advertised.listeners",
    "listeners",
    "listener.security.protocol.map",
)
"""Properties that define a broker's listeners."""
MAX_SHOWN = 100
"""Characters of a value in a reason."""
_OF_FILE = frozenset(UNREAD) - {"variables"}
"""Unreadable sources that the file names."""
_WRITTEN = re.compile(
    r"(?<!--override )(?<!--override=)(?<!--override [\"'])(?<![\w.])(?:advertised\.)?listeners *="
)
"""A listener property in the text of a command, and not an option of `kafka-server-start`."""
_ASSIGNED = re.compile(r"(?<![\w$])(KAFKA_(?:\w+_)?ADVERTISED_LISTENERS)=")
"""A variable that a command sets."""
_COMPUTED = re.compile(r"_\{(?:HOSTNAME|PORT)_COMMAND\}")
"""A value that wurstmeister's image computes at its start."""


def open_values(values: Mapping[str, str], names: Mapping[str, str] | None = None) -> Iterator[str]:
    """A reason for each listener property in ``values`` with a placeholder.

    ``names`` maps properties to the names that the file uses.
    """
    for key in LISTENER_KEYS:
        if not is_known(value := values.get(key, "")):
            value_shown = clipped(without_secrets(value), MAX_SHOWN)
            yield f"{(names or {}).get(key, key)} is not known: {value_shown}"


def open_listeners(
    services: Sequence[Service], at_run_time: Mapping[str, Collection[str]] | None = None
) -> Iterator[tuple[str, str]]:
    """(service, reason) for each broker among ``services`` with unknown listeners.

    ``at_run_time`` are the variables `$(NAME)` that only the running machine knows, by service.
    """
    brokers, redpandas = brokers_among(services), redpanda_among(services)
    for service in brokers:
        if why := _why_open(service, (at_run_time or {}).get(service.name, ())):
            yield service.name, why
    known = {service.name for service in (*brokers, *redpandas)}
    for service in services:
        if service.name not in known and (match := _ASSIGNED.search(" ".join(service.command))):
            yield service.name, f"its command sets {match[1]}, which is not read"
    for service in redpandas:
        broker = redpanda_broker(service, services)
        flags = [address for address in addresses_in_flags(service) if not is_known(address)]
        unread = sorted(_OF_FILE & {*service.container.unknown})
        if flags:
            yield service.name, f"an address in its command is not known: {flags[0]}"
        elif unread and broker.endpoints is None:
            yield service.name, _unread(unread)


def _why_open(service: Service, at_run_time: Collection[str]) -> str:
    container, command = service.container, " ".join(service.command)
    if _WRITTEN.search(command):
        return "its command writes the properties of Kafka, which are not read"
    if "kafka-server-start" in command and not service.properties:
        # overrides are words of the command, which a shell may compute
        is_overridden = {"advertised.listeners", "listeners"} & service.settings.values.keys()
        return "" if is_overridden else "its command starts Kafka with properties that are not read"
    values = dict(service.settings.values)
    for key, text in values.items():
        text = _COMPUTED.sub("computed", text)
        for name in (*at_run_time, "HOSTNAME"):
            text = text.replace(f"$({name})", "computed")
        values[key] = text
    names = {container.property_of(name): name for name in container.env}
    older = names.get("advertised.host.name", "advertised.listeners")
    names.setdefault("advertised.listeners", older)
    if why := next(open_values(values, names), ""):
        return why
    if older in container.env:
        broker = broker_of(service)
        if broker.endpoints is None and not broker.is_image_known:
            return f"only some images read {older}: whether this one does is unknown"
    unread = sorted(_OF_FILE & {*container.unknown})
    return _unread(unread) if unread and _is_open(broker_of(service)) else ""


def _is_open(broker: Broker) -> bool:
    """Whether no listener for clients has a known advertised address."""
    if broker.endpoints is None:
        return True
    return broker.is_broker and all(it.advertised is None for it in broker.for_clients)


def _unread(sources: Sequence[str]) -> str:
    return f"{', '.join(sources)} could not be read, and may set its listeners"
