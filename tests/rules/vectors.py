"""Settings with a known verdict: the answer of Kafka of three versions, and the rule.

``kafka`` has one sign per version of the oracle (3.9, 4.1, the newest): `x` refuses, `.` takes.
``ours`` is what must object: `GRAMMAR`, in which earshot writes settings, or KL002; an empty text
where neither does.
"""

from collections.abc import Iterator
from typing import NamedTuple

Change = dict[str, str | None]
GRAMMAR = "grammar"

BROKER = {
    "process.roles": "broker",
    "node.id": "1",
    "controller.quorum.voters": "9@127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "INTERNAL",
    "listeners": "INTERNAL://0.0.0.0:9092,EXTERNAL://0.0.0.0:9094",
    "advertised.listeners": "INTERNAL://b1:9092,EXTERNAL://b1.example.org:9094",
}
COMBINED = BROKER | {
    "process.roles": "broker,controller",
    "node.id": "9",
    "listeners": "INTERNAL://0.0.0.0:9092,EXTERNAL://0.0.0.0:9094,CONTROLLER://127.0.0.1:9093",
    "advertised.listeners": BROKER["advertised.listeners"] + ",CONTROLLER://127.0.0.1:9093",
}
CONTROLLER = {
    "process.roles": "controller",
    "node.id": "9",
    "controller.quorum.voters": "9@127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://127.0.0.1:9093",
}
BASES = {"B": BROKER, "X": COMBINED, "C": CONTROLLER}

MAP = BROKER["listener.security.protocol.map"]
ADVERTISED = BROKER["advertised.listeners"]
PAIR = "INTERNAL://127.0.0.1:9092,EXTERNAL://[::1]:9092"
NO_MAP: Change = {"listener.security.protocol.map": None}
NO_INTER: Change = {"inter.broker.listener.name": None}
NOT_ADVERTISED: Change = {"advertised.listeners": None}


class Vector(NamedTuple):
    """A base with some settings changed (None takes one away)."""

    name: str
    base: str
    change: Change
    kafka: str
    ours: str

    @property
    def values(self) -> dict[str, str]:
        changed = {**BASES[self.base], **self.change}
        return {key: value for key, value in changed.items() if value is not None}


def _bound(name: str, kafka: str, ours: str, *texts: str, **also: str) -> Iterator[Vector]:
    for text in texts:
        change: Change = {"listeners": text, **{k.replace("_", "."): v for k, v in also.items()}}
        yield Vector(name, "B", change, kafka, ours)


def _advertised(name: str, kafka: str, ours: str, *texts: str) -> Iterator[Vector]:
    for text in texts:
        yield Vector(name, "B", {"advertised.listeners": text}, kafka, ours)


def _external(
    name: str, kafka: str, ours: str, *hosts: str, port: str = "9094"
) -> Iterator[Vector]:
    entries = [f"INTERNAL://b1:9092,EXTERNAL://{host}:{port}" for host in hosts]
    return _advertised(name, kafka, ours, *entries)


def _map(name: str, kafka: str, ours: str, *texts: str) -> Iterator[Vector]:
    for text in texts:
        yield Vector(name, "B", {"listener.security.protocol.map": text}, kafka, ours)


def _voters(name: str, kafka: str, ours: str, *texts: str, base: str = "B") -> Iterator[Vector]:
    for text in texts:
        yield Vector(name, base, {"controller.quorum.voters": text}, kafka, ours)


