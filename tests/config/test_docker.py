"""`earshot:cluster` with placement docker: defaults, and one clear line per mistake."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from earshot.config.docker import DockerSpec
from earshot.config.document import read_spec
from earshot.errors import SpecError
from earshot.listeners.problems import describe, shown
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


def test_a_mistake_is_named_with_its_key() -> None:
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
    ]
    refusals_are_golden(
        mistakes, lambda it: str(raised(SpecError, read, **it)), MISTAKES / "docker.txt"
    )


def test_published_is_a_key_of_docker_alone() -> None:
    listeners = [INTERNAL | {"published": {1: 9092}}]
    with pytest.raises(SpecError, match="published: is no key that earshot knows"):
        read_spec({"placement": "local", "listeners": listeners}, "test")


def refused(**settings: Any) -> list[str]:
    """The problems of a cluster that cannot be read, one line each."""
    document = {"placement": "docker", **settings}
    error = raised(ValidationError, DockerSpec.model_validate, document)
    return describe(error, DockerSpec, document)


def test_what_is_not_said_of_containers() -> None:
    spec = read()
    assert (spec.heap, spec.data, spec.dns, spec.cluster_id) == ("512m", "keep", (), None)
    assert spec.validator.base == "debian:bookworm-slim"
    (host,) = spec.hosts
    assert (host.name, host.engine, host.cert_path, host.brokers) == ("local", None, None, None)
    assert host.between_hosts is None
    empty: dict[str, Any] = {"engine": None, "cert_path": None, "external": "x"}
    assert read(image=None, hosts=[empty]).image_name == "apache/kafka:4.1.1"


def test_a_spec_that_was_read_is_taken_as_it_is() -> None:
    spec = read()
    assert DockerSpec.model_validate(spec) is spec
    with pytest.raises(ValidationError):
        DockerSpec.model_validate("docker")


@pytest.mark.parametrize(
    "image", ["apache/kafka:latest", "apache/kafka", "ours/kafka:4.0.0", "apache/kafka:4.0.0-rc1"]
)
def test_an_image_that_tells_no_version_of_kafka_goes_with_any(image: str) -> None:
    assert read(image=image).kafka_version == "4.1.1"
    assert read(image=image, kafka_version="4.0.1").kafka_version == "4.0.1"


def test_an_image_may_say_the_version_again() -> None:
    spec = read(image="apache/kafka:4.0.0", kafka_version="4.0.0")
    assert (spec.image_name, spec.kafka_version) == ("apache/kafka:4.0.0", "4.0.0")
    assert refused(image="apache/kafka:4.0.0", kafka_version="4.1.1") == [
        "image: found apache/kafka:4.0.0 with kafka_version 4.1.1; they differ"
    ]
    assert refused(image="bitnami/kafka:4.0.0") == [
        (
            "image: found 'bitnami/kafka:4.0.0', which earshot cannot run: it maps other "
            "variables; allowed: apache/kafka, confluentinc/cp-kafka, or an image that takes their "
            "variables"
        )
    ]


def test_a_program_may_hand_over_tuples() -> None:
    assert len(read(hosts=tuple(TWO)).listeners) == 2
    assert read(broker_ids=(5, 7)).brokers == 2


def test_what_the_file_says_goes_before_what_is_usual_for_several_hosts() -> None:
    named = read(hosts=TWO, listeners=[INTERNAL, OUTSIDE])
    assert [item.name for item in named.listeners] == ["INTERNAL", "OUTSIDE"]
    assert named.listeners[1].scopes == (Scope.EXTERNAL,)
    assert read(broker_ids=[0, 7], brokers=2).brokers == 2
    assert len(read(hosts=TWO[:1]).listeners) == 3


def test_the_least_and_the_greatest_id_and_the_longest_names() -> None:
    spec = read(broker_ids=[0, 10_000], names={0: "a" * 63, 10_000: "b"})
    assert [spec.name_of(id) for id in spec.ids] == ["a" * 63, "b"]
    assert read(hosts=[{"name": "a" * 30}]).hosts[0].name == "a" * 30
    assert refused(names={1: "a" * 64}) == [
        (
            f"names: 1: found {shown('a' * 64)}; allowed: up to 63 letters, digits, hyphens and "
            "dots, beginning with a letter or digit"
        )
    ]
    assert refused(hosts=[{"name": "a" * 31}]) == [
        (
            f"hosts.{'a' * 31}.name: found '{'a' * 31}'; "
            "allowed: up to 30 small letters, digits and hyphens"
        )
    ]


def test_a_mistake_is_told_with_all_that_mends_it() -> None:
    mistakes: list[Any] = [
        {"brokers": 3, "broker_ids": [1, 1]},
        {"broker_ids": [-1]},
        {"names": {1: "kafka-2"}},
        {"names": {1: "A", 2: "a", 3: "b"}},
        {"hosts": [TWO[0], TWO[1], TWO[0]]},
        {"hosts": [TWO[0] | {"brokers": [1]}, TWO[1] | {"brokers": [2]}]},
        {"hosts": TWO, "controllers": {"mode": "separate"}},
        {"hosts": [TWO[0], {"name": "b"}], "listeners": [INTERNAL]},
        {"hosts": [{"name": "a", "internal": "a"}, TWO[1]], "listeners": [INTERNAL, OUTSIDE]},
        {"hosts": TWO, "listeners": [INTERNAL, OUTSIDE | {"scopes": ["host"]}]},
        {"dns": [5]},
        {"hosts": [{"external": 5}]},
        {"validator": {"base": "No Image"}},
    ]
    refusals_are_golden(mistakes, lambda it: refused(**it), MISTAKES / "docker_remedies.txt")


def test_hosts_without_external_listeners_need_internal_names_alone() -> None:
    hosts = [{"name": "a", "internal": "a"}, {"name": "b", "internal": "b"}]
    spec = read(hosts=hosts, listeners=[INTERNAL])
    assert spec.host_of == {1: 0, 2: 1, 3: 0}
    assert read(dns=["10.0.0.2", "2001:DB8::1"]).dns == ("10.0.0.2", "2001:db8::1")


def test_brokers_and_controllers_are_each_dealt_out_from_the_first_host() -> None:
    spec = read(hosts=[{}], controllers={"mode": "separate"})
    assert spec.host_of == dict.fromkeys((1, 2, 3, 10_001, 10_002, 10_003), 0)
    hosts = [TWO[0], TWO[1] | {"brokers": [1, 2, 3]}]
    assert read(hosts=hosts).host_of == {1: 1, 2: 1, 3: 1}


def test_a_listener_that_names_some_of_its_addresses_is_narrowed() -> None:
    named = OUTSIDE | {"advertised": {1: "kafka.example.com:9092"}}
    spec = read(brokers=2, listeners=[INTERNAL, named])
    assert spec.listeners[-1].scopes == (Scope.HOST,)
