import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.config.cluster import shown_ids
from earshot.config.document import read_spec, read_spec_text
from earshot.config.listener import ListenerSpec
from earshot.config.local import LocalSpec
from earshot.errors import SpecError
from earshot.listeners.terms import DEFAULT_KAFKA, Protocol, Scope
from tests.config.aws_documents import document
from tests.config.read import read_local
from tests.goldens import refusals_are_golden
from tests.listeners.clusters import documents
from tests.raised import raised

MISTAKES = Path(__file__).parent / "mistakes"
"""The texts of refusals, which `EARSHOT_WRITE_GOLDENS=1` writes."""

SOURCE = "stacks/Pulumi.local.yaml, earshot:cluster"
INTERNAL: dict[str, Any] = {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]}


def read(**rest: Any) -> LocalSpec:
    return read_local({"placement": "local", **rest}, SOURCE)


def message_of(document: object) -> str:
    error = raised(SpecError, read_spec, document, SOURCE)
    assert error.exit_code == 2
    text = str(error)
    assert text.startswith(SOURCE)
    assert "pydantic" not in text and "Input should" not in text and "Traceback" not in text
    return text.removeprefix(SOURCE)


def with_listener(**change: Any) -> dict[str, Any]:
    return {"placement": "local", "listeners": [INTERNAL | change]}


def test_only_the_placement_must_be_said() -> None:
    spec = read()
    assert (spec.brokers, spec.kafka_version, spec.gate) == (3, DEFAULT_KAFKA, "required")
    assert [(item.name, item.scopes) for item in spec.listeners] == [
        ("INTERNAL", (Scope.INTERNAL,)),
        ("EXTERNAL", (Scope.HOST,)),
    ]
    assert (spec.inter_broker_name, spec.voters, spec.replicas, spec.min_insync) == (
        "INTERNAL",
        3,
        3,
        2,
    )


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (None, "found nothing"),
        ("", "found ''"),
        ([], "found []"),
        ("\x00\x89PNG\r\n", r"found '\x00\x89PNG\r\n'"),
        (b"\xff\xfe", r"found b'\xff\xfe'"),
        (7, "found 7"),
        ({}, "placement: is missing"),
        ({"secure": "v1:abc"}, "is a secret"),
        ({"placement": "moon"}, "placement: found 'moon'\n  allowed: local"),
        ({"placement": None}, "placement: found nothing"),
        ({"placement": ["local"]}, "placement: found ['local']"),
    ],
)
def test_refuses_what_is_no_cluster(document: object, expected: str) -> None:
    assert expected in message_of(document)


def test_names_key_finding_and_allowance() -> None:
    mistakes: list[Any] = [
        {"broker": 3},
        {5: 1},
        {"\x00": 1},
        {"brokers": "3"},
        {"brokers": True},
        {"brokers": 2.5},
        {"brokers": None},
        {"brokers": 0},
        {"brokers": 1001},
        {"listeners": None},
        {"listeners": {}},
        {"listeners": []},
        {"listeners": ["A"]},
        {"listeners": [INTERNAL, INTERNAL]},
        {"controllers": "combined"},
        {"controllers": {"mode": "joint"}},
        {"controllers": {"count": 2}},
        {"controllers": {"count": 5}},
        {"controllers": {"name": "EXTERNAL"}},
        {"controllers": {"port": 9092}},
        {"controllers": {"nam": "X"}},
        {"inter_broker": "FOO"},
        {"replication_factor": 4},
        {"min_insync_replicas": 4},
        {"kafka_version": 4.1},
        {"kafka_version": "3.8.1"},
        {"kafka_version": "4.1.1-rc1"},
        {"gate": "no"},
        {"gate": True},
        {"heap": "lots"},
        {"heap": "15m"},
        {"heap": "1025g"},
        {"heap": "9" * 30 + "m"},
        {"heap": 256},
        {"data": "burn"},
        {"external_host": "a_b"},
        {"external_host": "kafka.example.org:9092"},
        {"validation": {"records": "many"}},
        {"validation": {"deadline": 5}},
        {"extra": []},
    ]
    refusals_are_golden(
        mistakes, lambda it: message_of({"placement": "local"} | it), MISTAKES / "local.txt"
    )


