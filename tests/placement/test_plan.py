from typing import Any

import pytest
from hypothesis import given, settings

from earshot.config.cluster import FIRST_SEPARATE_CONTROLLER
from earshot.config.local import LocalSpec
from earshot.errors import EarshotError
from earshot.listeners import render
from earshot.listeners.model import ClusterPlan, Listener
from earshot.listeners.terms import Role, Scope, UnknownHost
from earshot.placement.plan import NodeNames, plan
from tests.config.read import read_local
from tests.listeners.clusters import plans

INTERNAL = {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]}
EXTERNAL = {"name": "EXTERNAL", "port": 9092, "scopes": ["external"]}


def spec_of(*listeners: dict[str, Any], **rest: Any) -> LocalSpec:
    chosen = {"listeners": list(listeners)} if listeners else {}
    return read_local({"placement": "local", **chosen, **rest}, "test")


def names_of(spec: LocalSpec, **rest: Any) -> dict[int, NodeNames]:
    """One machine for each node, with a name per scope."""
    return {
        id: NodeNames(hosts={scope: f"b{id}.{scope}.example" for scope in Scope}, **rest)
        for id in spec.node_ids
    }


def one_machine(spec: LocalSpec) -> dict[int, NodeNames]:
    return {
        id: NodeNames(
            hosts=dict.fromkeys(Scope, "localhost"), machine="this machine", port_offset=index
        )
        for index, id in enumerate(spec.node_ids)
    }


def listener(cluster: ClusterPlan, id: int, name: str) -> Listener:
    found = cluster.node(id).listener(name)
    assert found is not None
    return found


def test_the_default_is_three_combined_brokers_with_two_listeners() -> None:
    spec = spec_of()
    cluster = plan(spec, one_machine(spec))
    assert [node.id for node in cluster.nodes] == [1, 2, 3]
    assert all(node.roles == (Role.BROKER, Role.CONTROLLER) for node in cluster.nodes)
    assert [str(item) for item in cluster.node(2).listeners] == [
        "INTERNAL://localhost:19093",
        "EXTERNAL://localhost:9093",
        "CONTROLLER://localhost:29093",
    ]
    assert (cluster.inter_broker, cluster.replication_factor, cluster.min_insync_replicas) == (
        "INTERNAL",
        3,
        2,
    )


@pytest.mark.parametrize(
    ("brokers", "factor", "insync"), [(1, 1, 1), (2, 2, 1), (3, 3, 2), (7, 3, 2)]
)
def test_replication_follows_the_number_of_brokers(brokers: int, factor: int, insync: int) -> None:
    spec = spec_of(brokers=brokers)
    cluster = plan(spec, names_of(spec))
    assert (cluster.replication_factor, cluster.min_insync_replicas) == (factor, insync)


def test_one_broker_is_its_own_quorum() -> None:
    spec = spec_of(brokers=1)
    cluster = plan(spec, names_of(spec))
    assert render.voters(cluster) == "1@b1.controller.example:29092"


def test_separate_controllers_have_ids_of_their_own_and_only_the_quorum_listener() -> None:
    spec = spec_of(controllers={"mode": "separate"})
    cluster = plan(spec, names_of(spec))
    first = FIRST_SEPARATE_CONTROLLER
    assert [node.id for node in cluster.brokers] == [1, 2, 3]
    assert [node.id for node in cluster.controllers] == [first, first + 1, first + 2]
    assert all(node.roles == (Role.CONTROLLER,) for node in cluster.controllers)
    assert all(
        [item.name for item in node.listeners] == ["CONTROLLER"] for node in cluster.controllers
    )
    assert cluster.listener_names == ("INTERNAL", "EXTERNAL")


def test_freely_named_listeners_keep_their_order() -> None:
    listeners = [
        {"name": "LISTENER_BOB", "port": 29092, "scopes": ["internal"]},
        {"name": "LISTENER_FRED", "port": 9092, "scopes": ["host"]},
        {"name": "LISTENER_ALICE", "port": 29094, "scopes": ["external"]},
    ]
    spec = spec_of(*listeners, brokers=1, controllers={"port": 39092})
    cluster = plan(spec, names_of(spec))
    assert cluster.listener_names == ("LISTENER_BOB", "LISTENER_FRED", "LISTENER_ALICE")
    assert cluster.inter_broker == "LISTENER_BOB"
    assert str(listener(cluster, 1, "LISTENER_FRED")) == "LISTENER_FRED://b1.host.example:9092"


def test_a_listener_for_several_scopes_advertises_the_name_of_the_widest() -> None:
    single = {"name": "PLAINTEXT", "port": 9092, "scopes": ["external", "internal"]}
    spec = spec_of(single, brokers=1)
    cluster = plan(spec, names_of(spec))
    found = listener(cluster, 1, "PLAINTEXT")
    assert found.scopes == (Scope.INTERNAL, Scope.EXTERNAL)
    assert str(found) == "PLAINTEXT://b1.external.example:9092"


def test_binds_the_interface_that_the_listener_or_the_placement_names() -> None:
    spec = spec_of({**INTERNAL, "bind": "10.0.0.7"}, EXTERNAL, brokers=1)
    cluster = plan(spec, names_of(spec, binds={Scope.EXTERNAL: "192.0.2.1"}))
    assert listener(cluster, 1, "INTERNAL").bind_host == "10.0.0.7"
    assert listener(cluster, 1, "EXTERNAL").bind_host == "192.0.2.1"
    assert listener(cluster, 1, "CONTROLLER").bind_host == "0.0.0.0"


