"""Names and published ports of brokers in containers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.config.docker import DockerSpec
from earshot.config.document import read_spec
from earshot.errors import EarshotError
from earshot.listeners.terms import Scope
from earshot.placement.docker import docker_names
from earshot.topology.container import PublishedPort
from tests.raised import raised

NAMED = {"hosts": [{"external": "kafka.example.com"}]}
TWO = [{"name": "a", "external": "a.example"}, {"name": "b", "internal": "b.lan",
                                                "external": "b.example"}]  # fmt: skip


def spec(**rest: Any) -> DockerSpec:
    found = read_spec({"placement": "docker", **rest}, "test")
    assert isinstance(found, DockerSpec)
    return found


def test_on_one_host_each_scope_has_a_name_of_its_own() -> None:
    names = docker_names(spec(**NAMED)).names
    assert names[2].hosts == {
        Scope.CONTROLLER: "kafka-2",
        Scope.INTERNAL: "kafka-2",
        Scope.HOST: "localhost",
        Scope.EXTERNAL: "kafka.example.com",
    }


def test_brokers_of_one_host_are_published_on_consecutive_ports() -> None:
    published = docker_names(spec(**NAMED)).published
    assert published[1] == {
        "HOST": PublishedPort(9092, 9092, "127.0.0.1"),
        "EXTERNAL": PublishedPort(39092, 39092),
    }
    assert [item.host_port for item in published[3].values()] == [9094, 39094]


def test_a_port_may_be_remapped() -> None:
    listeners = [
        {"name": "PLAINTEXT", "port": 19092, "scopes": ["internal"]},
        {"name": "PLAINTEXT_HOST", "port": 9092, "scopes": ["host"], "published": {1: 39092}},
    ]
    found = docker_names(spec(brokers=1, listeners=listeners))
    assert found.published[1] == {"PLAINTEXT_HOST": PublishedPort(9092, 39092, "127.0.0.1")}
    assert found.names[1].published == {"PLAINTEXT_HOST": 39092}


def test_an_internal_listener_may_be_published_all_the_same() -> None:
    listeners = [{"name": "I", "port": 19092, "scopes": ["internal"], "published": {1: 29092}}]
    assert docker_names(spec(brokers=1, listeners=listeners)).published[1] == {
        "I": PublishedPort(19092, 29092)
    }


def test_on_several_hosts_brokers_meet_at_their_hosts_names() -> None:
    found = docker_names(spec(hosts=TWO))
    assert [found.names[id].hosts[Scope.INTERNAL] for id in (1, 2, 3)] == [
        "a.example",
        "b.lan",
        "a.example",
    ]
    assert Scope.HOST not in found.names[1].hosts
    # brokers 1 and 3 share a host; broker 2 has its own
    assert [found.names[id].published["INTERNAL"] for id in (1, 2, 3)] == [19092, 19092, 19093]
    assert [found.names[id].published["CONTROLLER"] for id in (1, 2, 3)] == [29092, 29092, 29093]


def test_separate_controllers_publish_nothing() -> None:
    found = docker_names(spec(controllers={"mode": "separate"}))
    assert found.published[10_001] == {}
    assert found.published[3] == docker_names(spec()).published[3]


def test_a_port_that_two_listeners_want_is_named_with_both() -> None:
    listeners = [
        {"name": "I", "port": 19092, "scopes": ["internal"]},
        {"name": "A", "port": 9092, "scopes": ["host"]},
        {"name": "B", "port": 9093, "scopes": ["host"]},
    ]
    error = raised(EarshotError, docker_names, spec(brokers=2, listeners=listeners))
    assert "port 9093 of Docker host local" in str(error)
    assert "B of node 1 and by A of node 2" in str(error)


def test_a_port_beyond_the_last_is_refused() -> None:
    listeners = [
        {"name": "I", "port": 19092, "scopes": ["internal"]},
        {"name": "A", "port": 65535, "scopes": ["host"]},
    ]
    with pytest.raises(EarshotError, match="65536"):
        docker_names(spec(brokers=2, listeners=listeners))


def test_says_that_no_client_outside_the_host_is_served() -> None:
    (note,) = docker_names(spec()).notes
    assert note.startswith("HOST, EXTERNAL: not for clients outside the Docker host")
    assert docker_names(spec(**NAMED)).notes == ()


@given(brokers=st.integers(1, 30), hosts=st.integers(1, 5))
def test_no_two_listeners_share_a_port_of_a_host(brokers: int, hosts: int) -> None:
    names = [{"name": f"h{i}", "external": f"h{i}.example"} for i in range(hosts)]
    made = spec(brokers=brokers, hosts=names)
    found = docker_names(made)
    taken = [
        (made.host_of[id], item.host_port)
        for id, ports in found.published.items()
        for item in ports.values()
    ]
    assert len(set(taken)) == len(taken)
    assert list(found.names) == list(made.node_ids)


def test_each_of_several_hosts_is_a_rack() -> None:
    assert [it.rack for it in docker_names(spec(hosts=TWO)).names.values()] == ["a", "b", "a"]
    assert {it.rack for it in docker_names(spec(**NAMED)).names.values()} == {""}