def test_names_the_listener_it_is_about() -> None:
    mistakes: list[Any] = [
        {"port": 0},
        {"port": 70000},
        {"port": -1},
        {"port": "9092"},
        {"port": True},
        {"port": None},
        {"name": "internal"},
        {"name": 5},
        {"name": None},
        {"name": "A\nB"},
        {"scopes": "host"},
        {"scopes": ["intern"]},
        {"scopes": []},
        {"scopes": None},
        {"scopes": ["internal", "controller"]},
        {"scopes": ["internal", "internal"]},
        {"protocol": "TLS"},
        {"protocol": "plaintext"},
        {"name": "SSL"},
        {"bind": "eth 0"},
        {"prot": "SSL"},
        {"advertised": "h"},
        {"advertised": {9: "h"}},
        {"advertised": {0: "h"}},
        {"advertised": {-1: "h"}},
        {"advertised": {"one": "h"}},
        {"advertised": {True: "h"}},
        {"advertised": {1: "h", "1": "g"}},
        {"advertised": {1: 9092}},
        {"advertised": {1: "a_b"}},
        {"advertised": {1: "h:0"}},
        {"advertised": {1: ""}},
    ]
    refusals_are_golden(
        mistakes, lambda it: message_of(with_listener(**it)), MISTAKES / "local_listener.txt"
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"client_config": 3.0}, "client_config: found 3.0; allowed: text"),
        (
            {"client_config": "a\0b"},
            "client_config: found 'a\\x00b'; allowed: a file's path, in one",
        ),
        (
            {"client_config": "c.properties", "security": {}},
            "client_config: found with `security`, whose user validates the listeners; allowed",
        ),
    ],
)
def test_one_file_of_client_properties_where_security_makes_none(
    change: dict[str, Any], expected: str
) -> None:
    assert expected in message_of({"placement": "local", **change})


@pytest.mark.parametrize("missing", ["name", "port", "scopes"])
def test_says_what_a_listener_lacks(missing: str) -> None:
    listener = {key: value for key, value in INTERNAL.items() if key != missing}
    where = "listeners[0]" if missing == "name" else "listeners.INTERNAL"
    message = message_of({"placement": "local", "listeners": [listener]})
    assert f"{where}.{missing}: is missing" in message


def test_two_listeners_want_ports_of_their_own() -> None:
    other = INTERNAL | {"name": "EXTERNAL"}
    message = message_of({"placement": "local", "listeners": [INTERNAL, other]})
    assert "listeners.EXTERNAL.port: found 19092, which INTERNAL has already" in message


def test_names_every_problem_at_once_each_on_its_line() -> None:
    message = message_of(with_listener(port=0, protocol="TLS") | {"heap": "x", "brokerz": 1})
    lines = message.splitlines()
    assert len(lines) == 5
    assert all(line.startswith("  - ") for line in lines[1:])


@pytest.mark.parametrize(
    "key",
    [
        "listeners",
        "advertised.listeners",
        "node.id",
        "process.roles",
        "Log.Dirs",
        "min.insync.replicas",
    ],
)
def test_extra_refuses_what_earshot_computes(key: str) -> None:
    assert f"extra: {key} is computed by earshot; " in message_of(
        {"placement": "local", "extra": {key: "x"}}
    )


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({"a b": "1"}, "extra: 'a b' is no property name"),
        ({"": "1"}, "extra: '' is no property name"),
        ({7: "1"}, "extra: 7 is no property name"),
        ({"a": None}, "extra: a: found nothing"),
        ({"a": ["x"]}, "extra: a: found a list"),
        ({"a": "x\ny"}, "extra: a: found the character '\\n'"),
        ({"a": "x\u2028y"}, "without line breaks"),
        ({"a": " x"}, "outer blanks"),
        ({"a": "\ud800"}, "printable text"),
        ({"a": datetime.date(2025, 1, 1)}, "one line of text, or a number"),
    ],
)
def test_extra_refuses_what_would_not_survive(extra: dict[Any, Any], expected: str) -> None:
    assert expected in message_of({"placement": "local", "extra": extra})


