"""Brokers with unknown listeners, and the reason: an unknown value, or an unreadable source of
settings.

Fields of a pod and values that a shell computes at its start do not count.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from earshot.listeners.listed import clipped
from earshot.listeners.placeholders import is_known
from earshot.listeners.secrets import without_secrets
from earshot.sources.compose import Service
from earshot.sources.deployment import UNREAD, broker_of, brokers_among, settings_of
from earshot.sources.redpanda import addresses_in_flags, redpanda_among, redpanda_broker

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
_COMPUTED = re.compile(r"_\{(?:HOSTNAME|PORT)_COMMAND\}")
"""A value that wurstmeister's image computes at its start."""


def open_values(values: Mapping[str, str], names: Mapping[str, str] | None = None) -> Iterator[str]:
    """A reason for each listener property in ``values`` with a placeholder.

    ``names`` maps properties to the names that the file uses.
    """
    for key in LISTENER_KEYS:
        if not is_known(value := values.get(key, "")):
            shown = clipped(without_secrets(value), MAX_SHOWN)
            yield f"{(names or {}).get(key, key)} is not known: {shown}"


def open_listeners(
    services: Sequence[Service], at_run_time: Mapping[str, Collection[str]] | None = None
) -> Iterator[tuple[str, str]]:
    """(service, reason) for each broker among ``services`` with unknown listeners.

    ``at_run_time`` are the variables `$(NAME)` that only the running machine knows, by service.
    """
    for service in brokers_among(services):
        if why := _why_open(service, (at_run_time or {}).get(service.name, ())):
            yield service.name, why
    for service in redpanda_among(services):
        broker = redpanda_broker(service, services)
        flags = [address for address in addresses_in_flags(service) if not is_known(address)]
        unread = sorted(_OF_FILE & {*service.container.unknown})
        if flags:
            yield service.name, f"an address in its command is not known: {flags[0]}"
        elif unread and broker.endpoints is None:
            yield service.name, _unread(unread)


def _why_open(service: Service, at_run_time: Collection[str]) -> str:
    container = service.container
    if "kafka-server-start" in " ".join(service.command) and not service.properties:
        return ""  # its values are words of a command, which a shell may compute
    values = dict(settings_of(service).values)
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
    unread = sorted(_OF_FILE & {*container.unknown})
    return _unread(unread) if unread and broker_of(service).endpoints is None else ""


def _unread(sources: Sequence[str]) -> str:
    return f"{', '.join(sources)} could not be read, and may set its listeners"
