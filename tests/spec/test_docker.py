"""`earshot:cluster` with placement docker: defaults, and one clear line per mistake."""

from __future__ import annotations

from typing import Any

import pytest

from earshot.errors import SpecError
from earshot.listeners.model import Scope
from earshot.spec.docker import DockerSpec
from earshot.spec.document import read_spec

INTERNAL = {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]}
OUTSIDE = {"name": "OUTSIDE", "port": 9092, "scopes": ["external"]}
TWO = [{"name": "a", "external": "a.example"}, {"name": "b", "external": "b.example"}]


def read(**rest: Any) -> DockerSpec:
    spec = read_spec({"placement": "docker", **rest}, "test")
    assert isinstance(spec, DockerSpec)
    return spec


def test_only_the_placement_must_be_said() -> None:
    spec = read()
    assert [(item.name, item.port, item.scopes) for item in spec.listeners] == [
        ("INTERNAL", 19092, (Scope.INTERNAL,)),
        ("HOST", 9092, (Scope.HOST,)),
        ("EXTERNAL", 39092, (Scope.HOST,)),
    ]
    assert [spec.name_of(id) for id in spec.node_ids] == ["kafka-1", "kafka-2", "kafka-3"]
    assert spec.image_name == "apache/kafka:4.1.1"
    assert spec.host_of == {1: 0, 2: 0, 3: 0}


def test_a_host_that_others_have_a_name_for_keeps_its_external_listeners() -> None:
    spec = read(hosts=[{"external": "kafka.example.com"}])
    assert spec.listeners[-1].scopes == (Scope.EXTERNAL,)


def test_a_listener_that_names_its_own_addresses_stays_external() -> None:
    named = OUTSIDE | {"advertised": {1: "kafka.example.com:9092"}}
    spec = read(brokers=1, listeners=[INTERNAL, named])
    assert spec.listeners[-1].scopes == (Scope.EXTERNAL,)


def test_ids_begin_where_the_file_says() -> None:
    spec = read(broker_ids=[0, 7], names={0: "kafka0"})
    assert (spec.brokers, list(spec.ids), spec.node_ids) == (2, [0, 7], (0, 7))
    assert [spec.name_of(id) for id in spec.ids] == ["kafka0", "kafka-7"]


def test_separate_controllers_have_names_of_their_own() -> None:
    spec = read(brokers=1, controllers={"mode": "separate"}, names={10_002: "quorum-b"})
    assert [spec.name_of(id) for id in spec.controller_ids] == [
        "controller-10001",
        "quorum-b",
        "controller-10003",
    ]


def test_the_version_is_that_of_the_image() -> None:
    assert read(image="apache/kafka:4.0.0").kafka_version == "4.0.0"
    assert read(image="registry.example/apache/kafka:4.0.0").kafka_version == "4.0.0"
    assert read(image="ours/kafka:7", kafka_version="4.0.0").image_name == "ours/kafka:7"


def test_several_hosts_share_brokers_in_turn() -> None:
    spec = read(hosts=TWO)
    assert spec.host_of == {1: 0, 2: 1, 3: 0}
    assert [item.name for item in spec.listeners] == ["INTERNAL", "EXTERNAL"]


def test_hosts_may_name_their_brokers() -> None:
    hosts = [TWO[0] | {"brokers": [3]}, TWO[1] | {"brokers": [1, 2]}]
    assert read(hosts=hosts).host_of == {3: 0, 1: 1, 2: 1}