def test_extra_takes_numbers_truth_values_and_settings_of_one_listener() -> None:
    spec = read(
        extra={
            "num.partitions": 6,
            "auto.create.topics.enable": False,
            "listener.name.internal.ssl.client.auth": "required",
            "empty": "",
        }
    )
    assert spec.extra == {
        "num.partitions": "6",
        "auto.create.topics.enable": "false",
        "listener.name.internal.ssl.client.auth": "required",
        "empty": "",
    }


def test_yaml_reads_a_bare_off_as_false() -> None:
    assert read_spec(yaml.safe_load("{placement: local, gate: off}"), SOURCE).gate == "off"


def test_pulumi_hands_numbers_over_as_floats() -> None:
    spec = read(brokers=1.0, listeners=[INTERNAL | {"port": 9092.0}])
    assert (spec.brokers, spec.listeners[0].port) == (1, 9092)


@pytest.mark.parametrize("key", [2, "2"])
def test_override_keys_are_broker_ids_as_numbers_or_text(key: int | str) -> None:
    spec = read(listeners=[INTERNAL | {"advertised": {key: "h:1"}}])
    assert spec.listeners[0].advertised == {2: "h:1"}


def test_scopes_are_ordered_from_the_narrowest_to_the_widest() -> None:
    spec = read(listeners=[INTERNAL | {"scopes": ["external", "internal"]}])
    assert spec.listeners[0].scopes == (Scope.INTERNAL, Scope.EXTERNAL)


def test_one_scope_may_stand_without_a_list() -> None:
    assert read(listeners=[INTERNAL | {"scopes": "internal"}]).listeners[0].scopes == ("internal",)


def test_a_name_for_others_widens_the_scope_host_to_external() -> None:
    spec = read(external_host="kafka.example.org")
    assert [item.scopes for item in spec.listeners] == [(Scope.INTERNAL,), (Scope.EXTERNAL,)]


@pytest.mark.parametrize(
    ("brokers", "mode", "voters"),
    [
        (1, "combined", 1),
        (2, "combined", 1),
        (3, "combined", 3),
        (9, "combined", 3),
        (1, "separate", 3),
    ],
)
def test_the_quorum_follows_the_brokers(brokers: int, mode: str, voters: int) -> None:
    assert read(brokers=brokers, controllers={"mode": mode}).voters == voters


def test_a_spec_is_frozen_and_hands_out_no_second_truth() -> None:
    spec = read()
    with pytest.raises(ValueError, match="frozen"):
        spec.brokers = 5
    assert isinstance(spec.listeners[0], ListenerSpec)
    assert spec.listeners[0].protocol is Protocol.PLAINTEXT


@settings(max_examples=60)
@given(documents())
def test_whatever_may_be_written_is_read(document: dict[str, Any]) -> None:
    spec = read_spec(document, SOURCE)
    assert [item.name for item in spec.listeners] == [
        item["name"] for item in document["listeners"]
    ]
    assert len(spec.node_ids) == len(set(spec.node_ids))


rubbish = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8) | st.integers(), inner, max_size=3)
    ),
    max_leaves=6,
)
keys = st.sampled_from([*LocalSpec.model_fields, "brokres"])
listener_keys = st.sampled_from(list(ListenerSpec.model_fields))


