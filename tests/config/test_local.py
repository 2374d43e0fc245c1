from datetime import date
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


def test_only_the_placement_is_required() -> None:
    spec = read()
    assert (spec.brokers, spec.kafka_version, spec.gate) == (3, DEFAULT_KAFKA, "required")
    assert [(listener.name, listener.port, listener.scopes) for listener in spec.listeners] == [
        ("INTERNAL", 19092, (Scope.INTERNAL,)),
        ("EXTERNAL", 9092, (Scope.HOST,)),
    ]
    assert spec.inter_broker_name == "INTERNAL"
    assert (spec.voters, spec.replicas, spec.min_insync) == (3, 3, 2)
    assert (spec.heap, spec.data, spec.external_host, spec.extra) == ("256m", "keep", None, {})
    controllers = spec.controllers
    assert (controllers.mode, controllers.count) == ("combined", None)
    assert (controllers.name, controllers.port) == ("CONTROLLER", 29092)
    assert controllers.protocol is spec.listeners[0].protocol is Protocol.PLAINTEXT
    assert (spec.validation.records, spec.validation.deadline) == (3000, 300)
    assert read(external_host=None, inter_broker=None, controllers={"count": None}) == spec
    with pytest.raises(ValueError, match="frozen"):
        spec.brokers = 5
    assert isinstance(spec.listeners[0], ListenerSpec)


@pytest.mark.parametrize(("document", "expected"), [
    (None, "found nothing"),
    ("", "found ''"),
    ([], "found []"),
    ("\x00\x89PNG\r\n", r"found '\x00\x89PNG\r\n'"),
    (b"\xff\xfe", r"found b'\xff\xfe'"),
    (7, (": found 7\n  allowed: a map of settings with at least `placement`\n"
         "  fix: see the comments in stacks/Pulumi.local.yaml")),
    ({}, ": placement: is missing\n  allowed: local, docker, aws"),
    ({"secure": "v1:abc"}, "is a secret"),
    ({"placement": "moon"}, ": placement: found 'moon'\n  allowed: local, docker, aws"),
    ({"placement": None}, "placement: found nothing"),
    ({"placement": ["local"]}, "placement: found ['local']"),
])  # fmt: skip
def test_a_document_that_is_no_cluster_is_refused(document: object, expected: str) -> None:
    message = message_of(document)
    assert message == expected if expected.startswith(":") else expected in message


def test_each_mistake_has_one_error_with_its_key() -> None:
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
        {"client_config": 3.0},
        {"client_config": "a\0b"},
        {"client_config": "c.properties", "security": {}},
        {"listeners": [{"port": 19092, "scopes": ["internal"]}]},
        {"listeners": [{"name": "INTERNAL", "scopes": ["internal"]}]},
        {"listeners": [{"name": "INTERNAL", "port": 19092}]},
        {"listeners": [INTERNAL, INTERNAL | {"name": "EXTERNAL"}]},
        {"listeners": [INTERNAL | {"port": 0, "protocol": "TLS"}], "heap": "x", "brokerz": 1},
        *(
            {"extra": {key: "x"}}
            for key in (
                *("listeners", "advertised.listeners", "node.id", "process.roles"),
                *("Log.Dirs", "min.insync.replicas"),
            )
        ),
        *({"extra": {name: "1"}} for name in ("a b", "", 7)),
        *(
            {"extra": {"a": value}}
            for value in (None, ["x"], "x\ny", "x\u2028y", " x", "\ud800", date(2025, 1, 1))
        ),
        {"controllers": {"name": "SSL"}},
        {"brokers": 1, "controllers": {"count": 3}},
        {"kafka_version": "5.0.0"},
        {"heap": "0m"},
    ]
    refusals_are_golden(
        mistakes, lambda case: message_of({"placement": "local"} | case), MISTAKES / "local.txt"
    )


def test_each_mistake_of_a_listener_has_its_name() -> None:
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
        mistakes, lambda case: message_of(with_listener(**case)), MISTAKES / "local_listener.txt"
    )


def test_extra_takes_numbers_truth_values_and_settings_of_one_listener() -> None:
    texts = {"listener.name.internal.ssl.client.auth": "required", "empty": ""}
    spec = read(extra={"num.partitions": 6, "auto.create.topics.enable": False, **texts})
    assert spec.extra == {"num.partitions": "6", "auto.create.topics.enable": "false", **texts}


def test_other_types_of_yaml_and_pulumi_are_converted() -> None:
    assert read_spec(yaml.safe_load("{placement: local, gate: off}"), SOURCE).gate == "off"
    spec = read(brokers=1.0, listeners=[INTERNAL | {"port": 9092.0}])
    assert (spec.brokers, spec.listeners[0].port) == (1, 9092)
    for broker in (2, "2"):
        listener = INTERNAL | {"advertised": {broker: "h:1"}}
        assert read(listeners=[listener]).listeners[0].advertised == {2: "h:1"}