def _names_and_ports() -> Iterator[Vector]:
    rest = "EXTERNAL://0.0.0.0:9094"
    yield from _bound("V1", "xxx", GRAMMAR, "INTERNAL://0.0.0.0:9092,INTERNAL://0.0.0.0:9094")
    yield from _bound("V2", "xxx", GRAMMAR, "INTERNAL://0.0.0.0:9092,internal://0.0.0.0:9094")
    twice: Change = {
        "listeners": "INTERNAL://0.0.0.0:9092,INTERNAL://0.0.0.0:9092",
        "advertised.listeners": "INTERNAL://b1:9092",
    }
    yield Vector("V3", "B", twice, "xx.", GRAMMAR)
    yield from _bound("V4", "xxx", "KL002", "INTERNAL://10.0.0.1:9092,EXTERNAL://10.0.0.2:9092")
    yield from _bound("V5", "xxx", "KL002", "INTERNAL://h1:9092,EXTERNAL://h2:9092")
    yield from _bound("V6", "xxx", "KL002", "INTERNAL://:9092,EXTERNAL://:9092")
    yield from _bound("V7", "...", "", PAIR)
    more = {"listener_security_protocol_map": MAP + ",X:PLAINTEXT,Y:PLAINTEXT"}
    yield from _bound("V8", "xxx", "KL002", PAIR + ",X://10.0.0.1:9092", **more)
    yield from _bound("V9", "xxx", "KL002", PAIR + ",X://h:9092", PAIR + ",X://:9092", **more)
    yield from _bound("V10", "xxx", "KL002", "INTERNAL://127.0.0.1:9092,EXTERNAL://localhost:9092")
    yield from _bound("V11", "...", "KL002", "INTERNAL://0.0.0.0:9092,EXTERNAL://[::]:9092")
    yield from _bound("V12", "...", "", PAIR + ",X://127.0.0.1:9093,Y://[::1]:9093", **more)
    yield from _bound("V13", "...", GRAMMAR, "INTERNAL://0.0.0.0:0,EXTERNAL://0.0.0.0:0")
    both = BROKER["listeners"]
    yield from _bound("V14", "..x", GRAMMAR, both + ",", both.replace(",", ",,"), "," + both)
    yield from _bound("V15", "...", "", both.replace(",", " , "), both.replace(",", "\t,\t"))
    yield from _bound("V16", "xxx", GRAMMAR, "", " ")
    yield from _bound("V17", "xxx", GRAMMAR, f"://b1:9092,{rest}", f"  ://b1:9092,{rest}")


def _advertised_addresses() -> Iterator[Vector]:
    yield from _advertised("V20", "...", "", "INTERNAL://b1:9092,EXTERNAL://b1:9092")  # KL004
    yield from _advertised("V21", "xxx", GRAMMAR, "INTERNAL://b1:9092,INTERNAL://b1:9095")
    yield from _advertised("V22", "xx.", GRAMMAR, "INTERNAL://b1:9092,INTERNAL://b1:9092")
    yield from _advertised("V23", "xxx", "KL002", "EXTERNAL://b1:9094")
    yield from _advertised("V24", "xxx", "KL002", ADVERTISED + ",FOO://b1:9099")
    yield Vector("V25", "B", {"listeners": "INTERNAL://0.0.0.0:9092"}, "xxx", "KL002")
    yield from _advertised("V26", "xxx", GRAMMAR, "", "  ")
    yield from _external("V27", "xxx", "KL002", "0.0.0.0")
    yield from _external("V28", "...", "", "[::]", "[::0]", "[::ffff:0.0.0.0]")  # KL003
    yield from _external("V28", "...", GRAMMAR, "0", "000.0.0.0", "0.0.0.0.")
    yield from _external("V29", "...", "", "127.0.0.1", "localhost")  # KL003 by scope
    yield from _external("V30", "...", GRAMMAR, "")
    yield Vector("V31", "B", NOT_ADVERTISED, "xxx", "KL002")
    for name, listeners, ours in (
        ("V32", "INTERNAL://:9092,EXTERNAL://:9094", "KL002"),
        ("V33", "INTERNAL://b1:9092,EXTERNAL://b1.example.org:9094", ""),
    ):
        yield Vector(name, "B", {"listeners": listeners, **NOT_ADVERTISED}, "...", ours)
    for port in ("99999", "-1", "0"):
        yield from _external("V34", "...", GRAMMAR, "b1", port=port)
    quorum: Change = {"advertised.listeners": ADVERTISED + ",CONTROLLER://127.0.0.1:9093"}
    yield Vector("V35", "B", quorum, "...", "KL002")
    yield Vector("V36", "X", quorum, "...", "")
    odd: tuple[str, ...] = (
        "host_1",
        "host.",
        "a..b",
        "-bad-",
        "a" * 70 + ".example",
        "256.256.256.256",
        "127.1",
    )
    odd += ("2130706433", "0x7f000001", "2001:db8::1", "::1", "[host]", "[host", "10.0.0.1%eth0")
    odd += ("[fe80::1%eth0]", "b%201", "host:9094")
    yield from _external("V37", "...", GRAMMAR, *odd, "b1:0")
    yield from _external("V37", "...", GRAMMAR, "b1", port="09092")
    yield from _external("V37", "...", "", "[2001:db8::1]")
    bad = ("*", "a b", "${IP}", "10.0.0.1 10.0.0.2", "bücher", "user@host")
    yield from _external("V38", "xxx", GRAMMAR, *bad)
    for port in ("+9092", "9092/", "", "99999999999"):
        yield from _external("V38", "xxx", GRAMMAR, "b1", port=port)
    yield from _advertised("V38", "xxx", GRAMMAR, f'"{ADVERTISED}"', ADVERTISED.replace(",", ";"))
    yield from _advertised("V38", "xxx", GRAMMAR, ADVERTISED.replace(",", " "), "b1:9092")
    yield from _advertised(
        "V38", "xxx", GRAMMAR, "PLAINTEXT://:tcp://10.1.1.1:9092", "INTERNAL://b1"
    )
    yield from _external("V39", "...", "", "xn--bcher-kva.example")


