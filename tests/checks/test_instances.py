"""Brokers on instances, one after the other: what their own inputs show, and what others hold."""

from dataclasses import replace

import pytest

from earshot.checks.instances import InstanceBroker, InstanceRun, skipped_rules
from earshot.checks.lone_settings import mistakes_in_user_data
from earshot.listeners.properties import NodeSettings
from earshot.listeners.terms import Scope
from earshot.names.policy import ResolverPolicy
from earshot.rules.rule import FindingState
from earshot.sources.user_data import PLACE, UserDataFile
from tests.lint.samples import finding

POLICY = ResolverPolicy(timeout=0.1, resolvers={Scope.EXTERNAL: ("127.0.0.1:1",)})


def written(host: str = "b1.example.com", path: str = "f", **changed: str) -> UserDataFile:
    values = {
        "node.id": "1",
        "process.roles": "broker",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "9@ip-10-0-0-9.ec2.internal:9093",
        "listeners": "INTERNAL://:9092",
        "advertised.listeners": f"INTERNAL://{host}:9092",
        "listener.security.protocol.map": "INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
    }
    values |= {key.replace("_", "."): text for key, text in changed.items()}
    return UserDataFile(path, NodeSettings({key: text for key, text in values.items() if text}))


def test_of_a_listener_that_kafka_refuses_the_kind_of_address_is_not_said_as_well() -> None:
    refused = finding("KL002")
    broker = InstanceBroker("urn:pulumi::i", written(), (refused,))
    assert [broker.has_reported(finding(rule)) for rule in ("KL002", "KL003", "KL011")] == [
        *(True, True, False)
    ]
    assert not broker.has_reported(replace(finding("KL003"), listener="OTHER"))


COMBINED = {
    "process_roles": "broker,controller",
    "listeners": "INTERNAL://:9092,CONTROLLER://:9093",
}


def test_a_voter_where_kafka_places_none_is_said_once() -> None:
    item = written("10.0.0.11", controller_quorum_voters="1@0.0.0.0:9093", **COMBINED)
    (found,) = InstanceRun().evaluate("i", [item], POLICY)
    reported = "controller.quorum.voters: places voter 1 at 0.0.0.0:9093; Kafka does not start"
    assert (found.rule, found.observed) == ("KL002", reported)


@pytest.mark.parametrize(
    ("host", "rules"), [("203.0.113.11", ["KL019"]), ("10.0.0.11", []), ("0.0.0.0", ["KL002"])]
)
def test_a_broker_that_is_well_gets_advice_on_its_security(host: str, rules: list[str]) -> None:
    item = written(
        listeners="INTERNAL://:9092,CLIENTS://:9094",
        advertised_listeners=f"INTERNAL://10.0.0.11:9092,CLIENTS://{host}:9094",
        listener_security_protocol_map="INTERNAL:SSL,CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
    )
    found = InstanceRun().evaluate("i", [item], POLICY)
    assert [item.rule for item in found] == rules


ZOOKEEPER = {"process_roles": "", "zookeeper_connect": "z:2181"}


@pytest.mark.parametrize(("one", "reasons"), [
    (written(), {}),
    (written(**ZOOKEEPER), {}),
    (written("b_1"), {"KL011": "advertised.listeners: host 'b_1' has the label 'b_1'; it may be "
                      "right, and is not looked up"}),
    (written("b_1", listeners="A://:9092"), {}),
    (written(zookeeper_connect="z:2181"), {}),
    (written(process_roles=""), {}),
    (UserDataFile("f", NodeSettings({}), whole=False),
     {"KL008": "the earlier content of f is not known"}),
    (UserDataFile("", NodeSettings({}), whole=False),
     {"KL008": "the earlier content of its properties file is not known"}),
    (UserDataFile("f", NodeSettings({}), {"node.id": "$X", "broker.rack": "$Y"}),
     {"KL008": "the instance computes node.id, broker.rack"}),
    (UserDataFile("f", NodeSettings({}), {PLACE.format(1): "$X"}), {}),
])  # fmt: skip
def test_rules_that_must_know_all_settings_say_why_they_are_not_asked(
    one: UserDataFile, reasons: dict[str, str]
) -> None:
    assert skipped_rules(one) == reasons


def reported(run: InstanceRun, holder: str, *files: UserDataFile) -> list[str]:
    return [f"{it.rule} {it.observed}" for it in run.evaluate(holder, files, POLICY)]


def test_what_kafka_refuses_is_said_once_and_as_lint_says_it() -> None:
    broken = written(listeners="INTERNAL://:9092,INTERNAL2://:9092")
    (found,) = InstanceRun().evaluate("a", [broken], POLICY)
    (wanted,) = mistakes_in_user_data([broken])
    assert found == replace(wanted, node=1)
    zookeeper = written(**ZOOKEEPER, listener_security_protocol_map="")
    assert [text[:5] for text in reported(InstanceRun(), "a", zookeeper)] == ["KL002"]
    # earlier lines, or values that the instance computes, may add the protocol
    part = UserDataFile("f", zookeeper.settings, whole=False)
    assert reported(InstanceRun(), "a", part) == []


def test_an_address_that_kafka_refuses_is_no_second_mistake() -> None:
    assert [text[:5] for text in reported(InstanceRun(), "a", written("0.0.0.0"))] == ["KL002"]
    assert [text[:5] for text in reported(InstanceRun(), "a", written("127.0.0.1"))] == ["KL003"]


