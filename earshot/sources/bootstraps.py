"""The bootstrap addresses of a file's services.

They are recognised by the names of client settings (`bootstrap.servers` in every spelling,
`KAFKA_BROKERS`, `KAFKA_BROKERCONNECT`): in variables, in a configuration within a variable, in the
command, in a connector that a command posts to a worker, and, without those, in mounted files next
to the Compose file. An argument of any program counts if a broker of the file has its port.

A client's security protocol is known if its image reads it from a variable, with PLAINTEXT as the
default. Sources: the documentation of Confluent's images
(https://docs.confluent.io/platform/current/installation/docker/config-reference.html), of kafka-ui
(https://ui.docs.kafbat.io/configuration/misc-configuration-properties), and `security.protocol` of
https://kafka.apache.org/documentation/#consumerconfigs_security.protocol.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from earshot.errors import EarshotError
from earshot.listeners.address import Address
from earshot.listeners.image_demands import ignored_by_registry
from earshot.listeners.images import repository_of
from earshot.listeners.placeholders import is_known
from earshot.listeners.properties import read_properties
from earshot.listeners.terms import ANY_IPV4, Protocol
from earshot.sources.service import Service
from earshot.topology.broker import Bootstrap, Broker
from earshot.topology.container import is_loopback
from earshot.topology.msk import is_msk_broker
from earshot.yaml_reading.document import read_yaml_texts

_SETTING = re.compile(
    r"(?:.*[_.\-])?(?:BOOTSTRAP[_.\-]?(?:SERVERS?|BROKERS?)|BROKERCONNECT|BROKER[_.\-]LIST"
    r"|KAFKA[_.\-](?:BROKERS?|SERVERS?|HOSTS?|URLS?|ADDR(?:ESS(?:ES)?)?|BROKER[_.\-](?:ADDR(?:ESS(?:ES)?)?|URLS?|HOSTS?|SERVERS?))"
    r"|BOOTSTRAPSERVERS|KAFKASTORE[_.\-]BOOTSTRAP[_.\-]SERVERS)(?:[_.\-](?:[0-9]+|CONFIG|LIST))?",
    re.ASCII | re.IGNORECASE,
)
_LIKELY = re.compile(r"(?:.*_)?(?:KAFKA|BROKERS?|BROKER_ADDR(?:ESS)?)|.*KAFKA.*", re.IGNORECASE)
_NOT_FOR_CLIENT = re.compile(
    r"listen|bind|advertise|quorum|external|public|outside|host_|mqtt|rabbit|amqp|celery",
    re.IGNORECASE,
)
"""In names of variables: addresses that a program binds or tells others, and other brokers."""
_ADDRESS = re.compile(
    r"(?:(?!https?:)[A-Za-z_]+://)?([A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\]):([0-9]{2,5})", re.ASCII
)
_OPTION = re.compile(
    r"(?<![\w.-])(?:--|-D)(?:[\w.-]*bootstrap[.-]servers?|broker-list|kafka-server|brokers?)"
    r"[= ]([^\s'\";|&]+)"
    r"|\b(?:cub kafka-ready (?:-b|.{0,200}? -b)|kcat -b|kafkacat -b) ([^\s'\";|&]+)",
    re.ASCII,
)
_REPORTERS = "KAFKA_METRIC_REPORTERS"
_REPEATED = re.compile(r"--kafka\.server[= ]([^\s'\";|&]+)", re.ASCII)
_WITHIN = re.compile(
    r"""["']?bootstrap(?:[.-]s|S)ervers["']?\s*[:=]\s*\[?["']?([^\s"'\\}\]]+)""", re.ASCII
)
"""In a variable that contains a whole configuration, as AKHQ's."""
_ASSIGNED = re.compile(
    r"""^[^#\n]*\bbootstrap[._]servers["']?\s*(?:=>|=|:)\s*\[?["']?([^\s"'\]]+)""",
    re.ASCII | re.MULTILINE,
)
"""In configurations of Logstash and Vector."""
_CONNECTOR = "bootstrap.servers of a connector"
_WORKER = re.compile(r"https?://([A-Za-z0-9_.-]+):[0-9]+/connectors", re.ASCII)
_HOST = re.compile(r"((?:.*_)?KAFKA_(?:BROKER_|BOOTSTRAP_)?)HOST(?:NAME)?", re.ASCII)
_OWN_OPTION = re.compile(r"(?i)listen|bind|addr|advertise")
"""The option before a program's own address."""
_SERVES = re.compile(r"(?i)kafka-server-start|socat|ssh |port-forward|proxy")
_UI = re.compile(r"(?:.*/)?(?:provectuslabs|kafbat)/kafka-ui")
_OF_REGISTRY = "SCHEMA_REGISTRY_KAFKASTORE_"
_CONNECT = re.compile(
    r"(?:.*/)?(?:debezium/connect|confluentinc/cp-(?:kafka|server)-connect)(?:-base)?"
)
_TOOL = re.compile(
    r"(?:.*/)?(?:obsidiandynamics/kafdrop|tchiotludo/akhq|redpandadata/console"
    r"|danielqsj/kafka-exporter)"
)
_WORKER_PROTOCOL = "CONNECT_SECURITY_PROTOCOL"
_OF_CONNECT = ("CONNECT_BOOTSTRAP_SERVERS", "BOOTSTRAP_SERVERS")
_PORT_NUMBER = re.compile(r"[0-9]{2,5}", re.ASCII)
_Row = tuple[re.Pattern[str], re.Pattern[str], str]


def _confluent(images: str, begin: str, own: str = "") -> _Row:
    """The row of Confluent's ``images``, whose variables begin with ``begin``."""
    image = re.compile(rf"(?:.*/)?confluentinc/(?:{images})")
    return image, re.compile(rf"({begin})BOOTSTRAP_SERVERS"), rf"\1{own}SECURITY_PROTOCOL"


_DEBEZIUM = re.compile(r"(?:.*/)?debezium/connect(?:-base)?")
_PORT_OF_LINK = 9092
"""The port at which Debezium's start script looks for linked brokers."""
_PROTOCOLS: tuple[_Row, ...] = (
    (
        _UI,
        re.compile(r"(KAFKA_CLUSTERS_[0-9]+)_BOOTSTRAP_?SERVERS"),
        r"\1_PROPERTIES_SECURITY_PROTOCOL",
    ),
    (_DEBEZIUM, re.compile("BOOTSTRAP_SERVERS"), _WORKER_PROTOCOL),
    _confluent("cp-schema-registry", _OF_REGISTRY),
    _confluent("cp-kafka-connect(?:-base)?|cp-server-connect(?:-base)?", "CONNECT_"),
    _confluent("(?:cp-)?ksqldb-server", "KSQL_"),
    _confluent("cp-kafka-rest", "KAFKA_REST_", "CLIENT_"),
)
"""By image: the variable of its addresses, and that of its security protocol."""


def is_client_setting(name: str) -> bool:
    """Whether a variable of this name contains a client's bootstrap address, or a part of it."""
    is_port = name.endswith("PORT") and "KAFKA" in name
    return bool(_SETTING.fullmatch(name) or _HOST.fullmatch(name)) or is_port


def ports_of(brokers: Iterable[Broker]) -> frozenset[int]:
    """The ports that ``brokers`` bind or advertise."""
    endpoints = [endpoint for broker in brokers for endpoint in broker.for_clients]
    advertised = {endpoint.advertised.port for endpoint in endpoints if endpoint.advertised}
    return frozenset({endpoint.bind.port for endpoint in endpoints} | advertised)


def bootstraps_alone(services: Iterable[Service]) -> bool:
    """Whether a client whose image contains no broker bootstraps to its own loopback."""
    return any(
        bootstrap.is_client_only
        and all(is_loopback(address.host) for address in bootstrap.addresses)
        for bootstrap in bootstraps(services, ())
    )


def uses_msk(services: Iterable[Service]) -> bool:
    """Whether a client bootstraps to a broker of Amazon MSK."""
    clients = bootstraps(services, ())
    return any(is_msk_broker(at.host) for client in clients for at in client.addresses)


def bootstraps(
    services: Iterable[Service], brokers: Iterable[str], ports: Collection[int] = ()
) -> Iterator[Bootstrap]:
    """The bootstraps of ``services``; settings of ``brokers`` for their own listeners are not.

    An argument with one of ``ports``, those of brokers, is a bootstrap address.
    """
    broker_names = set(brokers)
    for service in services:
        is_broker = service.name in broker_names
        settings = [*_in_variables(service, is_broker=is_broker)]
        if not is_broker:
            settings += [] if settings else _in_likely_variables(service, ports)
            settings += _in_command(service, ports)
            settings += [] if settings else _in_files(service)
            settings += [] if settings else _in_links(service, broker_names)
        for setting, value in settings:
            if addresses := addresses_in(value):
                name, is_client_only = _client_service(service, setting), _is_client_only(service)
                client = Bootstrap(name, setting, addresses, is_client_only=is_client_only)
                client = _with_security(service, client)
                yield client
                yield from _clients_of_connectors(service, client)


def _in_links(service: Service, brokers: Collection[str]) -> Iterator[tuple[str, str]]:
    """The linked brokers that Debezium's start script finds if no variable gives an address."""
    container = service.container
    if container.has_link_variables and _DEBEZIUM.fullmatch(repository_of(container.image)):
        linked = [link for link, target in container.links.items() if target in brokers]
        if linked:
            yield "BOOTSTRAP_SERVERS", ",".join(f"{link}:{_PORT_OF_LINK}" for link in linked)


def health_checks(services: Iterable[Service], brokers: Iterable[str]) -> Iterator[Bootstrap]:
    """The addresses that health checks of ``brokers`` connect to with Kafka's tools."""
    broker_names = set(brokers)
    for service in services:
        text = " ".join(service.health_check) if service.name in broker_names else ""
        for match in _OPTION.finditer(text):
            if addresses := addresses_in(match[1] or match[2]):
                yield Bootstrap(service.name, "healthcheck", addresses)


def _is_client_only(service: Service) -> bool:
    """Whether the image is one of the known clients, with its own start script."""
    container, image = service.container, repository_of(service.container.image)
    if container.unknown or not service.is_plain or container.has_own_script:
        return False
    return any(pattern.fullmatch(image) for pattern in (_TOOL, *(row[0] for row in _PROTOCOLS)))


def _client_service(service: Service, setting: str) -> str:
    """The client: the worker if ``service`` posts a connector to it, or else ``service``."""
    worker = _WORKER.search(" ".join(service.command)) if setting == _CONNECTOR else None
    return worker[1] if worker else service.name


def _with_security(service: Service, client: Bootstrap) -> Bootstrap:
    """``client`` with its security protocol and SASL mechanism, where they are known."""
    env, setting = service.container.env, client.setting
    for image_pattern, setting_pattern, variable in _PROTOCOLS:
        match = setting_pattern.fullmatch(setting)
        if match is None or not _has_own_settings(service, image_pattern):
            continue
        name = env.get(match.expand(variable), Protocol.PLAINTEXT)
        if setting.startswith(_OF_REGISTRY) and ignored_by_registry(env[setting], name):
            return client  # KL014 reports that it does not start
        mechanism = match.expand(variable).replace("SECURITY_PROTOCOL", "SASL_MECHANISM")
        return replace(
            client,
            protocol=_protocol_named(name),
            mechanism=env.get(mechanism, ""),
            mechanism_setting=mechanism,
        )
    return client


def _has_own_settings(service: Service, image: re.Pattern[str]) -> bool:
    """Whether an ``image`` gets its settings from variables only."""
    container = service.container
    has_settings_file = any(
        mount.endswith((".properties", ".yml", ".yaml")) or mount.startswith("/kafka/config")
        for mount in container.mounts
    )
    if container.unknown or not service.is_plain or has_settings_file:
        return False
    return image.fullmatch(repository_of(container.image)) is not None


def _protocol_named(text: str) -> Protocol | None:
    name = text.strip().upper()
    return Protocol(name) if name in list(Protocol) else None


def _clients_of_connectors(service: Service, worker: Bootstrap) -> Iterator[Bootstrap]:
    """The clients that Connect's worker makes for connectors, if their protocol is another one."""
    if worker.setting not in _OF_CONNECT or not _has_own_settings(service, _CONNECT):
        return
    protocols = {worker.protocol}
    for client in ("PRODUCER", "CONSUMER", "ADMIN"):
        setting = f"CONNECT_{client}_SECURITY_PROTOCOL"
        protocol = _protocol_named(service.container.env.get(setting, ""))
        has_own = f"CONNECT_{client}_BOOTSTRAP_SERVERS" in service.container.env
        if protocol is not None and protocol not in protocols and not has_own:
            protocols.add(protocol)
            mechanism = f"CONNECT_{client}_SASL_MECHANISM"
            yield replace(
                worker,
                protocol=protocol,
                protocol_setting=setting,
                mechanism=service.container.env.get(mechanism, ""),
                mechanism_setting=mechanism,
            )


def _in_variables(service: Service, *, is_broker: bool) -> Iterator[tuple[str, str]]:
    env = service.container.env
    for name, value in env.items():
        if not _SETTING.fullmatch(name):
            yield from ((name, text) for text in dict.fromkeys(_WITHIN.findall(value)))
            if "\n" in value and "brokers:" in value and not is_broker:
                yield from ((name, text) for text in _in_yaml(value, name))
            continue
        if is_broker and "QUORUM" in name.upper():
            continue
        if "METRICS_REPORTER" in name.upper() and not env.get(_REPORTERS):
            continue  # no program reads it
        yield name, value
    if not is_broker:
        yield from _in_pairs(env)


def _in_likely_variables(service: Service, ports: Collection[int]) -> Iterator[tuple[str, str]]:
    """The variables that belong to Kafka by their names, with addresses that have ``ports``."""
    for name, value in service.container.env.items():
        if not _LIKELY.fullmatch(name) or _NOT_FOR_CLIENT.search(name):
            continue
        addresses = addresses_in(value)
        if addresses and all(at.port in ports and at.host != ANY_IPV4 for at in addresses):
            yield name, value


def _in_pairs(env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """A host and a port in two variables: KAFKA_HOST and KAFKA_PORT."""
    for name, host in env.items():
        begin = _HOST.fullmatch(name)
        port = env.get(f"{begin[1]}PORT", "") if begin else ""
        if _PORT_NUMBER.fullmatch(port) and ":" not in host and "," not in host:
            yield name, f"{host}:{port}"


def _in_command(service: Service, ports: Collection[int]) -> Iterator[tuple[str, str]]:
    text = " ".join(service.command)
    given = [match[1] or match[2] for match in _OPTION.finditer(text)]
    yield from (("command", value) for value in given)
    has_option = bool(given)
    if servers := _REPEATED.findall(text):  # one each, and all of one client
        has_option = True
        yield "command", ",".join(servers)
    setting = _CONNECTOR if _WORKER.search(text) else "command"
    for value in dict.fromkeys(_WITHIN.findall(text)):
        has_option = True
        if setting == _CONNECTOR or value not in given:
            yield setting, value
    option = ""
    for word in service.command if not has_option else ():
        if word.startswith("-") and "=" in word:
            option, _, word = word.partition("=")
        addresses = addresses_in(word)
        if len(addresses) == 1 and addresses[0].port in ports and not _OWN_OPTION.search(option):
            if is_loopback(addresses[0].host) and _SERVES.search(text):
                continue
            yield "command", word
        option = word


def _in_files(service: Service) -> Iterator[tuple[str, str]]:
    """Addresses in files that are mounted from the Compose file's folder."""
    text = " ".join(service.command)
    named = [path for path in service.files if path in text]
    for path in named or service.files:
        content = service.files[path]
        if path.endswith((".yml", ".yaml")):
            yield from ((path, value) for value in _in_yaml(content, path))
        elif path.endswith((".conf", ".toml")):
            yield from ((path, value) for value in _ASSIGNED.findall(content))
        elif path.endswith(".properties"):
            for key, value in read_properties(content).values.items():
                if re.fullmatch(r"(?:.*\.)?bootstrap\.servers", key):
                    yield path, value


def _in_yaml(content: str, shown: str) -> Iterator[str]:
    """Addresses in a configuration such as Spring's, kafka-ui's, AKHQ's or Redpanda Console's."""
    if "kafka" not in content.lower():
        return
    try:
        document = read_yaml_texts(content, shown, unique=False, lenient=True)
    except EarshotError:
        return
    yield from _yaml_addresses(document, "")


def _yaml_addresses(value: object, parent: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, entry in value.items():
            plain = re.sub(r"[._-]", "", str(key)).lower()
            if plain == "bootstrapservers" or (plain == "brokers" and parent == "kafka"):
                entries = entry if isinstance(entry, list) else [entry]
                yield ",".join(str(entry) for entry in entries)
            else:
                yield from _yaml_addresses(entry, plain)
    elif isinstance(value, list):
        for entry in value:
            yield from _yaml_addresses(entry, parent)


def addresses_in(text: str) -> tuple[Address, ...]:
    """All addresses in ``text``; none if one of them is unreadable."""
    if not is_known(text):
        return ()
    addresses = []
    for entry in re.split(r"[,;\s]+", text.strip().strip("[]\"'")):
        match = _ADDRESS.fullmatch(entry.strip("\"'"))
        if match is None or int(match[2]) > 65_535:
            return ()
        addresses.append(Address(match[1].strip("[]"), int(match[2])))
    return tuple(addresses)