def test_scopes_are_one_or_a_list_from_the_narrowest_to_the_widest() -> None:
    spec = read(listeners=[INTERNAL | {"scopes": ["external", "internal"]}])
    assert spec.listeners[0].scopes == (Scope.INTERNAL, Scope.EXTERNAL)
    assert read(listeners=[INTERNAL | {"scopes": "internal"}]).listeners[0].scopes == ("internal",)
    spec = read(external_host="kafka.example.org")
    scopes = [listener.scopes for listener in spec.listeners]
    assert scopes == [(Scope.INTERNAL,), (Scope.EXTERNAL,)]


@pytest.mark.parametrize(
    ("settings", "voters", "replicas", "min_insync"),
    [
        ({"brokers": 1}, 1, 1, 1),
        ({"brokers": 2}, 1, 2, 1),
        ({"brokers": 5}, 3, 3, 2),
        ({"brokers": 9}, 3, 3, 2),
        ({"brokers": 1, "controllers": {"mode": "separate"}}, 3, 1, 1),
        ({"brokers": 5, "replication_factor": 5}, 3, 5, 4),
        ({"replication_factor": 1}, 3, 1, 1),
        ({"min_insync_replicas": 1}, 3, 3, 1),
    ],
)
def test_voters_and_replicas_follow_the_brokers(
    settings: dict[str, Any], voters: int, replicas: int, min_insync: int
) -> None:
    spec = read(**settings)
    assert (spec.voters, spec.replicas, spec.min_insync) == (voters, replicas, min_insync)


def test_the_nodes_of_a_cluster_are_its_brokers_and_then_its_controllers() -> None:
    assert read(brokers=5).node_ids == (1, 2, 3, 4, 5)
    assert list(read(brokers=5).controller_ids) == [1, 2, 3]
    separate = read(brokers=1, controllers={"mode": "separate", "count": 1})
    assert (separate.node_ids, separate.voters) == ((1, 10_001), 1)


@settings(max_examples=60)
@given(documents())
def test_whatever_may_be_written_is_read(document: dict[str, Any]) -> None:
    spec = read_spec(document, SOURCE)
    names = [listener["name"] for listener in document["listeners"]]
    assert [listener.name for listener in spec.listeners] == names
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
def test_the_text_of_pulumi_is_a_json_map(text: str | None, observed: str) -> None:
    assert read_spec_text('{"placement": "local", "brokers": 1}', SOURCE).brokers == 1
    assert str(raised(SpecError, read_spec_text, text, SOURCE)).startswith(f"{SOURCE}: {observed}")


@pytest.mark.parametrize("cluster", [{"placement": "local"}, {"placement": "docker"}, document()])
def test_extra_refuses_secrets_in_clear_on_every_placement(cluster: dict[str, Any]) -> None:
    extra = {
        "listener.name.external.ssl.key.password": "hunter2",
        "sasl.jaas.config": 'x.PlainLoginModule required password="hunter2";',
        "ssl.truststore.password": "hünter2",
        "ssl.keystore.password": "${file:/run/kafka/tls:password}",
    }
    message = message_of({**cluster, "extra": extra})
    allowed = (
        "would hold a secret in clear; allowed: a reference that the broker itself resolves "
        "(`${file:/path:key}`, with `config.providers`), or a file that only the broker reads: "
        "a PEM key store needs no password"
    )
    assert message == ":" + "".join(f"\n  - extra: {key} {allowed}" for key in list(extra)[:3])


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
    def settings(value: int) -> dict[str, Any]:
        return {key: {name: value}} if key else {name: value}

    for value in (least, most):
        spec = read(**({"brokers": 9} if key == "controllers" else {}), **settings(value))
        assert getattr(getattr(spec, key) if key else spec, name) == value
    where = f"{key}.{name}" if key else name
    for value, allowed in ((least - 1, f"{least} or more"), (most + 1, f"{most} or less")):
        message = message_of({"placement": "local", **settings(value)})
        assert f"{where}: found {value}; allowed: {allowed}" in message


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
def test_settings_next_to_a_mistake_are_accepted(change: dict[str, Any]) -> None:
    assert read(**change).placement == "local"


def test_the_listeners_that_brokers_use() -> None:
    first, second = INTERNAL | {"scopes": "host"}, INTERNAL | {"name": "B", "port": 1}
    assert read(listeners=[first, second]).inter_broker_name == "B"
    assert read(inter_broker="EXTERNAL").inter_broker_name == "EXTERNAL"


@pytest.mark.parametrize(
    ("ids", "text"),
    [([1], "1"), ([1, 2], "1, 2"), ([1, 2, 3], "1 to 3"), ([1, 3, 4], "1, 3, 4"), ([], "")],
)
def test_ids_in_a_message(ids: list[int], text: str) -> None:
    assert shown_ids(ids) == text