@pytest.mark.parametrize(
    "changed",
    [
        {"listeners": "internal://:9092", "advertised_listeners": "internal://b1.example.com:9092",
         "inter_broker_listener_name": "internal",
         "listener_security_protocol_map": "internal:plaintext,CONTROLLER:PLAINTEXT"},
        {"listeners": "IN-1://:9092", "advertised_listeners": "IN-1://b_1:9092",
         "inter_broker_listener_name": "IN-1",
         "listener_security_protocol_map": "IN-1:PLAINTEXT,CONTROLLER:PLAINTEXT"},
        {"advertised_listeners": "", "listeners": "INTERNAL://:9092"},
        {"controller_quorum_voters": "9@controller_9:9093"},
        {"listener_security_protocol_map": "INTERNAL:PLAINTEXT, CONTROLLER:PLAINTEXT"},
    ],
)  # fmt: skip
def test_what_kafka_takes_is_no_mistake(changed: dict[str, str]) -> None:
    assert reported(InstanceRun(), "a", written(**changed)) == []


@pytest.mark.parametrize(
    ("changed", "rules"),
    [
        ({"zookeeper_connect": "localhost:2181,127.0.0.1:2182/kafka", "process_roles": ""}, []),
        ({"zookeeper_connect": "[::1]:2181", "process_roles": ""}, []),
        ({"zookeeper_connect": "z1:2181,localhost:2182", "process_roles": ""}, ["KL003"]),
        ({"process_roles": "broker,controller", "controller_quorum_voters": "1@b1:9093",
          "listeners": "INTERNAL://:9092,CONTROLLER://:9093"}, []),
        ({"process_roles": "broker,controller", "controller_quorum_voters": "1@b1:9093,2@b2:9093",
          "listeners": "INTERNAL://:9092,CONTROLLER://:9093"}, ["KL003"]),
    ],
)  # fmt: skip
def test_loopback_is_right_for_a_broker_that_is_alone(
    changed: dict[str, str], rules: list[str]
) -> None:
    """The name PLAINTEXT does not show the listener's clients."""
    alone = {
        "listener_security_protocol_map": "",
        "inter_broker_listener_name": "",
        "advertised_listeners": "PLAINTEXT://localhost:9092",
    }
    if "zookeeper_connect" in changed:
        alone |= {"controller_listener_names": "", "controller_quorum_voters": ""}
    listeners = changed.get("listeners", "INTERNAL://:9092").replace("INTERNAL", "PLAINTEXT")
    one = written(**{**changed, **alone, "listeners": listeners})
    assert [text[:5] for text in reported(InstanceRun(), "a", one)] == rules


def test_the_settings_that_kafka_comes_with_pass() -> None:
    """As config/server.properties of Kafka 4.x has them."""
    values = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "inter.broker.listener.name": "PLAINTEXT",
        "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
    }
    assert reported(InstanceRun(), "a", UserDataFile("f", NodeSettings(values))) == []


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        ("b1.example.com", "B1.Example.com", True),
        ("b1.example.com", "b2.example.com", False),
        ("10.0.0.1", "10.0.0.1", True),
        ("[2001:db8::1]", "[2001:DB8:0::1]", True),
        ("[::ffff:10.0.0.1]", "10.0.0.1", True),
    ],
)
def test_an_address_is_taken_by_the_first_instance(one: str, other: str, clash: bool) -> None:
    run = InstanceRun()
    assert not [text for text in reported(run, "urn::a", written(one)) if text.startswith("KL004")]
    found = [it for it in run.evaluate("urn::b", [written(other)], POLICY) if it.rule == "KL004"]
    assert bool(found) is clash
    for item in found:
        assert (item.node, item.listener, item.expected) == (
            1,
            "INTERNAL",
            "a host:port of its own for every listener of every broker",
        )
        assert item.observed.endswith(":9092, which instance a has taken")


def test_loopback_is_each_instances_own_and_the_same_one_may_come_again() -> None:
    run = InstanceRun()
    for holder in ("a", "b"):
        found = run.evaluate(holder, [written("localhost")], POLICY)
        assert "KL004" not in {item.rule for item in found}
    for _ in range(2):
        assert reported(run, "c", written("b3.example.com")) == []
    assert [item.holder for item in run.brokers] == ["a", "b", "c"]


def test_what_an_instance_showed_is_kept_with_it() -> None:
    run = InstanceRun()
    files = (written("b1.example.com"), written("b2.example.com", "g", node_id="2"))
    assert reported(run, "a", *files) == []
    assert run.brokers == tuple(InstanceBroker("a", item) for item in files)


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        (PLACE.format(1), "$(hostname)", "a listener's host is computed on the instance: "),
        ("advertised.listeners", "$X", "advertised.listeners is computed on the instance: "),
        ("broker.rack", "$X", ""),
    ],
)
def test_what_only_the_instance_knows_is_said_of_listeners_alone(
    key: str, text: str, said: str
) -> None:
    one = UserDataFile("f", written().settings, {key: text})
    found = [it for it in InstanceRun().evaluate("a", [one], POLICY) if it.rule == "KL011"]
    assert [item.observed for item in found] == ([f"{said}{text}"] if said else [])
    for item in found:
        assert (item.state, item.inputs, item.node) == (FindingState.UNKNOWN, ("user data",), None)


def test_a_name_that_others_may_yet_declare_is_left_open() -> None:
    private, public = "ip-10-0-0-1.ec2.internal", "b1.example.com"
    for host, rules in ((private, ["KL011"]), (public, [])):
        one = written(listeners="EXTERNAL://:9092", inter_broker_listener_name="")
        values = {
            **one.settings.values,
            "advertised.listeners": f"EXTERNAL://{host}:9092",
            "listener.security.protocol.map": "EXTERNAL:SSL,CONTROLLER:PLAINTEXT",
            "security.inter.broker.protocol": "SSL",
        }
        found = InstanceRun().evaluate("a", [UserDataFile("f", NodeSettings(values))], POLICY)
        assert [it.rule for it in found if it.rule not in ("KL002", "KL008")] == rules
