"""Settings that others wrote: what is known of them, and what is not."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.facts.settings import KafkaSettings, Unreadable
from earshot.listeners.address import Address
from earshot.listeners.placeholders import is_known

NAMES = (
    "advertised", "quorum_addresses", "advertised_to_clients", "controllers", "early", "id",
    "inter_broker", "is_broker", "is_controller", "is_kraft", "kinds", "listeners", "protocols",
    "roles", "servers", "voters",
)  # fmt: skip


def read(values: Mapping[str, str], *, complete: bool = True) -> KafkaSettings:
    return KafkaSettings(values, (4, 1), complete=complete)


@pytest.mark.parametrize(
    "text",
    ["$HOST", "${HOST}", "$(hostname -i)", "A://{{ host }}:1", "`hostname`", "_{HOST_IP}",
     "A://<your host>:1", "A://@HOST@:1", "%HOST%", "%(host)s"],
)  # fmt: skip
def test_a_variable_or_a_template_is_not_known(text: str) -> None:
    assert not is_known(text)


@pytest.mark.parametrize("text", ["", "kafka:9092", "A://:9092", "a$", "pa$$", "100%", "$1"])
def test_any_other_text_is_known(text: str) -> None:
    assert is_known(text)


def test_what_is_absent_has_kafkas_default_where_all_is_shown() -> None:
    found = read({})
    assert found.listeners == found.advertised == {"PLAINTEXT": Address("", 9092)}
    assert found.inter_broker == "PLAINTEXT"
    assert (found.is_kraft, found.voters) == (False, {})


@pytest.mark.parametrize("name", ["listeners", "advertised", "voters", "is_kraft", "inter_broker"])
def test_what_is_absent_is_not_known_where_an_image_may_set_it(name: str) -> None:
    with pytest.raises(Unreadable):
        getattr(read({}, complete=False), name)


def test_what_is_there_is_known_wherever_it_comes_from() -> None:
    found = read({"listeners": " a://b_1:9092 "}, complete=False)
    assert found.listeners == {"A": Address("b_1", 9092)}


def test_a_value_with_a_variable_is_not_known_and_the_others_are() -> None:
    found = read({"listeners": "A://:1", "advertised.listeners": "A://${HOST}:1"})
    assert found.listeners == {"A": Address("", 1)}
    with pytest.raises(Unreadable):
        _ = found.advertised


def test_a_list_that_kafka_refuses_is_not_known() -> None:
    with pytest.raises(Unreadable):
        _ = read({"listeners": "A://:1,B"}).listeners


@given(
    st.dictionaries(
        st.sampled_from(
            ["listeners", "advertised.listeners", "listener.security.protocol.map", "node.id",
             "controller.listener.names", "controller.quorum.voters", "process.roles",
             "controller.quorum.bootstrap.servers", "inter.broker.listener.name",
             "early.start.listeners", "broker.id", "security.inter.broker.protocol"]
        ),
        st.text(max_size=20) | st.text(alphabet="aA:/@[]0129.-,$ ", max_size=30),
    ),
    st.booleans(),
)  # fmt: skip
def test_any_settings_are_read_or_unreadable(values: dict[str, str], complete: bool) -> None:
    found = read(values, complete=complete)
    for name in NAMES:
        try:
            value: Any = getattr(found, name)
        except Unreadable:
            continue
        assert value is not None


@pytest.mark.parametrize(
    ("values", "version", "roles"),
    [
        ({}, (3, 9), ("broker",)),
        ({}, (4, 0), ("",)),
        ({"process.roles": "controller"}, (3, 9), ("controller",)),
    ],
)
def test_a_node_without_roles_is_a_broker_as_long_as_there_is_zookeeper(
    values: dict[str, str], version: tuple[int, int], roles: tuple[str, ...]
) -> None:
    assert KafkaSettings(values, version, complete=True).roles == roles
