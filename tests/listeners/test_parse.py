from __future__ import annotations

import pytest
from hypothesis import given, settings

from earshot.errors import SpecError
from earshot.listeners import render
from earshot.listeners.model import ClusterPlan, Protocol, Role, Scope
from earshot.listeners.parse import parse_node, parse_plan
from earshot.listeners.properties import Settings, read_environment, read_properties
from tests.listeners.clusters import plans

SCOPES = {
    "INTERNAL": (Scope.INTERNAL,),
    "EXTERNAL": (Scope.EXTERNAL,),
    "CONTROLLER": (Scope.CONTROLLER,),
}
BROKER = {
    "process.roles": "broker",
    "node.id": "1",
    "listeners": "INTERNAL://0.0.0.0:9092,EXTERNAL://0.0.0.0:9094",
    "advertised.listeners": "INTERNAL://b1:9092,EXTERNAL://b1.example.org:9094",
    "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:SSL,CONTROLLER:PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "9@c9:9093",
    "inter.broker.listener.name": "INTERNAL",
}


def problems_of(change: dict[str, str | None]) -> str:
    values = {key: text for key, text in (BROKER | change).items() if text is not None}
    with pytest.raises(SpecError) as caught:
        parse_node(Settings(values), SCOPES)
    return str(caught.value)


@settings(max_examples=60)
@given(plans())
def test_a_plan_reads_back_from_its_properties(cluster: ClusterPlan) -> None:
    texts = [render.server_properties(cluster, node) for node in cluster.nodes]
    assert parse_plan(read_properties(text) for text in texts) == cluster


def bound_as_voters(cluster: ClusterPlan) -> ClusterPlan:
    """The same plan, where controllers alone bind the address that the voters name."""
    nodes = tuple(
        node
        if node.is_broker
        else node.model_copy(
            update={
                "listeners": tuple(
                    item.model_copy(update={"bind_host": item.host}) for item in node.listeners
                )
            }
        )
        for node in cluster.nodes
    )
    return cluster.model_copy(update={"nodes": nodes})


@settings(max_examples=60)
@given(plans())
def test_a_plan_reads_back_from_its_environment(cluster: ClusterPlan) -> None:
    environments = [render.environment(cluster, node) for node in cluster.nodes]
    found = parse_plan(read_environment(item) for item in environments)
    assert found == bound_as_voters(cluster)


@settings(max_examples=30)
@given(plans())
def test_file_and_environment_say_the_same(cluster: ClusterPlan) -> None:
    for node in cluster.nodes:
        file = read_properties(render.server_properties(cluster, node))
        variables = read_environment(render.environment(cluster, node))
        assert dict(file.values) == render.settings(cluster, node)
        assert file.notes == variables.notes
        differ = {key for key, value in file.values.items() if variables.values.get(key) != value}
        # images refuse the variable on a controller alone
        assert differ <= (set() if node.is_broker else {"listeners", "advertised.listeners"})
        assert ("advertised.listeners" in variables.values) == node.is_broker


def test_reads_a_broker_that_earshot_did_not_write() -> None:
    node = parse_node(Settings(BROKER), SCOPES)
    assert (node.id, node.roles) == (1, (Role.BROKER,))
    assert [str(item) for item in node.listeners] == [
        "INTERNAL://b1:9092",
        "EXTERNAL://b1.example.org:9094",
    ]
    assert [item.protocol for item in node.listeners] == [Protocol.PLAINTEXT, Protocol.SSL]
    assert node.log_dir == "/tmp/kafka-logs"


def test_takes_listeners_for_advertised_where_that_is_missing() -> None:
    change = {"listeners": "INTERNAL://b1:9092"}
    values = {k: v for k, v in (BROKER | change).items() if k != "advertised.listeners"}
    assert str(parse_node(Settings(values), SCOPES).listeners[0].advertised) == "b1:9092"