def _map_and_inter_broker() -> Iterator[Vector]:
    yield from _map("V40", "xxx", GRAMMAR, MAP.replace("INTERNAL:PLAINTEXT", "INTERNAL:TLS"))
    yield from _map("V41", "...", GRAMMAR, MAP.replace("INTERNAL:PLAINTEXT", "INTERNAL:plaintext"))
    yield from _map("V42", "xxx", GRAMMAR, MAP.replace("INTERNAL:", "INTERNAL="), MAP + ",X")
    yield from _map("V43", "...", GRAMMAR, MAP + ",")
    yield from _map("V43", "...", "", MAP.replace(":", ": "))
    yield from _map("V44", "xxx", GRAMMAR, MAP + ",X:")
    yield from _map("V45", "xxx", GRAMMAR, MAP + ",:PLAINTEXT")
    yield from _map("V46", "...", GRAMMAR, MAP + ",INTERNAL:PLAINTEXT", "INTERNAL:SSL," + MAP)
    yield from _map("V47", ".xx", GRAMMAR, "internal:SSL," + MAP)
    yield from _map("V48", "xxx", GRAMMAR, "")
    yield from _map("V49", "xxx", "KL002", MAP.replace("EXTERNAL", "OTHER"))
    no_controller: Change = {
        "listener.security.protocol.map": MAP.removesuffix(",CONTROLLER:PLAINTEXT")
    }
    yield Vector("V50", "B", no_controller, "xxx", "KL002")
    yield Vector("V51", "X", no_controller, "xxx", "KL002")
    yield Vector("V51", "C", no_controller, "xxx", "KL002")
    plain: Change = NO_MAP | NO_INTER | NOT_ADVERTISED
    yield Vector("V52", "B", plain | {"listeners": "PLAINTEXT://:9092"}, "...", "KL002")
    ssl: Change = {"listeners": "SSL://:9092", "security.inter.broker.protocol": "SSL"}
    yield Vector("V53", "B", plain | ssl, "xxx", "KL002")
    named: Change = plain | {"listeners": "PLAINTEXT://b1:9092"}
    both: Change = {"controller.listener.names": "CONTROLLER,SASL_SSL"}
    yield Vector("V54", "B", named | both, "xxx", "KL002")
    yield Vector("V55", "B", named | {"controller.listener.names": "SSL"}, "...", "")
    protocol = "security.inter.broker.protocol"
    yield Vector("V56", "B", {protocol: "PLAINTEXT"}, "xxx", "KL002")
    yield Vector("V57", "B", {"inter.broker.listener.name": "REPLICATION"}, "xxx", "KL002")
    yield Vector("V58", "B", NO_INTER, "xxx", "KL002")
    more: Change = {"listener.security.protocol.map": MAP + ",PLAINTEXT:PLAINTEXT"}
    yield Vector("V58", "B", NO_INTER | more, "xxx", "KL002")
    for text, kafka in (("internal", "..."), (" INTERNAL ", "..."), ("", "xxx")):
        vector = "V60" if not text else "V59"
        yield Vector(vector, "B", {"inter.broker.listener.name": text}, kafka, GRAMMAR)
    for text in ("ssl", "FOO"):
        yield Vector("V61", "B", NO_INTER | {protocol: text}, "xxx", "KL002")
    sasl: Change = {
        "listener.security.protocol.map": MAP.replace("INTERNAL:", "INTERNAL:SASL_"),
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
    }
    yield Vector("V62", "B", sasl, "xxx", "KL002")
    yield Vector("V62", "B", sasl | {"sasl.enabled.mechanisms": "SCRAM-SHA-512, PLAIN"}, "...", "")
    yield Vector("I5a", "B", {"sasl.enabled.mechanisms": "PLAIN,"}, "..x", "KL002")
    yield from _bound("V63", "...", GRAMMAR, BROKER["listeners"].replace("EXTERNAL", "ExTernal"))
    for name in ("INT-ERNAL", "INT.ERNAL", "1INT", "INT/ERNAL", "INT:ERNAL", "EXT ERNAL"):
        yield Vector(
            "V64",
            "B",
            {
                "listeners": f"{BROKER['listeners']},{name}://0.0.0.0:9096",
                "listener.security.protocol.map": f"{MAP},{name}:PLAINTEXT",
            },
            "...",
            GRAMMAR,
        )


