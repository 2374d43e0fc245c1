"""Settings on which Kafka and earshot once differed: which releases refuse, and in which words."""

from typing import NamedTuple

from tests.judge.cases import Case
from tests.judge.judge import RELEASES
from tests.rules.vectors import BROKER, COMBINED, CONTROLLER, MAP, PAIR, Change

ZOOKEEPER = {
    "zookeeper.connect": "zookeeper:2181",
    "broker.id": "1",
    "listeners": BROKER["listeners"],
    "advertised.listeners": BROKER["advertised.listeners"],
    "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT",
    "inter.broker.listener.name": "INTERNAL",
}
KRAFT = RELEASES[RELEASES.index("3.3.2") :]
OF_ZOOKEEPER = RELEASES[: RELEASES.index("4.0.2")]
NAMES, VOTERS = "controller.listener.names", "controller.quorum.voters"
ADDRESSES = "advertised.listeners"
SERVERS, PROTOCOLS = "controller.quorum.bootstrap.servers", "listener.security.protocol.map"


class Vector(NamedTuple):
    """Sound settings with a change, and the releases from ``since`` to ``until`` that refuse it."""

    base: Case
    change: Change
    kafka: str
    """A part of the message of all of them; nothing where none refuses."""
    since: str = "3.3.2"
    until: str = RELEASES[-1]
    but_not: tuple[str, ...] = ()
    """Releases between them that take it."""

    @property
    def values(self) -> Case:
        changed = {**self.base, **self.change}
        return {key: value for key, value in changed.items() if value is not None}

    @property
    def judged_releases(self) -> tuple[str, ...]:
        return OF_ZOOKEEPER if self.base is ZOOKEEPER else KRAFT

    def refuses(self, version: str) -> bool:
        between = RELEASES[RELEASES.index(self.since) : RELEASES.index(self.until) + 1]
        return bool(self.kafka) and version in between and version not in self.but_not


