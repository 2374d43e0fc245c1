"""Redpanda's brokers among services: their Kafka listeners, from flags or redpanda.yaml.

Redpanda speaks Kafka's protocol and advertises listeners as Kafka does; it has no Kafka properties,
no KRaft quorum and no inter-broker listener. Sources: the reference of
`rpk redpanda start` and of the broker properties `kafka_api` and `advertised_kafka_api`
(https://docs.redpanda.com/current/reference/).
"""

import re
from collections.abc import Mapping, Sequence

from earshot.errors import EarshotError
from earshot.listeners.address import Address
from earshot.listeners.images import is_redpanda
from earshot.listeners.placeholders import is_known
from earshot.sources.service import Service
from earshot.sources.values import as_map
from earshot.topology.broker import Broker, Endpoint
from earshot.yaml_reading.document import read_yaml_texts

_STARTS = re.compile(r"(?<![\w-])start(?![\w-])", re.ASCII)
_FLAG = re.compile(r"(?<!\S)--(advertise-)?kafka-addr(?:=|\s+)(\S+)", re.ASCII)
_SET = re.compile(
    r"(?<!\S)--set[ =][\"']?redpanda\.(advertised_)?kafka_api\[([0-9]+)\]"
    r"\.(name|address|port)=(\S+)",
    re.ASCII,
)
_SEEDS = re.compile(r"(?<!\S)(?:--seeds|-s)(?:=|\s+)[\"']?([^\s:,+\"']+)", re.ASCII)
_ENTRY = re.compile(
    r"(?:(?P<name>[A-Za-z0-9_.-]+)://)?(?P<host>\[[0-9A-Fa-f:]+\]|[^:,\s/]+)(?::(?P<port>[0-9]{1,5}))?",
    re.ASCII,
)
_UNNAMED = "kafka"
_PORT = 9092
_BOUND = Address("0.0.0.0", _PORT)
_TOLD = Address("127.0.0.1", _PORT)
"""The only listener in the image's own file. Releases before 24.1 advertise the bind address, which
clients elsewhere cannot use either: https://github.com/redpanda-data/redpanda/issues/16623."""
_OWN_FILE = re.compile(r"/etc/redpanda|redpanda\.ya?ml$")
_OWN_SETTING = re.compile(r"kafka_api|--config\b|-c\s")
Listed = dict[str, Address | None]
"""Addresses by listener name; None is an unknown address."""


def redpanda_among(services: Sequence[Service]) -> tuple[Service, ...]:
    """The services that run a Redpanda broker, and not only the image's `rpk`."""
    return tuple(
        service
        for service in services
        if is_redpanda(service.container.image)
        and (not service.command or _STARTS.search(" ".join(service.command)))
    )


def redpanda_broker(service: Service, services: Sequence[Service]) -> Broker:
    """The broker of ``service``, in the cluster of its seed among ``services``."""
    text = " ".join(service.command)
    root = service
    if seed := _SEEDS.search(text):
        candidates = (
            service
            for service in services
            if seed[1] == service.name or service.container.has_name(seed[1])
        )
        root = next(candidates, service)
    return Broker(
        service=service.name,
        container=service.container,
        id=None,
        endpoints=None if service.container.unknown else _endpoints(service, text),
        cluster=f"of Redpanda with {root.name}",
        is_kafka=False,
    )


def listeners_in(text: str) -> tuple[Endpoint, ...]:
    """The listeners of a redpanda.yaml that have an advertised address.

    For the others flags, or the bind address, may define it.
    """
    return _advertised(*_of_file(text))


def advertised_listeners(service: Service) -> tuple[Endpoint, ...]:
    """The listeners of ``service`` with a known advertised address, also if no bind address is."""
    if service.container.unknown:
        return ()
    return _advertised(*_addresses(service, " ".join(service.command)))


def _advertised(binds: Listed, advertised: Listed) -> tuple[Endpoint, ...]:
    return tuple(
        Endpoint(name, binds.get(name) or address, address)
        for name, address in advertised.items()
        if address is not None
    )