def test_binds_everything_where_the_scopes_of_a_listener_have_different_interfaces() -> None:
    both = {"name": "PLAINTEXT", "port": 9092, "scopes": ["internal", "external"]}
    spec = spec_of(both, brokers=1)
    binds = {Scope.INTERNAL: "10.0.0.1", Scope.EXTERNAL: "192.0.2.1"}
    cluster = plan(spec, names_of(spec, binds=binds))
    assert listener(cluster, 1, "PLAINTEXT").bind_host == "0.0.0.0"


@pytest.mark.parametrize("key", [2, "2"])
@pytest.mark.parametrize(
    ("override", "address"),
    [
        ("edge.example.org", "edge.example.org:9092"),
        ("edge.example.org:31000", "edge.example.org:31000"),
        ("[2001:db8::1]:31000", "[2001:db8::1]:31000"),
        ("2001:db8::1", "[2001:db8::1]:9092"),
        ("[2001:db8::1]", "[2001:db8::1]:9092"),
    ],
)
def test_an_override_wins_for_its_broker_alone(key: int | str, override: str, address: str) -> None:
    spec = spec_of(INTERNAL, {**EXTERNAL, "advertised": {key: override}})
    cluster = plan(spec, names_of(spec))
    assert str(listener(cluster, 2, "EXTERNAL").advertised) == address
    assert listener(cluster, 2, "EXTERNAL").bind_port == 9092
    assert str(listener(cluster, 1, "EXTERNAL").advertised) == "b1.external.example:9092"


def test_an_unknown_host_leaves_brokers_ports_and_scopes_known() -> None:
    spec = spec_of(INTERNAL, EXTERNAL, brokers=1)
    names = {1: NodeNames(hosts=dict.fromkeys(Scope, UnknownHost(what="elastic IP of broker 1")))}
    found = listener(plan(spec, names), 1, "EXTERNAL")
    assert not found.known
    assert (found.port, found.scopes) == (9092, (Scope.EXTERNAL,))
    assert str(found) == "EXTERNAL://(elastic IP of broker 1: not known yet):9092"
    assert found.advertised.host.endswith(".invalid")


def test_scaling_up_leaves_the_settings_of_the_others_alone() -> None:
    three, four = spec_of(brokers=3), spec_of(brokers=4)
    before, after = plan(three, one_machine(three)), plan(four, one_machine(four))
    assert [render.server_properties(before, node) for node in before.nodes] == [
        render.server_properties(after, node) for node in after.nodes[:3]
    ]
    assert after.node(4).roles == (Role.BROKER,)


def test_scaling_up_separate_controllers_leaves_the_settings_of_the_others_alone() -> None:
    quorum = {"mode": "separate"}
    three, four = spec_of(brokers=3, controllers=quorum), spec_of(brokers=4, controllers=quorum)
    before, after = plan(three, names_of(three)), plan(four, names_of(four))
    for node in before.nodes:
        assert render.environment(before, node) == render.environment(after, after.node(node.id))


def test_refuses_a_port_beyond_the_range() -> None:
    spec = spec_of({**INTERNAL, "port": 65535}, EXTERNAL, brokers=2)
    with pytest.raises(EarshotError, match=r"INTERNAL, node 2: port 65535 \+ 1 = 65536"):
        plan(spec, one_machine(spec))


def test_refuses_two_listeners_on_one_port_of_a_machine() -> None:
    spec = spec_of({**INTERNAL, "port": 9093}, EXTERNAL)
    with pytest.raises(EarshotError, match="port 9093 of this machine") as caught:
        plan(spec, one_machine(spec))
    assert "INTERNAL of node 1 and by EXTERNAL of node 2" in str(caught.value)


def test_machines_of_their_own_may_use_the_same_ports() -> None:
    spec = spec_of({**INTERNAL, "port": 9093}, EXTERNAL)
    assert {listener(plan(spec, names_of(spec)), id, "EXTERNAL").port for id in (1, 2, 3)} == {9092}


def test_refuses_a_scope_without_a_name() -> None:
    spec = spec_of(INTERNAL, EXTERNAL, brokers=1)
    hosts = {Scope.INTERNAL: "localhost", Scope.CONTROLLER: "localhost"}
    with pytest.raises(EarshotError, match="EXTERNAL, node 1: has the scope external"):
        plan(spec, {1: NodeNames(hosts=hosts)})


def test_refuses_a_node_without_names() -> None:
    spec = spec_of(brokers=2)
    with pytest.raises(EarshotError, match="node 2"):
        plan(spec, {1: NodeNames(hosts=dict.fromkeys(Scope, "localhost"))})


def test_a_copy_with_other_nodes_forgets_what_was_derived() -> None:
    spec = spec_of(brokers=3)
    cluster = plan(spec, names_of(spec))
    assert (len(cluster.brokers), len(cluster.controllers)) == (3, 3)
    smaller = cluster.model_copy(update={"nodes": cluster.nodes[:1]})
    assert (len(smaller.brokers), len(smaller.controllers)) == (1, 1)
    with pytest.raises(KeyError):
        smaller.node(2)


@settings(max_examples=30)
@given(plans())
def test_a_plan_is_complete(cluster: ClusterPlan) -> None:
    for node in cluster.brokers:
        names = [item.name for item in node.listeners if item.name != cluster.controller]
        assert tuple(names) == cluster.listener_names
        assert cluster.inter_broker in names
        assert len({item.bind_port for item in node.listeners}) == len(node.listeners)
    assert all(node.listener(cluster.controller) for node in cluster.controllers)
    assert len(cluster.controllers) % 2 == 1
    assert cluster.min_insync_replicas <= cluster.replication_factor <= len(cluster.brokers)


@settings(max_examples=30)
@given(plans())
def test_a_plan_survives_json(cluster: ClusterPlan) -> None:
    assert ClusterPlan.model_validate_json(cluster.model_dump_json()) == cluster
