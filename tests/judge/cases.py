"""Properties of one node, most of them a step away from sound: what Kafka is asked about.

Everything is drawn from one `random.Random`, so that a seed stands for its cases on any machine.
"""

from collections.abc import Callable, Iterator
from random import Random

from earshot.listeners.properties import UNMAPPED

Case = dict[str, str]

NAMES = ("PLAINTEXT", "INTERNAL", "EXTERNAL", "SASL_PLAINTEXT", "SSL", "docker", "Out-side", "A.1")
PROTOCOLS = ("PLAINTEXT", "PLAINTEXT", "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", "ssl")
BINDS = ("", "", "0.0.0.0", "0.0.0.0", "127.0.0.1", "kafka", "10.0.0.1", "[::1]", "[::]", "::1")
HOSTS = ("kafka", "kafka", "localhost", "b_1", "10.0.0.7", "[2001:db8::1]", "b.example.org", "a..b")
PORTS = (9092, 9093, 9094, 19092, 29092)
LISTS = ("listeners", "advertised.listeners", "listener.security.protocol.map",
         "controller.listener.names", "controller.quorum.voters", "process.roles",
         "controller.quorum.bootstrap.servers", "sasl.enabled.mechanisms")  # fmt: skip
CHARACTERS = " ,,::@//[]-_.091aAZ*%;\t="

OTHERS = {
    "listeners": ("PLAINTEXT://:9092", "PLAINTEXT://0.0.0.0:9092", "CONTROLLER://:9093", "",
                  "PLAINTEXT://127.0.0.1:9092,SSL://[::1]:9092", "SASL_SSL://:9092", "EXTERNAL://:1",
                  "PLAINTEXT://:9092,PLAINTEXT://:9092", "PLAINTEXT://:9092,CONTROLLER://:9092"),
    "advertised.listeners": ("PLAINTEXT://kafka:9092", "PLAINTEXT://0.0.0.0:9092", "", "kafka:9092",
                             "CONTROLLER://kafka:9093", "PLAINTEXT://:9092", "SSL://kafka:0",
                             "PLAINTEXT://kafka:9092,CONTROLLER://kafka:9093"),
    "listener.security.protocol.map": ("PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT", "", "A:TLS",
                                       "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT", "PLAINTEXT",
                                       "PLAINTEXT:PLAINTEXT,plaintext:SSL", ":PLAINTEXT"),
    "inter.broker.listener.name": ("PLAINTEXT", "INTERNAL", "internal", "CONTROLLER", "", " SSL "),
    "security.inter.broker.protocol": ("PLAINTEXT", "SSL", "SASL_SSL", "ssl", "INTERNAL", ""),
    "sasl.mechanism.inter.broker.protocol": ("PLAIN", "SCRAM-SHA-512", "GSSAPI", "plain", ""),
    "sasl.enabled.mechanisms": ("PLAIN", "PLAIN,SCRAM-SHA-512", "GSSAPI", "", "PLAIN,,GSSAPI"),
    "controller.listener.names": ("CONTROLLER", "controller", "CONTROLLER,SSL", "", "PLAINTEXT",
                                  "ssl", "CONTROLLER, OTHER", "CONTROLLER,CONTROLLER"),
    "controller.quorum.voters": ("1@kafka:9093", "1@localhost:9093,2@other:9093", "9@c:9093", "",
                                 "kafka:9093", "1@0.0.0.0:9093", "1@:9093", "1@kafka", "1@a b:9093",
                                 "1@::1:9093", "1@[::1]:9093", "-1@kafka:9093", "01@kafka:9093",
                                 "1@kafka:0", "1@kafka:99999", "1@CONTROLLER://kafka:9093",
                                 "1@kafka:9093,1@other:9093", "1@http://kafka:9093", "+1@kafka:1"),
    "controller.quorum.bootstrap.servers": ("kafka:9093", "", "kafka", "a:1,b:2", "CONTROLLER://a:1",
                                            "a:1,", ":9093", "[::1]:9093", "a:99999", "0.0.0.0:1",
                                            "a:65536", ",a:1", "a:1,,b:2", "a:-1", " ", "a:0"),
    "process.roles": ("broker", "controller", "broker,controller", "controller, broker", "",
                      "broker,broker", "Broker", "broker,zookeeper", " broker ", "broker,"),
    "node.id": ("0", "1", "2", "-1", "one", "", "2000", "3000000000", " 1 ", "01", "+1", "1.0"),
    "broker.id": ("0", "1", "2", "-1", "one", "", "1001", " 1", "-2"),
    "zookeeper.connect": ("zookeeper:2181", "", "a:1,b:2/kafka"),
    "early.start.listeners": ("CONTROLLER", "PLAINTEXT", "plaintext", "INTERNAL,EXTERNAL", "", "X"),
    "control.plane.listener.name": ("CONTROLLER", "INTERNAL", "PLAINTEXT", "X", ""),
    "controller.quorum.auto.join.enable": ("true", "false", "TRUE", "yes"),
    "broker.id.generation.enable": ("true", "false", "True", "no", " true", ""),
    "zookeeper.metadata.migration.enable": ("false", "FALSE", "1", ""),
    "listener.name.internal.sasl.enabled.mechanisms": ("PLAIN", "GSSAPI", ""),
    "listener.name.plaintext.sasl.enabled.mechanisms": ("PLAIN", "SCRAM-SHA-256"),
}  # fmt: skip
"""Other values of each setting, sound and not."""