def _roles_and_ids() -> Iterator[Vector]:
    yield Vector("V70", "B", {"process.roles": "foo"}, "xxx", "KL002")
    yield Vector("V71", "B", {"process.roles": "broker,broker"}, "xx.", "KL002")
    yield Vector("V72", "B", {"process.roles": ""}, "x.x", "KL002")
    yield Vector("V72", "B", {"process.roles": None}, "xxx", "KL002")
    for id in (None, "-1", "one", "2147483648"):
        yield Vector("V73", "B", {"node.id": id}, "xxx", "KL002")
    yield Vector("V74", "B", {"node.id": None, "broker.id": "3"}, "...", "")
    yield Vector("V75", "B", {"broker.id": "3"}, "xxx", "KL002")
    yield Vector("V76", "B", {"node.id": "2000"}, "...", "")
    yield Vector("V77", "B", {"controller.quorum.voters": None}, "xxx", "KL002")
    servers = "controller.quorum.bootstrap.servers"
    for name, text in (("V78", "127.0.0.1:9093"), ("V79", "nowhere.invalid:9093")):
        change: Change = {"controller.quorum.voters": None, servers: text}
        yield Vector(name, "B", change, "...", "")  # KL011 for V79
    broken = ("1", "1@", "1:", "blah@", "1@kafka1:9092,", "1@kafka1:9092,2", "1@kafka1:9092,2@")
    yield from _voters("V80", "xxx", GRAMMAR, *broken, "1@kafka1:9092:1@kafka2:9092")
    yield from _voters("V81", "xxx", GRAMMAR, "1@kafka1", "1@127.0.0.1:1,2@blah", "9@c9:-1")
    yield from _voters("V82", "xxx", GRAMMAR, "x@127.0.0.1:9093")
    yield from _voters("V83", "xxx", GRAMMAR, "9@127.0.0.1:99999")
    yield from _voters("V84", "xxx", GRAMMAR, "")
    three = "9@127.0.0.1:9093 , 10@127.0.0.1:9094 , 11@127.0.0.1:9095"
    yield from _voters("V85", "...", "", "9@127.0.0.1:9093", "9@[::1]:9093", three)
    loose: tuple[str, ...] = (
        "9@127.0.0.1:0",
        "9@:9093",
        "9@local_host:9093",
        "9@[127.0.0.1:9093",
        "9@::1:9093",
    )
    loose += ("9@CONTROLLER://127.0.0.1:9093", "9@127.0.0.1:1,9@127.0.0.1:2")
    yield from _voters("V86", "...", GRAMMAR, *loose)
    yield from _voters("V86", "...", "KL002", "9@0.0.0.0:9093")
    yield from _voters("V87", ".xx", GRAMMAR, "9@c 9:9093")
    yield Vector("V88", "B", {"node.id": "9"}, "xxx", "KL002")
    for base in ("X", "C"):
        yield from _voters("V89", "xxx", "KL002", "8@127.0.0.1:9093", base=base)
        yield from _voters("V90", "...", "", "9@127.0.0.1:9999", base=base)