def test_takes_kafka_s_own_map_where_that_is_missing() -> None:
    values = {
        "process.roles": "broker,controller",
        "broker.id": "3",
        "listeners": "PLAINTEXT://b1:9092,CONTROLLER://b1:9093",
        "controller.listener.names": "CONTROLLER",
    }
    scopes = {"PLAINTEXT": (Scope.INTERNAL,), "CONTROLLER": (Scope.CONTROLLER,)}
    node = parse_node(Settings(values), scopes)
    assert node.id == 3
    assert {item.protocol for item in node.listeners} == {Protocol.PLAINTEXT}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"listeners": None}, "listeners: is missing"),
        ({"listeners": ""}, "listener list '': is empty"),
        ({"listeners": "INTERNAL://0.0.0.0:9092,"}, "has a blank entry"),
        ({"advertised.listeners": "INTERNAL://b1:9092"}, "EXTERNAL: is bound and not advertised"),
        ({"advertised.listeners": "INTERNAL://:9092,EXTERNAL://b:1"}, "host is empty"),
        (
            {"listeners": "INTERNAL://0.0.0.0:9092"},
            "advertised.listeners: EXTERNAL is not among the listeners",
        ),
        ({"listener.security.protocol.map": "INTERNAL:PLAINTEXT"}, "EXTERNAL: has no entry in"),
        ({"listener.security.protocol.map": "INTERNAL:TLS"}, "names the protocol 'TLS'"),
        ({"node.id": None}, "node.id: found ''"),
        ({"node.id": "-1"}, "node.id: found '-1'"),
        ({"node.id": "9" * 10}, "from 0 to 2147483647"),
        ({"process.roles": "broker,broker"}, "process.roles: found 'broker,broker'"),
        ({"process.roles": "foo"}, "process.roles: found 'foo'"),
        ({"process.roles": None}, "process.roles: found ''"),
    ],
)
def test_names_what_is_wrong_with_a_node(change: dict[str, str | None], expected: str) -> None:
    assert expected in problems_of(change)


def test_names_every_problem_of_a_node_at_once() -> None:
    text = problems_of({"node.id": "x", "process.roles": "", "listeners": "internal://b:1"})
    assert all(word in text for word in ("node.id", "process.roles", "write INTERNAL"))


def test_asks_for_the_scopes_of_a_listener_that_nobody_described() -> None:
    with pytest.raises(SpecError, match="nothing says whom it is for"):
        parse_node(Settings(BROKER), {"INTERNAL": (Scope.INTERNAL,)})


def test_refuses_a_noted_scope_that_does_not_exist() -> None:
    notes = {"scopes": "INTERNAL:internal,EXTERNAL:extrenal"}
    with pytest.raises(SpecError, match="'EXTERNAL:extrenal' names a scope"):
        parse_node(Settings(BROKER, notes))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"default.replication.factor": "many"}, "default.replication.factor: found 'many'"),
        ({"default.replication.factor": ""}, "default.replication.factor: found ''"),
        ({"min.insync.replicas": "0"}, "min.insync.replicas: found '0'"),
        ({"inter.broker.listener.name": "internal"}, "write INTERNAL"),
        ({"controller.listener.names": ""}, "controller.listener.names"),
    ],
)
def test_names_what_is_wrong_with_a_cluster(change: dict[str, str], expected: str) -> None:
    with pytest.raises(SpecError, match=expected):
        parse_plan([Settings(BROKER | change)], SCOPES)


def test_refuses_a_cluster_in_which_an_id_stands_twice() -> None:
    with pytest.raises(SpecError, match=r"node\.id 1 stands twice"):
        parse_plan([Settings(BROKER), Settings(BROKER)], SCOPES)


@pytest.mark.parametrize("nodes", [[], [BROKER | {"process.roles": "controller"}]])
def test_refuses_a_cluster_without_a_broker(nodes: list[dict[str, str]]) -> None:
    with pytest.raises(SpecError, match="no node has the role broker"):
        parse_plan([Settings(values) for values in nodes], SCOPES)


def test_refuses_a_version_that_is_none() -> None:
    with pytest.raises(SpecError, match="Kafka version: found 'latest'"):
        parse_plan([Settings(BROKER)], SCOPES, "latest")


def test_takes_the_version_that_is_given_over_the_noted_one() -> None:
    noted = Settings(BROKER, {"kafka_version": "3.9.2"})
    assert parse_plan([noted], SCOPES).kafka_version == "3.9.2"
    assert parse_plan([noted], SCOPES, "4.1.1").kafka_version == "4.1.1"