INSIDE = {
    "bootstrap.servers": "kafka:9092",
    "confluent.license.bootstrap.servers": "kafka:9092",
    "confluent.metrics.reporter.bootstrap.servers": "kafka:9092",
    "cruise.control.metrics.reporter.bootstrap.servers": "kafka:9092",
    "group.id": "g",
}
"""Settings of clients in a broker, which Kafka hands to them or does not know."""
SERVER_PORTS = ("9093", "9093", "0", "65535", "65536", "99999", "-1", "", "x")


def cases(seed: int, count: int) -> Iterator[Case]:
    """``count`` nodes; each is sound but for none to four changes."""
    random = Random(seed)
    for _ in range(count):
        case = sound(random)
        for _ in range(random.choice((0, 1, 1, 1, 1, 2, 2, 3))):
            random.choice(CHANGES)(case, random)
        yield case


def sound(random: Random) -> Case:
    """A node that most releases take: with ZooKeeper, or of KRaft in any role."""
    mode = random.choice(("zookeeper", "broker", "controller", "broker,controller"))
    names = random.sample(NAMES, random.choice((1, 1, 2, 2, 3)))
    if random.random() < 0.4:
        names[0] = "PLAINTEXT"
        names = list(dict.fromkeys(names))
    ports = random.sample(PORTS, len(names) + 1)
    binds = [
        f"{name}://{random.choice(BINDS)}:{port}" for name, port in zip(names, ports, strict=False)
    ]
    advertised = [
        f"{name}://{random.choice(HOSTS)}:{port}" for name, port in zip(names, ports, strict=False)
    ]
    protocols = [f"{name}:{random.choice(PROTOCOLS)}" for name in names]
    case: Case = {}
    if mode == "zookeeper":
        case["zookeeper.connect"] = "zookeeper:2181"
        if random.random() < 0.7:
            case["broker.id"] = "1"
    else:
        case |= _of_kraft(random, mode)
        protocols.append("CONTROLLER:PLAINTEXT")
    control = f"CONTROLLER://{random.choice(BINDS)}:{ports[-1]}"
    if mode == "controller":
        return case | {
            "listeners": control, "listener.security.protocol.map": "CONTROLLER:PLAINTEXT"
        }  # fmt: skip
    case["listeners"] = ",".join(binds + [control] * ("controller" in mode))
    if "//0.0.0.0" in case["listeners"] or random.random() < 0.8:
        case["advertised.listeners"] = ",".join(advertised)
    if names != ["PLAINTEXT"] or random.random() < 0.5:
        case["listener.security.protocol.map"] = ",".join(protocols)
    if names[0] != "PLAINTEXT" or random.random() < 0.3:
        case["inter.broker.listener.name"] = names[0]
    if any("SASL" in protocol for protocol in protocols) or random.random() < 0.05:
        case["sasl.enabled.mechanisms"] = "PLAIN"
        case["sasl.mechanism.inter.broker.protocol"] = "PLAIN"
    return case


def _of_kraft(random: Random, mode: str) -> Case:
    id = random.choice(("0", "1"))
    voter_id = "9" if mode == "broker" else id
    case = {"process.roles": mode, "node.id": id, "controller.listener.names": "CONTROLLER"}
    if random.random() < 0.8:
        case["controller.quorum.voters"] = f"{voter_id}@{random.choice(HOSTS)}:9093"
    else:
        case["controller.quorum.bootstrap.servers"] = "kafka:9093"
    return case


def _without(case: Case, random: Random) -> None:
    if case:
        del case[random.choice(sorted(case))]


def _otherwise(case: Case, random: Random) -> None:
    key = random.choice(sorted(OTHERS))
    case[key] = random.choice(OTHERS[key])


def _likewise(case: Case, random: Random) -> None:
    """Another value of a setting that is there."""
    if changeable_keys := sorted(set(case) & set(OTHERS)):
        key = random.choice(changeable_keys)
        case[key] = random.choice(OTHERS[key])


def _entries(change: Callable[[list[str], Random], None]) -> Callable[[Case, Random], None]:
    def applied(case: Case, random: Random) -> None:
        if list_keys := [key for key in LISTS if key in case]:
            key = random.choice(list_keys)
            entries = case[key].split(",")
            change(entries, random)
            case[key] = ",".join(entries)

    return applied