def addresses_in_flags(service: Service) -> tuple[str, ...]:
    """The addresses of its listeners in the command of ``service``, as written."""
    text = " ".join(service.command)
    flags = (value for _, value in _FLAG.findall(text))
    return (*flags, *(value for _, _, _, value in _SET.findall(text)))


def _endpoints(service: Service, text: str) -> tuple[Endpoint, ...] | None:
    """The listeners from flags, or else the mounted file; None if some are unknown."""
    binds, advertised = _addresses(service, text)
    if not binds or None in binds.values():
        return None
    return tuple(
        Endpoint(name, bind, advertised.get(name))
        for name, bind in binds.items()
        if bind is not None
    )


def _addresses(service: Service, text: str) -> tuple[Listed, Listed]:
    """The addresses that listeners bind and advertise, by flags, or else by the mounted file."""
    binds, advertised = _of_file(service.redpanda)
    for is_advertised, value in _FLAG.findall(text):
        addresses = _listed(value.strip("\"'"))
        if is_advertised:
            advertised = addresses
        else:
            binds = addresses
    set_addresses = _given(text)
    binds |= set_addresses[False]
    advertised |= set_addresses[True]
    if not binds and _uses_default(service, text) and advertised.keys() <= {_UNNAMED}:
        return {_UNNAMED: _BOUND}, {_UNNAMED: _TOLD, **advertised}
    return binds, advertised


def _uses_default(service: Service, text: str) -> bool:
    """Whether the listeners are those of the image's own file."""
    container = service.container
    has_file = service.redpanda or any(_OWN_FILE.search(path) for path in container.mounts)
    is_set = any(name.startswith("REDPANDA_") and "ADDR" in name for name in container.env)
    has_setting = is_set or _OWN_SETTING.search(_SET.sub("", text))
    return not (has_file or has_setting or service.is_built) and is_known(text)


def _given(text: str) -> Mapping[bool, Listed]:
    """The listeners of `--set redpanda.kafka_api[0].port=…` (False) and of
    `advertised_kafka_api` (True)."""
    parts: dict[bool, dict[str, dict[str, str]]] = {False: {}, True: {}}
    for is_advertised, index, key, value in _SET.findall(text):
        parts[bool(is_advertised)].setdefault(index, {})[key] = value.strip("\"'")
    return {kind: dict(map(_item, items.values())) for kind, items in parts.items()}


def _listed(text: str) -> Listed:
    """Parses `internal://0.0.0.0:9092,external://0.0.0.0:19092`, or one without a name."""
    addresses: Listed = {}
    for entry in text.split(","):
        match = _ENTRY.fullmatch(entry.strip()) if is_known(entry) else None
        name = entry.partition("://")[0] if "://" in entry else _UNNAMED
        addresses[name] = match and Address(match["host"].strip("[]"), int(match["port"] or _PORT))
    return addresses


def _of_file(text: str) -> tuple[Listed, Listed]:
    """`kafka_api` and `advertised_kafka_api` of a redpanda.yaml, empty by default."""
    try:
        document = read_yaml_texts(text, "redpanda.yaml", unique=False) if text else None
    except EarshotError:
        return {}, {}
    node = as_map(as_map(document).get("redpanda"))
    return _items(node.get("kafka_api")), _items(node.get("advertised_kafka_api"))


def _items(value: object) -> Listed:
    entries = value if isinstance(value, list) else [value] if isinstance(value, Mapping) else []
    return dict(_item(entry) for entry in entries if isinstance(entry, Mapping))


def _item(entry: Mapping[str, object]) -> tuple[str, Address | None]:
    host, port = str(entry.get("address") or ""), str(entry.get("port") or _PORT)
    is_address = host and is_known(host) and re.fullmatch(r"[0-9]{1,5}", port)
    return str(entry.get("name") or _UNNAMED), Address(host, int(port)) if is_address else None
