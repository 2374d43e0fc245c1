from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.config.local import LocalSpec
from earshot.errors import EarshotError
from earshot.facts.cluster import ClusterFacts
from earshot.listeners.terms import Scope
from earshot.names.evidence import gather
from earshot.names.machine import Machine
from earshot.names.policy import ResolverPolicy
from earshot.placement.local import MACHINE, local_names
from earshot.placement.plan import plan
from earshot.rules.evaluate import evaluate
from tests.config.read import read_local
from tests.doubles.resolvers import TableAsked

ROOT = Path("/data")
ADDRESSES = ("127.0.0.1", "192.0.2.10", "::1")
NAMED = Machine(ADDRESSES, "kafka-host", "127.0.1.1")
ON_LAN = Machine(ADDRESSES, "kafka-host", "192.0.2.10")
UNNAMED = Machine(ADDRESSES, why_unnamed="its own name vm does not resolve here: nxdomain")


def spec(**settings: Any) -> LocalSpec:
    return read_local({"placement": "local", **settings}, "test")


@pytest.mark.parametrize(
    ("machine", "host", "bind"),
    [
        (NAMED, "kafka-host", "127.0.1.1"),
        (ON_LAN, "kafka-host", "192.0.2.10"),
        (UNNAMED, "localhost", "127.0.0.1"),
    ],
)
def test_names_of_the_default_cluster(machine: Machine, host: str, bind: str) -> None:
    names, _ = local_names(spec(), machine, ROOT)
    assert list(names) == [1, 2, 3]
    for index, (id, item) in enumerate(names.items()):
        for scope in (Scope.INTERNAL, Scope.CONTROLLER):
            assert (item.hosts[scope], item.binds[scope]) == ("localhost", "127.0.0.1")
        assert (item.hosts[Scope.HOST], item.binds[Scope.HOST]) == (host, bind)
        assert Scope.EXTERNAL not in item.hosts
        assert item.log_dir == f"/data/node-{id}/log"
        assert (item.machine, item.port_offset, item.addresses) == (MACHINE, index, ADDRESSES)


def test_a_name_that_other_machines_use_is_bound_everywhere() -> None:
    names, notes = local_names(spec(external_host="kafka.example.com"), NAMED, ROOT)
    for item in names.values():
        assert item.hosts[Scope.EXTERNAL] == "kafka.example.com"
        assert item.binds[Scope.EXTERNAL] == "0.0.0.0"
    assert notes == []


def test_separate_controllers_continue_the_count() -> None:
    names, _ = local_names(
        spec(brokers=2, controllers={"mode": "separate", "count": 3}), NAMED, ROOT
    )
    offsets = {id: item.port_offset for id, item in names.items()}
    assert offsets == {1: 0, 2: 1, 10001: 2, 10002: 3, 10003: 4}


def test_a_note_says_why_localhost_is_advertised() -> None:
    _, (note,) = local_names(spec(), UNNAMED, ROOT)
    assert note == (
        "EXTERNAL: advertises localhost, because this machine has no usable name: "
        "its own name vm does not resolve here: nxdomain"
    )


def test_a_note_says_what_is_open_to_the_network() -> None:
    _, (note,) = local_names(spec(), ON_LAN, ROOT)
    assert note == (
        "EXTERNAL: advertises kafka-host, which resolves to 192.0.2.10: "
        "other machines of that network can reach it too"
    )


def test_without_a_listener_for_the_host_there_is_nothing_to_note() -> None:
    only = spec(listeners=[{"name": "PLAINTEXT", "port": 9092, "scopes": ["internal"]}])
    assert local_names(only, UNNAMED, ROOT)[1] == []


@given(st.integers(1, 12), st.sampled_from([NAMED, ON_LAN, UNNAMED]), st.booleans())
def test_what_is_named_here_satisfies_every_rule(
    brokers: int, machine: Machine, separate: bool
) -> None:
    cluster = spec(brokers=brokers, controllers={"mode": "separate" if separate else "combined"})
    names, _ = local_names(cluster, machine, ROOT)
    planned = plan(cluster, names)
    asked = TableAsked(
        {"system": {"localhost": ("127.0.0.1",), "kafka-host": ON_LAN.addresses[:2]}}
    )
    evidence = gather(planned, ResolverPolicy(), "local", None, asked)
    addresses = {id: item.addresses for id, item in names.items()}
    assert (
        evaluate(replace(ClusterFacts.of(planned, "local"), addresses=addresses, evidence=evidence))
        == ()
    )


@pytest.mark.parametrize("bind", ["192.0.2.10", "127.0.0.9", "::1", "0.0.0.0", "localhost"])
def test_an_address_of_this_machine_can_be_bound(bind: str) -> None:
    wanted = spec(listeners=[{"name": "A", "port": 9092, "scopes": ["internal"], "bind": bind}])
    assert local_names(wanted, NAMED, ROOT)[0]


@pytest.mark.parametrize("bind", ["192.0.2.11", "2001:db8::1", "elsewhere"])
def test_an_address_of_another_machine_is_refused_before_anything_starts(bind: str) -> None:
    wanted = spec(listeners=[{"name": "A", "port": 9092, "scopes": ["internal"], "bind": bind}])
    with pytest.raises(EarshotError) as found:
        local_names(wanted, NAMED, ROOT)
    assert str(found.value).startswith(
        f"listeners.A.bind: {bind} is not an address of this machine"
    )
    assert "allowed: 127.0.0.1, 192.0.2.10, ::1" in str(found.value)
