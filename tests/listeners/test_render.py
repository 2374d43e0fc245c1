import pytest
from hypothesis import given
from hypothesis import settings as limits

from earshot.errors import EarshotError
from earshot.listeners.grammar import Bad, parse_entries, read_voters
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.render import environment, notes, server_properties, settings, voters
from earshot.listeners.terms import Protocol, Role, Scope
from tests.listeners.clusters import plans
from tests.listeners.grammar_of_settings import grammar_problems
from tests.raised import raised


def listener(name: str, host: str, port: int, *scopes: Scope) -> Listener:
    return Listener(name=name, scopes=scopes, bind_port=port, host=host, port=port)


BROKER = Node(
    id=1, roles=(Role.BROKER,),
    listeners=(listener("PLAINTEXT", "b1.example.org", 9092, Scope.INTERNAL, Scope.EXTERNAL),
               listener("LISTENER_BOB", "2001:db8::1", 9094, Scope.HOST)), log_dir="/data/1",
)  # fmt: skip
CONTROLLER = Node(
    id=9,
    roles=(Role.CONTROLLER,),
    listeners=(listener("CONTROLLER", "c9.example.org", 9093, Scope.CONTROLLER),),
)


def cluster(kafka_version: str = "4.1.1", **extra: str) -> ClusterPlan:
    return ClusterPlan(
        kafka_version=kafka_version,
        inter_broker="PLAINTEXT",
        controller="CONTROLLER",
        controller_protocol=Protocol.SSL,
        replication_factor=3,
        min_insync_replicas=2,
        extra=tuple(extra.items()),
        nodes=(BROKER, CONTROLLER),
    )


def test_writes_the_complete_set_of_a_broker() -> None:
    assert settings(cluster(), BROKER) == {
        "process.roles": "broker",
        "node.id": "1",
        "listeners": "PLAINTEXT://0.0.0.0:9092,LISTENER_BOB://0.0.0.0:9094",
        "advertised.listeners": (
            "PLAINTEXT://b1.example.org:9092,LISTENER_BOB://[2001:db8::1]:9094"
        ),
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,LISTENER_BOB:PLAINTEXT,CONTROLLER:SSL"
        ),
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "9@c9.example.org:9093",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": "/data/1",
        "default.replication.factor": "3",
        "min.insync.replicas": "2",
        "offsets.topic.replication.factor": "3",
        "transaction.state.log.replication.factor": "3",
        "transaction.state.log.min.isr": "2",
        "share.coordinator.state.topic.replication.factor": "3",
        "share.coordinator.state.topic.min.isr": "2",
    }


def test_a_controller_advertises_and_knows_no_inter_broker_listener() -> None:
    found = settings(cluster(), CONTROLLER)
    assert found["advertised.listeners"] == "CONTROLLER://c9.example.org:9093"
    assert "inter.broker.listener.name" not in found
    assert found["controller.quorum.voters"] == voters(cluster())


def test_share_groups_came_with_kafka_4() -> None:
    assert not [key for key in settings(cluster("3.9.2"), BROKER) if key.startswith("share.")]


def test_free_properties_come_last() -> None:
    found = settings(cluster(**{"num.partitions": "6"}), BROKER)
    assert list(found.items())[-1] == ("num.partitions", "6")


def test_notes_hold_what_kafka_has_no_setting_for() -> None:
    assert notes(cluster(), BROKER) == {
        "kafka_version": "4.1.1",
        "scopes": "PLAINTEXT:internal+external,LISTENER_BOB:host",
    }


def test_a_file_begins_with_the_notes() -> None:
    lines = server_properties(cluster(), BROKER).splitlines()
    assert lines[:3] == [
        "#earshot.kafka_version=4.1.1",
        "#earshot.scopes=PLAINTEXT:internal+external,LISTENER_BOB:host",
        "process.roles=broker",
    ]
    assert lines[-1] == "share.coordinator.state.topic.min.isr=2"


def test_an_environment_names_every_setting_as_the_image_maps_it() -> None:
    found = environment(cluster(**{"a_b.c-d": "x"}), BROKER)
    assert found["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].endswith("CONTROLLER:SSL")
    assert found["KAFKA_A__B_C___D"] == "x"
    assert found["EARSHOT_SCOPES"].startswith("PLAINTEXT:")
    assert len(found) == len(settings(cluster(), BROKER)) + 3


def test_a_controller_alone_gets_no_advertised_variable_and_binds_what_the_voters_name() -> None:
    found = environment(cluster(), CONTROLLER)
    assert "KAFKA_ADVERTISED_LISTENERS" not in found
    assert found["KAFKA_LISTENERS"] == "CONTROLLER://c9.example.org:9093"
    assert found["KAFKA_CONTROLLER_QUORUM_VOTERS"] == "9@c9.example.org:9093"
    assert "KAFKA_ADVERTISED_LISTENERS" in environment(cluster(), BROKER)


def test_a_controller_that_is_reached_at_another_port_cannot_say_so_by_variables() -> None:
    away = CONTROLLER.listeners[0].model_copy(update={"port": 19093})
    node = CONTROLLER.model_copy(update={"listeners": (away,)})
    error = raised(EarshotError, environment, cluster(), node)
    assert "controller 9, listener CONTROLLER" in str(error)
    assert "listens on port 9093, and the voters name 19093" in str(error)


def test_an_environment_refuses_a_key_that_would_arrive_as_another() -> None:
    with pytest.raises(EarshotError, match=r"broker property My\.key"):
        environment(cluster(**{"My.key": "x"}), BROKER)


@limits(max_examples=40)
@given(plans())
def test_settings_follow_the_strict_grammar(plan: ClusterPlan) -> None:
    for node in plan.nodes:
        assert grammar_problems(settings(plan, node)) == []


@limits(max_examples=40)
@given(plans())
def test_voters_are_what_the_controllers_advertise(plan: ClusterPlan) -> None:
    advertised = {}
    for node in plan.controllers:
        listed = dict(parse_entries(settings(plan, node)["advertised.listeners"]))
        advertised[node.id] = listed[plan.controller]
    for node in plan.nodes:
        entries = read_voters(settings(plan, node)["controller.quorum.voters"])
        assert dict(entry for entry in entries if not isinstance(entry, Bad)) == advertised


@limits(max_examples=40)
@given(plans())
def test_every_broker_has_the_same_listeners(plan: ClusterPlan) -> None:
    listed = {
        frozenset(
            (item.name, item.protocol, item.scopes)
            for item in node.listeners
            if item.name != plan.controller
        )
        for node in plan.brokers
    }
    assert len(listed) == 1