def _drop(entries: list[str], random: Random) -> None:
    del entries[random.randrange(len(entries))]


def _repeat(entries: list[str], random: Random) -> None:
    entry = random.choice(entries)
    name, mark, address = entry.partition(":")
    replacements = (
        entry,
        entry.lower(),
        f"{name}{mark}{address}0",
        entry.replace("909", "919"),
        "",
    )
    entries.insert(random.randrange(len(entries) + 1), random.choice(replacements))


def _recase(entries: list[str], random: Random) -> None:
    at = random.randrange(len(entries))
    entries[at] = random.choice((str.lower, str.upper, str.title, str.swapcase))(entries[at])


def _pad(entries: list[str], random: Random) -> None:
    at = random.randrange(len(entries))
    entries[at] = random.choice((" {}", "{} ", "\t{}", '"{}"', "{},")).format(entries[at])


def _rehost(entries: list[str], random: Random) -> None:
    at = random.randrange(len(entries))
    head, slashes, host_and_port = entries[at].rpartition("://" if "://" in entries[at] else "@")
    host = random.choice((*BINDS, *HOSTS, "a b", "*", "user@h", "h:1", "10.0.0.1%eth0", "[h", "é"))
    port = random.choice(
        (host_and_port.rpartition(":")[2], "9092", "0", "-1", "99999", "", "2147483648")
    )
    entries[at] = f"{head}{slashes}{host}:{port}"


def _rename(entries: list[str], random: Random) -> None:
    at = random.randrange(len(entries))
    _, colon, protocol = entries[at].partition(":")
    entries[at] = random.choice((*NAMES, "CONTROLLER", "", "Ö")) + colon + protocol


def _slip(case: Case, random: Random) -> None:
    """One character too many, too few, or another."""
    if not case:
        return
    key = random.choice(sorted(case))
    text = case[key]
    at = random.randrange(len(text) + 1)
    case[key] = random.choice((
        text[:at] + random.choice(CHARACTERS) + text[at:],
        text[:at] + text[at + 1 :],
        text[:at] + random.choice(CHARACTERS) + text[at + 1 :],
    ))  # fmt: skip


def _by_default(case: Case, random: Random) -> None:
    """Removes a setting that most files have, so that Kafka's default applies."""
    for key in random.sample(BY_DEFAULT, random.choice((1, 1, 2))):
        case.pop(key, None)


def _unmapped(case: Case, random: Random) -> None:
    """A map without the controllers' listener, or without another name."""
    removed_name = random.choice(("CONTROLLER", "CONTROLLER", *NAMES))
    entries = case.get("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT").split(",")
    remaining_entries = [entry for entry in entries if entry.partition(":")[0] != removed_name]
    case["listener.security.protocol.map"] = ",".join(remaining_entries)


def _dynamic(case: Case, random: Random) -> None:
    """A dynamic quorum, most of its servers sound."""
    if random.random() < 0.7:
        case.pop("controller.quorum.voters", None)
    hosts, ports = random.choices(HOSTS, k=2), random.choices(SERVER_PORTS, k=2)
    entries = [f"{host}:{port}" for host, port in zip(hosts, ports, strict=True)]
    if random.random() < 0.2:
        entries.insert(random.randrange(3), random.choice(("", " ", "c")))
    case["controller.quorum.bootstrap.servers"] = ",".join(entries[random.randrange(2) :])


def _with_clients(case: Case, random: Random) -> None:
    key = random.choice(sorted(INSIDE))
    case[key] = INSIDE[key]


BY_DEFAULT = ("listeners", "listeners", "advertised.listeners", "listener.security.protocol.map",
              "inter.broker.listener.name", "controller.listener.names")  # fmt: skip
CHANGES: tuple[Callable[[Case, Random], None], ...] = (
    _by_default,
    _unmapped,
    _dynamic,
    _with_clients,
    _without,
    _otherwise,
    _otherwise,
    _likewise,
    _likewise,
    _slip,
    *map(_entries, (_drop, _repeat, _recase, _pad, _rehost, _rename)),
)


def environments(seed: int, count: int) -> Iterator[Case]:
    """``count`` environments, with variables of apache/kafka and of its scripts among them."""
    random = Random(seed)
    words = (
        "A",
        "B1",
        "LISTENERS",
        "LISTENER_NAME",
        "SASL_SSL",
        "_",
        "__",
        "___",
        "x",
        "OPTS",
        "KAFKA",
    )
    special_names = [*sorted(UNMAPPED), "KAFKA_PORT", "CLUSTER_ID", "PATH", "kafka_listeners"]
    for _ in range(count):
        names = ["KAFKA_" + "_".join(random.choices(words, k=random.randint(1, 4)))]
        for name in random.choices(special_names, k=2):
            names.append(name)
        yield {name: random.choice(("", "1", "a=b", "A://h:1,B://:2", " x ")) for name in names}