def _controllers() -> Iterator[Vector]:
    names = "controller.listener.names"
    for base in ("B", "X", "C"):
        yield Vector("V91/V92", base, {names: None}, "xxx", "KL002")
        yield Vector("V91/V92", base, {names: ""}, "xxx", GRAMMAR)
    extra = BROKER["listeners"] + ",CONTROLLER://b1:9093"
    yield from _bound("V93", "xxx", "KL002", extra)
    added = CONTROLLER["listeners"] + ",PLAINTEXT://:9092"
    yield Vector("V94", "C", {"listeners": added}, "xxx", "KL002")
    yield Vector("V95", "X", {"listeners": BROKER["listeners"]}, "xxx", "KL002")
    second: Change = {
        names: "CONTROLLER,CONTROLLER2",
        "listener.security.protocol.map": MAP + ",CONTROLLER2:PLAINTEXT",
    }
    yield Vector("V96", "X", second, "xxx", "KL002")
    yield Vector("V96", "C", second, "xxx", "KL002")
    yield Vector("V96", "B", second, "...", "KL002")
    blank: Change = second | {
        names: "CONTROLLER, CONTROLLER2",
        "listeners": COMBINED["listeners"] + ",CONTROLLER2://127.0.0.1:9095",
    }
    yield Vector("V97", "X", blank, "x..", GRAMMAR)
    for base, kafka in (("X", "xxx"), ("C", "xxx"), ("B", "...")):
        lower: Change = {names: "controller"}
        if base == "B":
            lower["listener.security.protocol.map"] = MAP + ",controller:PLAINTEXT"
            kafka = ".xx"  # the map's two keys differ in case only
        yield Vector("V98", base, lower, kafka, GRAMMAR)
    yield Vector("V99", "C", {"inter.broker.listener.name": "CONTROLLER"}, ".xx", "KL002")
    yield Vector("V100", "C", {"inter.broker.listener.name": "PLAINTEXT"}, "...", "KL002")
    yield Vector("V101", "X", {names: "INTERNAL,EXTERNAL,CONTROLLER"}, "xxx", "KL002")
    yield Vector("V102", "X", {"inter.broker.listener.name": "CONTROLLER"}, "xxx", "KL002")
    advertised = "advertised.listeners"
    yield Vector("V103", "C", {advertised: "CONTROLLER://lb.example.org:9000"}, "...", "")
    yield Vector("V104", "C", {advertised: "CONTROLLER://0.0.0.0:9093"}, "xxx", "KL002")
    yield Vector("V105", "C", {advertised: "PLAINTEXT://b:9092"}, "...", "KL002")
    foreign = "INTERNAL://b1:9092,EXTERNAL://0.0.0.0:9094"
    protocols = "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
    mapped: Change = {advertised: foreign, "listener.security.protocol.map": protocols}
    yield Vector("V105a", "C", mapped, "xxx", "KL002")
    two: Change = {
        names: "CONTROLLER,CONTROLLER2",
        "listeners": "CONTROLLER://127.0.0.1:9093,CONTROLLER2://127.0.0.1:9095",
        advertised: "CONTROLLER://lb.example.org:9000",
    }
    yield Vector("V106", "C", two, "...", "KL002")
    for name, host in (("V107", "0.0.0.0"), ("V108", "")):
        wildcard = f"CONTROLLER://{host}:9093"
        yield Vector(name, "C", {"listeners": wildcard}, "...", "KL002")
        combined: Change = {
            "listeners": f"{BROKER['listeners']},{wildcard}",
            advertised: ADVERTISED,
        }
        yield Vector(name, "X", combined, "...", "KL002")
    yield Vector("V109", "B", {"controller.quorum.auto.join.enable": "true"}, "..x", "KL002")
    yield Vector("V109", "X", {"controller.quorum.auto.join.enable": "rue"}, "..x", "KL002")
    yield Vector("V110", "B", {"early.start.listeners": "FOO"}, "xxx", "KL002")
    yield Vector("V110", "B", {"early.start.listeners": "internal"}, "xxx", GRAMMAR)
    yield Vector("V111", "B", {"early.start.listeners": "INTERNAL"}, "...", "")
    yield Vector("V111", "X", {"early.start.listeners": "INTERNAL,CONTROLLER"}, "...", "")
    yield Vector("C12", "B", {"control.plane.listener.name": "INTERNAL"}, "x..", "KL002")


def _values() -> Iterator[Vector]:
    for name, key, text, kafka in (
        ("T1", "auto.create.topics.enable", "yes", "xxx"),
        ("T1", "auto.create.topics.enable", "1", "xxx"),
        ("T1", "auto.create.topics.enable", "", "xxx"),
        ("T1", "delete.topic.enable", " TRUE ", "..."),
        ("T2", "num.partitions", "three", "xxx"),
        ("T2", "num.partitions", "0", "xxx"),
        ("T2", "num.partitions", "", "xxx"),
        ("T2", "num.partitions", "+3", "..."),
        ("T2", "log.retention.hours", "7d", "xxx"),
        ("T2", "offsets.topic.replication.factor", "32768", "xxx"),
        ("T2", "log.segment.bytes", "2147483648", "xxx"),
        ("T2", "log.retention.bytes", "2147483648", "..."),
        ("T2", "log.retention.bytes", "-1", "..."),
    ):
        yield Vector(name, "B", {key: text}, kafka, "KL002" if "x" in kafka else "")


VECTORS = (
    *(Vector(f"base {name}", name, {}, "...", "") for name in BASES),
    *_names_and_ports(),
    *_advertised_addresses(),
    *_map_and_inter_broker(),
    *_roles_and_ids(),
    *_controllers(),
    *_values(),
)