@pytest.mark.parametrize(
    "engine", ["unix:///var/run/docker.sock", "ssh://ops@host-a", "ssh://h:2222", "tcp://h:2376"]
)
def test_engines(engine: str) -> None:
    assert read(hosts=[{"engine": engine}]).hosts[0].engine == engine


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"broker_ids": [0, 0]}, "broker_ids: found an id twice"),
        ({"brokers": 3, "broker_ids": [1]}, "broker_ids: found 1 for 3 broker(s)"),
        ({"broker_ids": [-1]}, "broker_ids: found -1; allowed: 0 to 10000"),
        ({"broker_ids": [10_001]}, "broker_ids: found 10001; allowed: 0 to 10000"),
        ({"names": {9: "x"}}, "names: found node 9; allowed: 1 to 3"),
        ({"names": {1: "kafka_1"}}, "names: 1: found 'kafka_1'; allowed: up to 63 letters"),
        ({"names": {1: "A", 2: "a"}}, "names: a stands 2 times"),
        ({"names": {1: "kafka-2"}}, "names: kafka-2 would be the name of 2 containers"),
        ({"names": ["kafka"]}, "names: found ['kafka']; allowed: a map"),
        ({"image": "bitnami/kafka:4.0.0"}, "earshot cannot run: it maps other variables"),
        ({"image": "wurstmeister/kafka"}, "earshot cannot run: it knows no KRaft"),
        ({"image": "not an image"}, "allowed: an image such as apache/kafka:4.1.1"),
        (
            {"image": "apache/kafka:4.0.0", "kafka_version": "4.1.1"},
            "image: found apache/kafka:4.0.0 with kafka_version 4.1.1; they differ",
        ),
        ({"image": "apache/kafka:3.7.0"}, "kafka_version: found '3.7.0'; allowed: 3.9.x"),
        ({"hosts": []}, "hosts: found []; allowed: at least one"),
        ({"hosts": [{"engine": "host:2375"}]}, "hosts[0].engine: found 'host:2375'"),
        ({"hosts": [{"engine": "tcp://host"}]}, "hosts[0].engine: found 'tcp://host'"),
        ({"hosts": [{"engine": "tcp://host:x"}]}, "hosts[0].engine: found 'tcp://host:x'"),
        ({"hosts": [{"engine": "unix://socket"}]}, "hosts[0].engine: found 'unix://socket'"),
        ({"hosts": [{"external": "a b"}]}, "hosts[0].external: host 'a b'"),
        ({"hosts": [{"cert_path": "/c"}]}, "cert_path: found '/c' for the engine nothing"),
        ({"hosts": [TWO[0], TWO[0]]}, "hosts: a stands 2 times"),
        ({"hosts": [TWO[0], {"name": "b"}]}, "hosts.b: has neither `external` nor `internal`"),
        (
            {"hosts": [TWO[0], {"name": "b", "internal": "b"}]},
            "hosts.b.external: is missing; a listener has the scope external",
        ),
        (
            {"hosts": TWO, "listeners": [INTERNAL, OUTSIDE | {"scopes": ["host"]}]},
            "listeners.OUTSIDE.scopes: found host with 2 Docker hosts",
        ),
        (
            {"hosts": [TWO[0] | {"brokers": [1]}, TWO[1] | {"brokers": [1, 2]}]},
            "hosts: their `brokers` are 1, 1, 2; allowed: each of 1 to 3 on one host",
        ),
        (
            {"listeners": [INTERNAL, OUTSIDE | {"published": {4: 9092}}]},
            "listeners.OUTSIDE.published: found broker 4; allowed: 1 to 3",
        ),
        (
            {"listeners": [INTERNAL, OUTSIDE | {"published": {1: 0}}]},
            "listeners.OUTSIDE.published[1]: found 0; allowed: a port",
        ),
        (
            {"hosts": TWO, "controllers": {"mode": "separate"}},
            "controllers.mode: found separate with several Docker hosts",
        ),
        ({"dns": ["ns.example.com"]}, "dns[0]: found 'ns.example.com'; allowed: an IP address"),
        ({"heap": "half"}, "heap: found 'half'; allowed: a JVM size"),
        ({"validator": {"base": ""}}, "validator.base: found ''; allowed: an image such as"),
        ({"hosts": [{"name": "A B"}]}, "found 'A B'; allowed: up to 30 small letters"),
        ({"hosts": [{}] * 101}, "allowed: 100 at most"),
        ({"hosts": [{"brokers": [True]}]}, "hosts[0].brokers[0]: found true; allowed: a whole"),
        ({"names": {"a": "b"}}, "names.a: found 'a'; allowed: a whole number"),
        ({"external_host": "x"}, "external_host: is no key that earshot knows"),
    ],
)
def test_a_mistake_is_named_with_its_key(settings: dict[str, Any], expected: str) -> None:
    with pytest.raises(SpecError) as caught:
        read(**settings)
    text = str(caught.value)
    assert expected in text
    assert "Input should" not in text and "String should" not in text and "Value error" not in text


def test_published_is_a_key_of_docker_alone() -> None:
    listeners = [INTERNAL | {"published": {1: 9092}}]
    with pytest.raises(SpecError, match="published: is no key that earshot knows"):
        read_spec({"placement": "local", "listeners": listeners}, "test")