@given(st.dictionaries(keys, rubbish, max_size=4), st.dictionaries(listener_keys, rubbish))
def test_rubbish_gives_a_spec_or_one_clear_block(
    rest: dict[str, Any], listener: dict[str, Any]
) -> None:
    document = {"listeners": [INTERNAL | listener], **rest, "placement": "local"}
    try:
        read_spec(document, SOURCE)
    except SpecError as error:
        for word in ("Input should", "Value error", "validation error", "valid integer", "Keys"):
            assert word not in str(error)
        assert all(line.isprintable() for line in str(error).split("\n"))


@pytest.mark.parametrize(
    ("text", "observed"),
    [
        (None, "found nothing"),
        ("local", "found 'local'"),
        ("[1]", "found [1]"),
        ("[" * 100_000, "found '[[["),
    ],
)
def test_the_text_that_pulumi_hands_over_need_be_no_map(text: str | None, observed: str) -> None:
    assert str(raised(SpecError, read_spec_text, text, SOURCE)).startswith(f"{SOURCE}: {observed}")


def test_the_text_that_pulumi_hands_over_is_json() -> None:
    assert read_spec_text('{"placement": "local", "brokers": 1}', SOURCE).brokers == 1


@pytest.mark.parametrize("other", [{"placement": "local"}, {"placement": "docker"}, document()])
def test_extra_refuses_secrets_in_clear_on_every_placement(other: dict[str, Any]) -> None:
    extra = {
        "listener.name.external.ssl.key.password": "hunter2",
        "sasl.jaas.config": 'x.PlainLoginModule required password="hunter2";',
        "ssl.truststore.password": "hünter2",
        "ssl.keystore.password": "${file:/run/kafka/tls:password}",
    }
    said = message_of({**other, "extra": extra})
    allowed = (
        "would hold a secret in clear; allowed: a reference that the broker itself resolves "
        "(`${file:/path:key}`, with `config.providers`), or a file that only the broker reads: "
        "a PEM key store needs no password"
    )
    assert said == ":" + "".join(f"\n  - extra: {key} {allowed}" for key in list(extra)[:3])


def test_defaults_of_a_local_cluster() -> None:
    spec = read()
    assert [item.port for item in spec.listeners] == [19092, 9092]
    assert (spec.heap, spec.data, spec.external_host, spec.extra) == ("256m", "keep", None, {})
    controllers = spec.controllers
    assert (controllers.mode, controllers.count, controllers.name, controllers.port) == (
        *("combined", None, "CONTROLLER", 29092),
    )
    assert controllers.protocol is Protocol.PLAINTEXT
    assert (spec.validation.records, spec.validation.deadline) == (3000, 300)
    assert read(external_host=None, inter_broker=None, controllers={"count": None}) == spec


@pytest.mark.parametrize(
    ("key", "name", "least", "most"),
    [
        ("validation", "records", 0, 10_000_000),
        ("validation", "deadline", 10, 3600),
        ("controllers", "count", 1, 9),
        (None, "brokers", 1, 1000),
    ],
)
def test_numbers_have_their_bounds(key: str | None, name: str, least: int, most: int) -> None:
    for value in (least, most):
        more = {"brokers": 9} if key == "controllers" else {}
        spec = read(**more, **({key: {name: value}} if key else {name: value}))
        assert getattr(getattr(spec, key) if key else spec, name) == value
    where = f"{key}.{name}" if key else name
    for value, allowed in ((least - 1, f"{least} or more"), (most + 1, f"{most} or less")):
        said = message_of(
            {"placement": "local", **({key: {name: value}} if key else {name: value})}
        )
        assert f"{where}: found {value}; allowed: {allowed}" in said


