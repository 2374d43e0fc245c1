"""Properties files of other programs, for a Kafka of unknown release."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.checks.lone_settings import (
    is_of_broker,
    mistakes_in_properties,
    mistakes_in_values,
    mistakes_in_variables,
    open_in_properties,
)
from earshot.listeners.address import Address, why_unusable
from earshot.rules.rule import Finding, Severity
from tests.judge.cases import cases

ZOOKEEPER = "zookeeper.connect=zookeeper:2181\n"
KRAFT = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
controller.listener.names=CONTROLLER
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (KRAFT, True),
        (ZOOKEEPER, True),
        ("broker.id=1", True),
        ("node.id : 1", True),
        ("advertised.listeners=A://k:1", True),
        ("listeners=A://:1", True),
        ("listeners=http://0.0.0.0:8083", False),  # other servers have listeners too
        ("", False),
        ("#process.roles=broker", False),
        ("node.id=1\nbootstrap.servers=kafka:9092", False),
        ("zookeeper.connect=z:2181\ngroup.id=g", False),
        ("listeners=http://:8081\nkafkastore.bootstrap.servers=kafka:9092", False),
        ("zookeeper.connect=z:2181\nproducer.bootstrap.servers=kafka:9092", False),
        ("zookeeper.connect=z:2181\nlisteners=http://0.0.0.0:8082", False),
        ("zookeeper.connect=z:2181\nlisteners=PLAINTEXT://0.0.0.0:9092", True),
        # a broker has clients inside
        ("process.roles=broker\ncontroller.quorum.bootstrap.servers=c:9093", True),
        ("controller.quorum.bootstrap.servers=c:9093", True),
        ("advertised.listeners=A://k:1\ngroup.id=g", True),
        ("broker.id=1\nconfluent.metrics.reporter.bootstrap.servers=k:9092", True),
        ("log.dirs=/d\nconfluent.license.bootstrap.servers=k:9092", True),
        ("listeners=A://:1\ncruise.control.metrics.reporter.bootstrap.servers=k:9092", True),
        ("bootstrap.servers=k:9092\nlisteners=PLAINTEXT://:9092", True),
        *(
            (f"{key}=x", True)
            for key in (
                "advertised.host.name",
                "control.plane.listener.name",
                "controller.listener.names",
                "early.start.listeners",
                "inter.broker.listener.name",
                "listener.security.protocol.map",
                "log.dir",
                "security.inter.broker.protocol",
            )
        ),
        # nodes of other programs
        ("node.id=1\nnode.environment=production", False),
        ("bootstrap.servers=k:9092\nadvertised.listeners=https://rest:8082", False),
        ("advertised.listeners=HTTP://rest:8082\nzookeeper.connect=z:2181", False),
    ],
)
def test_whose_properties_they_are(text: str, expected: bool) -> None:
    assert is_of_broker(text) is expected


MAPPED = "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT\ninter.broker.listener.name=A\n"


@pytest.mark.parametrize(("text", "observed", "expected", "remedy", "inputs"), [
    (ZOOKEEPER + "listeners=A://:9092\n",
     ("listeners: A has no protocol: listener.security.protocol.map is not set; "
      "Kafka does not start"), "an entry in listener.security.protocol.map for every listener",
     "add A:PROTOCOL to listener.security.protocol.map", "listeners"),
    (ZOOKEEPER + MAPPED + "listeners=A://:9092,B://:9092\n",
     "listeners: port 9092 is bound by A://:9092 and B://:9092; Kafka does not start",
     "a port of its own for each listener, or exactly one IPv4 and one IPv6 address on it",
     "move B to another port", "listeners"),
    (ZOOKEEPER + "listeners=PLAINTEXT:9092\n",
     "listeners: listener entry 'PLAINTEXT:9092' has no ://",
     "NAME://host:port entries with one comma between them", "change the setting as expected",
     "listeners"),
    (KRAFT + "advertised.listeners=PLAINTEXT://0.0.0.0:9092\n",
     "advertised.listeners: PLAINTEXT advertises 0.0.0.0:9092; Kafka does not start",
     "an address that clients can connect to",
     "advertise the host that was provisioned for these clients", "advertised.listeners"),
    (KRAFT.replace("voters=1@", "voters=2@"),
     "controller.quorum.voters: has 2 and not this controller, 1; Kafka does not start",
     "every controller of a static quorum",
     "list 1 among the voters of every node, or give this node the id of the voter that it is",
     "controller.quorum.voters"),
    (KRAFT + "advertised.listeners=\n", "advertised.listeners: is empty; Kafka does not start",
     "at least one listener that is not in controller.listener.names",
     "change the setting as expected", "advertised.listeners"),
    (KRAFT + "security.inter.broker.protocol=\n",
     "security.inter.broker.protocol: is ''; Kafka does not start",
     "one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL", "change the setting as expected",
     "security.inter.broker.protocol"),
])  # fmt: skip
def test_what_kafka_refuses(
    text: str, observed: str, expected: str, remedy: str, inputs: str
) -> None:
    (finding,) = mistakes_in_properties(text)
    assert (finding.rule, finding.observed, finding.expected, finding.remedy, finding.inputs) == (
        "KL002",
        observed,
        expected,
        remedy,
        (inputs,),
    )


ALONE = KRAFT.replace("broker,controller", "broker").replace("1@localhost", "9@c")
ALONE = ALONE.replace(",CONTROLLER://:9093", "")
SERVERS = ALONE.replace(
    "controller.quorum.voters=9@c:9093", "controller.quorum.bootstrap.servers={}"
)


@pytest.mark.parametrize(("text", "observed"), [
    (("process.roles=controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
      "controller.quorum.voters=1@c:9093\n"),
     "controller.listener.names: CONTROLLER is not in listeners; Kafka does not start"),
    (ALONE + "listener.security.protocol.map=PLAINTEXT:PLAINTEXT\n",
     ("controller.listener.names: CONTROLLER has no entry in "
      "listener.security.protocol.map; Kafka does not start")),
    (ALONE.replace("listeners=PLAINTEXT://:9092\n", "") +
     "listener.security.protocol.map=PLAINTEXT:PLAINTEXT\n",
     ("controller.listener.names: CONTROLLER has no entry in "
      "listener.security.protocol.map; Kafka does not start")),
    (SERVERS.format("c:99999"),
     "controller.quorum.bootstrap.servers: server entry 'c:99999' cannot be read"),
    (SERVERS.format("c:9093,"), "controller.quorum.bootstrap.servers: an entry is blank"),
])  # fmt: skip
def test_what_kafka_refuses_of_a_quorum(text: str, observed: str) -> None:
    assert is_of_broker(text)
    assert [finding.observed for finding in mistakes_in_properties(text)] == [observed]


OUTSIDE = (
    ALONE.replace("listeners=PLAINTEXT://:9092", "listeners=IN://:9092,OUT://:9094")
    + "listener.security.protocol.map=IN:PLAINTEXT,OUT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
    "inter.broker.listener.name=IN\n"
)


@pytest.mark.parametrize(("entry", "why"), [
    ("OUT://host:99999", "has the port 99999"),
    ("OUT://host:0", "has the port 0"),
    ("OUT://host:-1", "has the port -1"),
    ("OUT://${HOST}:99999", "has the port 99999"),
    ("OUT://my_domain:9094:30000",
     "has the host my_domain:9094, which holds a colon and is not an IPv6 address"),
    ("OUT://a..b:9094", "has the host a..b, which has an empty label"),
    ("OUT://[::]:9094", "has the host ::, which means every interface"),
    ("OUT://0:9094", "has the host 0, which means every interface"),
    ("OUT://00.0:9094", "has the host 00.0, which means every interface"),
    ("OUT://256.1.1.1:9094",
     "has the host 256.1.1.1, which looks like an IPv4 address, and is not one"),
])  # fmt: skip
def test_addresses_that_kafka_takes_and_no_client_can_use(entry: str, why: str) -> None:
    text = f"{OUTSIDE}advertised.listeners=IN://k:9092,{entry}\n"
    (finding,) = mistakes_in_properties(text)
    assert (finding.rule, finding.listener, finding.inputs, finding.severity) == (
        "KL002",
        "OUT",
        ("advertised.listeners",),
        "error",
    )
    assert finding.observed == (
        f"advertised.listeners: OUT {why}; Kafka hands it out, and no client can connect to it"
    )
    variables = {"KAFKA_ADVERTISED_LISTENERS": f"IN://k:9092,{entry}"}
    assert [item.observed for item in mistakes_in_variables(variables)] == [finding.observed]


@pytest.mark.parametrize(("change", "observed"), [
    (("OUT://:9094", "OUT://:99999"), "listeners: OUT has the port 99999; Kafka does not start"),
    (("9@c:9093", "9@c:0"),
     ("controller.quorum.voters: 9 has the port 0; Kafka takes it, and no node can "
      "connect to it")),
])  # fmt: skip
def test_what_is_bound_and_where_voters_are(change: tuple[str, str], observed: str) -> None:
    text = f"{OUTSIDE}advertised.listeners=IN://k:9092,OUT://k:9094\n"
    assert mistakes_in_properties(text) == ()
    assert [finding.observed for finding in mistakes_in_properties(text.replace(*change))] == [
        observed
    ]


@pytest.mark.parametrize(
    "more", ["", "group.id=g\n", "controller.quorum.bootstrap.servers=c:9093\n", "node.id=__ID__\n"]
)
def test_a_part_of_a_file_advertises_every_interface(more: str) -> None:
    (finding,) = mistakes_in_properties(f"{more}advertised.listeners=PLAINTEXT://0.0.0.0:9092\n")
    assert (finding.rule, finding.listener) == ("KL002", "PLAINTEXT")


def test_no_remedy_names_an_address_that_nothing_can_use() -> None:
    for case in cases(25, 1000):
        for found in mistakes_in_values(case, None, complete=True):
            for host, port in re.findall(r"://([^,;\s]*):(-?[0-9]+)", found.remedy):
                address = Address(host.strip("[]"), int(port))
                assert not why_unusable(address, lowest=0), (found.remedy, case)


@pytest.mark.parametrize("key", ["listeners", "advertised.listeners"])
def test_an_address_that_is_filled_in_later_leaves_the_listeners_open(key: str) -> None:
    (reason,) = open_in_properties(f"node.id=1\n{key}=PLAINTEXT://${{HOST}}:9092\n")
    assert reason == f"{key} is not known: PLAINTEXT://${{HOST}}:9092"
    assert not [*open_in_properties(f"{key}=PLAINTEXT://kafka:9092\n")]


def test_kafka_stops_at_the_first() -> None:
    text = ZOOKEEPER + MAPPED + "listeners=A://:1,B://:1\nadvertised.listeners=A://0.0.0.0:1\n"
    assert len(mistakes_in_properties(text)) == 1


@pytest.mark.parametrize("text", [
    KRAFT,
    ZOOKEEPER,
    ZOOKEEPER + "listeners=PLAINTEXT://:9092\nadvertised.listeners=PLAINTEXT://kafka:9092\n",
    ZOOKEEPER + "listeners=A://${HOST}:9092,B://:9092\n",
    # a part of a file, or a template
    ZOOKEEPER + "advertised.listeners=A://kafka:9092\n",
    KRAFT + "advertised.listeners=PLAINTEXT://<your host>:9092\n",
    # an entry twice: every release before 4.3 refuses it, and that one does not
    KRAFT.replace("://:9092,", "://:9092,PLAINTEXT://:9092,"),
    # hosts that some client can use
    *(f"{OUTSIDE}advertised.listeners=IN://k:9092,OUT://{host}:9094" for host in (
        "my_host", "[::1]", "2001:db8::1", "127.1", "k.", "-bad-", "a-b.c_d", "10.0.0.1", "",
    )),
    # with port 0, Kafka takes a free port
    ZOOKEEPER + MAPPED + "listeners=A://:0,B://:0\n",
])  # fmt: skip
def test_what_kafka_takes(text: str) -> None:
    assert mistakes_in_properties(text) == ()


@given(
    st.lists(
        st.sampled_from([*KRAFT.splitlines(), *MAPPED.splitlines(), ZOOKEEPER.strip()])
        | st.builds(
            "{}={}".format,
            st.sampled_from(["listeners", "advertised.listeners", "node.id", "process.roles",
                             "controller.quorum.voters", "listener.security.protocol.map"]),
            st.text(max_size=12) | st.text(alphabet="AB:/@,0129.", max_size=20),
        )
    ).map("\n".join)
    | st.text(max_size=60)
)  # fmt: skip
def test_any_text_is_checked(text: str) -> None:
    assert is_of_broker(text) in (True, False)
    assert all(isinstance(item, Finding) for item in mistakes_in_properties(text))


def test_a_file_that_java_does_not_load_is_one_mistake() -> None:
    findings = mistakes_in_properties("log.dirs=C:\\users\\kafka\n" + KRAFT.replace("1@", ""))
    assert [(finding.rule, finding.observed, finding.inputs) for finding in findings] == [
        (
            "KL002",
            "log.dirs: has a \\u without four hexadecimal digits; Java loads no such file",
            ("log.dirs",),
        )
    ]
    assert mistakes_in_properties("log.dirs=C:\\\\users\\u006bafka\n" + KRAFT) == ()


@pytest.mark.parametrize("mark", ["\ufeff", "\u00ef\u00bb\u00bf"], ids=["UTF-8", "ISO-8859-1"])
def test_a_byte_order_mark_takes_the_first_key_away(mark: str) -> None:
    (finding,) = mistakes_in_properties(f"{mark}advertised.listeners=PLAINTEXT://k:9092\n{KRAFT}")
    assert (finding.rule, finding.inputs) == ("KL002", ("advertised.listeners",))
    assert finding.observed == (
        "advertised.listeners: begins with a byte order mark, which Java takes into the key: it is "
        "not set"
    )
    assert mistakes_in_properties(f"{mark}# comment\n{KRAFT}") == ()
    assert mistakes_in_properties(f"{mark}\n{KRAFT}") == ()


@pytest.mark.parametrize(
    ("key", "intended"),
    [
        ("advertised.listners", "advertised.listeners"),
        ("Advertised.Listeners", "advertised.listeners"),
        ("advertised_listeners", "advertised.listeners"),
        ("KAFKA_ADVERTISED_LISTENERS", "advertised.listeners"),
        ("\u00a0advertised.listeners", "advertised.listeners"),
        ("inter.broker.listeners.name", "inter.broker.listener.name"),
        ("confluent.advertised.listeners", ""),
        ("rest.advertised.listener", ""),
        ("log.dirs", ""),
    ],
)
def test_a_misspelt_key_is_a_warning(key: str, intended: str) -> None:
    findings = mistakes_in_properties(f"{KRAFT}{key}=PLAINTEXT\n")
    assert [(it.severity, it.expected, it.inputs) for it in findings] == (
        [(Severity.WARNING, intended, (key,))] if intended else []
    )


def test_a_misspelt_key_is_the_cause_of_an_error() -> None:
    (finding,) = mistakes_in_properties(KRAFT.replace("listeners=", "listners=", 1))
    assert finding.severity is Severity.ERROR and finding.remedy == "rename listners to listeners"
