"""`earshot:cluster` with placement docker: defaults, and one clear line per mistake."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from earshot.config.docker import DockerSpec
from earshot.config.document import read_spec
from earshot.errors import SpecError
from earshot.listeners.terms import Scope
from tests.goldens import refusals_are_golden
from tests.raised import raised

MISTAKES = Path(__file__).parent / "mistakes"
"""The texts of refusals, which `EARSHOT_WRITE_GOLDENS=1` writes."""

INTERNAL = {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]}
OUTSIDE = {"name": "OUTSIDE", "port": 9092, "scopes": ["external"]}
TWO = [{"name": "a", "external": "a.example"}, {"name": "b", "external": "b.example"}]


def read(**rest: Any) -> DockerSpec:
    spec = read_spec({"placement": "docker", **rest}, "test")
    assert isinstance(spec, DockerSpec)
    return spec


def test_only_the_placement_is_required() -> None:
    spec = read()
    assert [(listener.name, listener.port, listener.scopes) for listener in spec.listeners] == [
        ("INTERNAL", 19092, (Scope.INTERNAL,)),
        ("HOST", 9092, (Scope.HOST,)),
        ("EXTERNAL", 39092, (Scope.HOST,)),
    ]
    assert [spec.name_of(id) for id in spec.node_ids] == ["kafka-1", "kafka-2", "kafka-3"]
    assert spec.image_name == "apache/kafka:4.1.1"
    assert spec.host_of == {1: 0, 2: 0, 3: 0}
    assert (spec.heap, spec.data, spec.dns, spec.cluster_id) == ("512m", "keep", (), None)
    assert spec.validator.base == "debian:bookworm-slim"
    (host,) = spec.hosts
    assert (host.name, host.engine, host.cert_path, host.brokers) == ("local", None, None, None)
    assert host.between_hosts is None
    empty: dict[str, Any] = {"engine": None, "cert_path": None, "external": "x"}
    assert read(image=None, hosts=[empty]).image_name == "apache/kafka:4.1.1"
    assert DockerSpec.model_validate(spec) is spec
    with pytest.raises(ValidationError):
        DockerSpec.model_validate("docker")


ADVERTISED = {"listeners": [INTERNAL, OUTSIDE | {"advertised": {1: "kafka.example.com:9092"}}]}


@pytest.mark.parametrize(
    ("settings", "scope"),
    [
        ({"hosts": [{"external": "kafka.example.com"}]}, Scope.EXTERNAL),
        ({"brokers": 1, **ADVERTISED}, Scope.EXTERNAL),
        ({"brokers": 2, **ADVERTISED}, Scope.HOST),
    ],
)
def test_an_external_listener_needs_a_name_for_every_broker(
    settings: dict[str, Any], scope: Scope
) -> None:
    assert read(**settings).listeners[-1].scopes == (scope,)


def test_the_file_may_have_ids_and_names() -> None:
    spec = read(broker_ids=[0, 7], names={0: "kafka0"})
    assert (spec.brokers, list(spec.ids), spec.node_ids) == (2, [0, 7], (0, 7))
    assert [spec.name_of(id) for id in spec.ids] == ["kafka0", "kafka-7"]
    spec = read(brokers=1, controllers={"mode": "separate"}, names={10_002: "quorum-b"})
    names = [spec.name_of(id) for id in spec.controller_ids]
    assert names == ["controller-10001", "quorum-b", "controller-10003"]
    spec = read(broker_ids=[0, 10_000], names={0: "a" * 63, 10_000: "b"})
    assert [spec.name_of(id) for id in spec.ids] == ["a" * 63, "b"]
    # a program may pass tuples
    assert len(read(hosts=tuple(TWO)).listeners) == 2
    assert read(broker_ids=(5, 7)).brokers == read(broker_ids=[0, 7], brokers=2).brokers == 2


@pytest.mark.parametrize(("image", "given", "version"), [
    ("apache/kafka:4.0.0", None, "4.0.0"),
    ("apache/kafka:4.0.0", "4.0.0", "4.0.0"),
    ("registry.example/apache/kafka:4.0.0", None, "4.0.0"),
    *((image, given, given or "4.1.1") for image in ("apache/kafka:latest", "apache/kafka",
                                                     "ours/kafka:4.0.0", "ours/kafka:7") for given
      in (None, "4.0.1")),
    ("apache/kafka:4.0.0-rc1", None, "4.1.1"),
    ("apache/kafka:4.0.0-rc1", "4.0.1", "4.0.1"),
])  # fmt: skip
def test_the_version_of_kafka_is_that_of_the_image_if_it_has_one(
    image: str, given: str | None, version: str
) -> None:
    spec = read(image=image, **({"kafka_version": given} if given else {}))
    assert (spec.image_name, spec.kafka_version) == (image, version)


@pytest.mark.parametrize(("settings", "host_of"), [
    ({"hosts": TWO}, {1: 0, 2: 1, 3: 0}),
    ({"hosts": [TWO[0] | {"brokers": [3]}, TWO[1] | {"brokers": [1, 2]}]}, {3: 0, 1: 1, 2: 1}),
    ({"hosts": [TWO[0], TWO[1] | {"brokers": [1, 2, 3]}]}, {1: 1, 2: 1, 3: 1}),
    # without external listeners, internal names are enough
    ({"hosts": [{"name": "a", "internal": "a"}, {"name": "b", "internal": "b"}],
      "listeners": [INTERNAL]}, {1: 0, 2: 1, 3: 0}),
    ({"hosts": [{}], "controllers": {"mode": "separate"}},
     dict.fromkeys((1, 2, 3, 10_001, 10_002, 10_003), 0)),
])  # fmt: skip
def test_nodes_are_distributed_over_the_hosts(
    settings: dict[str, Any], host_of: dict[int, int]
) -> None:
    assert read(**settings).host_of == host_of


def test_listeners_of_several_hosts() -> None:
    assert [listener.name for listener in read(hosts=TWO).listeners] == ["INTERNAL", "EXTERNAL"]
    assert len(read(hosts=TWO[:1]).listeners) == 3
    spec = read(hosts=TWO, listeners=[INTERNAL, OUTSIDE])
    assert [listener.name for listener in spec.listeners] == ["INTERNAL", "OUTSIDE"]
    assert spec.listeners[1].scopes == (Scope.EXTERNAL,)


def test_each_mistake_has_one_error_with_its_key() -> None:
    mistakes: list[Any] = [
        {"broker_ids": [0, 0]},
        {"brokers": 3, "broker_ids": [1]},
        {"broker_ids": [-1]},
        {"broker_ids": [10_001]},
        {"names": {9: "x"}},
        {"names": {1: "kafka_1"}},
        {"names": {1: "A", 2: "a"}},
        {"names": {1: "kafka-2"}},
        {"names": ["kafka"]},
        {"image": "bitnami/kafka:4.0.0"},
        {"image": "wurstmeister/kafka"},
        {"image": "not an image"},
        {"image": "apache/kafka:4.0.0", "kafka_version": "4.1.1"},
        {"image": "apache/kafka:3.7.0"},
        {"hosts": []},
        {"hosts": [{"engine": "host:2375"}]},
        {"hosts": [{"engine": "tcp://host"}]},
        {"hosts": [{"engine": "tcp://host:x"}]},
        {"hosts": [{"engine": "unix://socket"}]},
        {"hosts": [{"external": "a b"}]},
        {"hosts": [{"cert_path": "/c"}]},
        {"hosts": [TWO[0], TWO[0]]},
        {"hosts": [TWO[0], {"name": "b"}]},
        {"hosts": [TWO[0], {"name": "b", "internal": "b"}]},
        {"hosts": TWO, "listeners": [INTERNAL, OUTSIDE | {"scopes": ["host"]}]},
        {"hosts": [TWO[0] | {"brokers": [1]}, TWO[1] | {"brokers": [1, 2]}]},
        {"listeners": [INTERNAL, OUTSIDE | {"published": {4: 9092}}]},
        {"listeners": [INTERNAL, OUTSIDE | {"published": {1: 0}}]},
        {"hosts": TWO, "controllers": {"mode": "separate"}},
        {"dns": ["ns.example.com"]},
        {"heap": "half"},
        {"validator": {"base": ""}},
        {"hosts": [{"name": "A B"}]},
        {"hosts": [{}] * 101},
        {"hosts": [{"brokers": [True]}]},
        {"names": {"a": "b"}},
        {"external_host": "x"},
        {"brokers": 3, "broker_ids": [1, 1]},
        {"names": {1: "A", 2: "a", 3: "b"}},
        {"names": {1: "a" * 64}},
        {"hosts": [{"name": "a" * 31}]},
        {"hosts": [TWO[0], TWO[1], TWO[0]]},
        {"hosts": [TWO[0] | {"brokers": [1]}, TWO[1] | {"brokers": [2]}]},
        {"hosts": [TWO[0], {"name": "b"}], "listeners": [INTERNAL]},
        {"hosts": [{"name": "a", "internal": "a"}, TWO[1]], "listeners": [INTERNAL, OUTSIDE]},
        {"dns": [5]},
        {"hosts": [{"external": 5}]},
        {"validator": {"base": "No Image"}},
        {"hosts": [{"engine": "ssh://host", "cert_path": "/certs"}]},
        *({"hosts": {"aws": {"host_zones": zones}}} for zones in (True, 5, 1.5)),
        *(
            {"hosts": [{"engine": engine}]}
            for engine in (
                *("unix:///", "unix://host/socket", "unix:socket", "unix:///a b"),
                *("unix:///a\u2028b", "ssh://host/path", "ssh://", "tcp://host:1/path"),
                *("tcp://:2376", "tcp://host:70000", "http://host:2376", ""),
            )
        ),
    ]
    refusals_are_golden(
        mistakes, lambda case: str(raised(SpecError, read, **case)), MISTAKES / "docker.txt"
    )


@pytest.mark.parametrize(
    "engine",
    [
        *("unix:///var/run/docker.sock", "unix:///s", "ssh://ops@host-a", "ssh://h:2222"),
        *("ssh://host/", "tcp://h:2376", "tcp://host:1/"),
    ],
)
def test_engines(engine: str) -> None:
    assert read(hosts=[{"engine": engine}]).hosts[0].engine == engine


def test_names_and_certificates_of_hosts() -> None:
    host = {"engine": "tcp://host:2376", "cert_path": "/certs", "name": "a" * 30}
    (spec,) = read(hosts=[host]).hosts
    assert (spec.cert_path, spec.name) == ("/certs", "a" * 30)
    hosts = [TWO[0] | {"internal": "a.local"}, TWO[1]]
    assert [host.between_hosts for host in read(hosts=hosts).hosts] == ["a.local", "b.example"]
    many = [{"name": f"h{number}", "external": "x"} for number in range(100)]
    assert len(read(hosts=many).hosts) == 100
    assert read(dns=["10.0.0.2", "2001:DB8::1"]).dns == ("10.0.0.2", "2001:db8::1")


def test_published_is_a_key_of_docker_alone() -> None:
    listeners = [INTERNAL | {"published": {1: 9092}}]
    with pytest.raises(SpecError, match="published: is no key that earshot knows"):
        read_spec({"placement": "local", "listeners": listeners}, "test")