def test_what_is_refused() -> None:
    mistakes: list[Any] = [
        {"listeners": [INTERNAL | {"scopes": "host"}]},
        {"listeners": [INTERNAL | {"name": "SSL"}]},
        {"controllers": {"name": "SSL"}},
        {"controllers": {"port": 9092}},
        {"controllers": {"name": "EXTERNAL"}},
        {"brokers": 1, "controllers": {"count": 3}},
        {"controllers": {"count": 2}},
        {"replication_factor": 4},
        {"min_insync_replicas": 4},
        {"listeners": [INTERNAL, INTERNAL]},
        {"kafka_version": "5.0.0"},
        {"heap": "0m"},
        {"listeners": [INTERNAL | {"scopes": ["internal", "controller"]}]},
        {"listeners": [INTERNAL | {"scopes": ["internal", "internal"]}]},
        {"listeners": [INTERNAL | {"advertised": "h"}]},
    ]
    refusals_are_golden(
        mistakes, lambda it: message_of({"placement": "local"} | it), MISTAKES / "local_values.txt"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"listeners": [INTERNAL | {"scopes": "host"}, INTERNAL | {"name": "B", "port": 1}]},
        {"listeners": [INTERNAL | {"name": "SSL", "protocol": "SSL"}]},
        {"controllers": {"name": "SSL", "protocol": "SSL"}},
        {"controllers": {"port": 9092, "mode": "separate"}},
        {"brokers": 1, "controllers": {"count": 3, "mode": "separate"}},
        {"controllers": {"count": 3}},
        {"replication_factor": 3, "min_insync_replicas": 3},
        {"inter_broker": "EXTERNAL"},
        {"kafka_version": "3.9.2"},
        {"listeners": [INTERNAL | {"advertised": {3: "[::1]", 1: "[::1]:9", 2: "::1"}}]},
    ],
)
def test_what_is_next_to_it_is_not(change: dict[str, Any]) -> None:
    assert read(**change).placement == "local"


def test_the_listeners_that_brokers_use() -> None:
    first, second = INTERNAL | {"scopes": "host"}, INTERNAL | {"name": "B", "port": 1}
    assert read(listeners=[first, second]).inter_broker_name == "B"
    assert read(inter_broker="EXTERNAL").inter_broker_name == "EXTERNAL"


@pytest.mark.parametrize(
    ("settings", "replicas", "min_insync"),
    [
        ({"brokers": 1}, 1, 1),
        ({"brokers": 2}, 2, 1),
        ({"brokers": 5}, 3, 2),
        ({"brokers": 5, "replication_factor": 5}, 5, 4),
        ({"replication_factor": 1}, 1, 1),
        ({"min_insync_replicas": 1}, 3, 1),
    ],
)
def test_replicas_follow_the_brokers(
    settings: dict[str, Any], replicas: int, min_insync: int
) -> None:
    spec = read(**settings)
    assert (spec.replicas, spec.min_insync) == (replicas, min_insync)


def test_the_nodes_of_a_cluster_are_its_brokers_and_then_its_controllers() -> None:
    assert read(brokers=5).node_ids == (1, 2, 3, 4, 5)
    assert list(read(brokers=5).controller_ids) == [1, 2, 3]
    apart = read(brokers=1, controllers={"mode": "separate", "count": 1})
    assert (apart.node_ids, apart.voters) == ((1, 10_001), 1)


@pytest.mark.parametrize(
    ("ids", "said"),
    [([1], "1"), ([1, 2], "1, 2"), ([1, 2, 3], "1 to 3"), ([1, 3, 4], "1, 3, 4"), ([], "")],
)
def test_ids_in_a_message(ids: list[int], said: str) -> None:
    assert shown_ids(ids) == said


def test_what_a_map_lacks_is_told_with_where_to_look() -> None:
    assert message_of(7) == (
        ": found 7\n  allowed: a map of settings with at least `placement`\n"
        "  fix: see the comments in stacks/Pulumi.local.yaml"
    )
    assert message_of({}) == ": placement: is missing\n  allowed: local, docker, aws"
    assert message_of({"placement": "moon"}) == (
        ": placement: found 'moon'\n  allowed: local, docker, aws"
    )