TWICE = "INTERNAL://0.0.0.0:9092,INTERNAL://0.0.0.0:9092"
LOWER: Change = {"listeners": COMBINED["listeners"].lower(), ADDRESSES: BROKER[ADDRESSES]}
BLANK: Change = {NAMES: "CONTROLLER, OTHER", PROTOCOLS: MAP + ",OTHER:PLAINTEXT"}
BY_DEFAULT: Change = {
    "listeners": "PLAINTEXT://b1:9092",
    "advertised.listeners": None,
    "inter.broker.listener.name": None,
    PROTOCOLS: "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
}
ROLES = "must contain a parseable set of voters"
KNOWN = (
    Vector(BROKER, {"process.roles": None}, "Missing required configuration"),
    Vector(BROKER, {"log.segment.bytes": "65536"}, "at least 1048576", since="4.0.2"),
    Vector(COMBINED, {NAMES: "controller"}, NAMES),
    Vector(COMBINED, LOWER, ""),
    Vector(BROKER, {VOTERS: None, SERVERS: "127.0.0.1:9093"}, ROLES, until="3.8.1"),
    Vector(BROKER, {VOTERS: "9@127.0.0.1:9093,"}, f"Invalid configuration value for {VOTERS}"),
    Vector(BROKER, {VOTERS: "9@0.0.0.0:9093"}, "Host string (0.0.0.0) is not routeable", "3.8.1"),
    Vector(BROKER, {VOTERS: "9@c 9:9093"}, "Failed to parse host name", "3.8.1",
           but_not=("3.9.2",)),
    Vector(BROKER, {VOTERS: "+9@127.0.0.1:9093@"}, ""),
    Vector(BROKER, {SERVERS: "a:1,"}, "Failed to parse host name", "3.8.1"),
    Vector(BROKER, {SERVERS: "a:99999"}, "port out of range:99999", "3.8.1"),
    Vector(BROKER, {SERVERS: "a:65536"}, "port out of range:65536", "3.8.1"),
    Vector(BROKER, {SERVERS: "a:1,,b:2"}, "Failed to parse host name", "3.8.1"),
    Vector(BROKER, {SERVERS: ":9093"}, ""),
    Vector(BROKER, {PROTOCOLS: MAP.replace(",CONTROLLER:PLAINTEXT", "")}, "CONTROLLER"),
    Vector(CONTROLLER, {"listeners": None}, "controller.listener.names"),
    Vector(BROKER, {NAMES: ""}, NAMES),
    Vector(BROKER, {NAMES: "controller"}, "No enum constant"),
    Vector(BROKER, {NAMES: "CONTROLLER,controller"}, ""),
    Vector(BROKER, {NAMES: "plaintext", PROTOCOLS: MAP + ",PLAINTEXT:SSL"}, ""),
    Vector(BROKER, {"broker.id.generation.enable": "no"}, "either true or false", until="3.9.2"),
    Vector(BROKER, {NAMES: "controller", **BY_DEFAULT, PROTOCOLS: None}, "an explicit security"),
    Vector(BROKER, BLANK, "Controller listener with name", until="4.0.2"),
    Vector(CONTROLLER, {NAMES: "CONTROLLER,CONTROLLER", PROTOCOLS: "CONTROLLER:PLAINTEXT"},
           "must only contain KRaft", "3.9.2", "4.1.1"),
    Vector(CONTROLLER, {NAMES: "CONTROLLER,CONTROLLER",
                        "listeners": f"PLAINTEXT://127.0.0.1:9092,{CONTROLLER['listeners']}",
                        PROTOCOLS: "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"},
           "must only contain KRaft", but_not=("3.9.2", "4.0.2", "4.1.1")),
    Vector(BROKER, {NAMES: "CONTROLLER,CONTROLLER", **BY_DEFAULT, PROTOCOLS: None},
           "Duplicate key", "4.1.1", "4.1.1"),
    Vector(BROKER, {"listeners": TWICE, "advertised.listeners": "INTERNAL://b1:9092"},
           "Each listener must have a different name", until="4.1.1"),
    Vector(BROKER, {"listeners": BROKER["listeners"] + ","}, "values must not be empty", "4.2.1"),
    Vector(BROKER, {"listeners": PAIR}, "Each listener must have a different port", until="3.3.2"),
    Vector(BROKER, {PROTOCOLS: MAP.replace(",", ",,")}, "Error parsing configuration property"),
    Vector(BROKER, {PROTOCOLS: MAP + ","}, ""),
    Vector(BROKER, {PROTOCOLS: MAP + ",:PLAINTEXT"}, "listener name is null or empty", "3.8.1"),
    Vector(BROKER, {PROTOCOLS: MAP + ",internal:PLAINTEXT"}, "Duplicate key", "4.1.1"),
    Vector(BROKER, {PROTOCOLS: "INTERNAL:TLS," + MAP}, ""),
    Vector(BROKER, BY_DEFAULT, ""),
    Vector(BROKER, {PROTOCOLS: MAP.replace("INTERNAL:PLAINTEXT", "INTERNAL:SASL_PLAINTEXT"),
                   "sasl.enabled.mechanisms": "", "sasl.mechanism.inter.broker.protocol": ""},
           "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms"),
    Vector(BROKER, {"early.start.listeners": "CONTROLLER"}, "contains listener CONTROLLER, but"),
    Vector(COMBINED, {}, "must not contain KRaft controller listeners", until="3.8.1"),
    Vector(CONTROLLER, {"advertised.listeners": CONTROLLER["listeners"]},
           "must be empty when process.roles=controller", until="3.8.1"),
    Vector(ZOOKEEPER, {}, ""),
    Vector(ZOOKEEPER, {"zookeeper.connect": None}, "Missing required configuration", "2.8.2"),
    Vector(ZOOKEEPER, {NAMES: "CONTROLLER"}, "must be empty when not running in KRaft mode"),
    Vector(ZOOKEEPER, {"broker.id": "1001"}, "not greater than reserved.broker.max.id", "2.8.2"),
    Vector(ZOOKEEPER, {"broker.id": None, "broker.id.generation.enable": "false"},
           "broker.id must be greater than or equal to 0", "2.8.2"),
    Vector(ZOOKEEPER, {"broker.id.generation.enable": "fals"}, "either true or false", "2.8.2"),
    Vector(ZOOKEEPER, {"zookeeper.metadata.migration.enable": "1"},
           "either true or false", "3.8.1"),
    Vector(ZOOKEEPER, {"inter.broker.listener.name": "EXTERNAL",
                       PROTOCOLS: "INTERNAL:PLAINTEXT,EXTERNAL:SASL_SSL",
                       "sasl.enabled.mechanisms": "", "sasl.mechanism.inter.broker.protocol": ""},
           "must be included in sasl.enabled.mechanisms", "2.8.2"),
    Vector(ZOOKEEPER, {"node.id": "2"}, "You must set `node.id` to the same value as `broker.id`."),
    Vector(ZOOKEEPER, {"control.plane.listener.name": "EXTERNAL"}, ""),
    Vector(ZOOKEEPER, {"control.plane.listener.name": "INTERNAL"},
           "should have a different value from the inter broker listener name", "2.8.2"),
    Vector(ZOOKEEPER, {"control.plane.listener.name": "OTHER"},
           "control.plane.listener.name", "2.8.2"),
    Vector(ZOOKEEPER, {"early.start.listeners": "OTHER"}, "contains listener OTHER, but"),
)  # fmt: skip
