from __future__ import annotations

from typing import Any

import pytest

from earshot.sources.docker_container import property_path, read_container, read_service, words
from earshot.topology.container import MOUNTED, Container, JoinedNetwork, PublishedPort


def test_the_inputs_of_a_docker_container_are_read() -> None:
    container = read_container(
        {
            "name": "kafka1",
            "image": "apache/kafka:4.1.1",
            "hostname": "inner",
            "envs": ["KAFKA_NODE_ID=1", "X=a=b"],
            "ports": [
                {"internal": 9092.0, "external": 39092.0, "ip": "127.0.0.1"},
                {"internal": 9093.0, "external": 0.0, "protocol": "udp"},
            ],
            "networksAdvanced": [{"name": "net", "aliases": ["a", "b"], "ipv4Address": "10.0.0.5"}],
            "volumes": [{"volumeName": "v", "containerPath": "/data"}],
            "mounts": [{"target": "/m", "type": "bind"}],
            "uploads": [{"file": "/mnt/shared/config/server.properties", "content": "x"}],
        }
    )
    assert container == Container(
        name="kafka1",
        image="apache/kafka:4.1.1",
        hostname="inner",
        networks=(JoinedNetwork("net", ("a", "b"), "10.0.0.5"),),
        published=(PublishedPort(9092, 39092, "127.0.0.1"), PublishedPort(9093, None, "", "udp")),
        env={"KAFKA_NODE_ID": "1", "X": "a=b"},
        mounts=("/data", "/m", "/mnt/shared/config/server.properties"),
        unknown=(MOUNTED,),
    )
    assert container.has_file


def test_an_address_that_the_provider_filled_in_is_ignored() -> None:
    port = {"internal": 9092.0, "external": 1.0, "ip": "0.0.0.0", "protocol": "tcp"}
    ports = [
        {**port, "__defaults": ["ip", "protocol"]},
        {**port, "__defaults": ["protocol"]},
        {**port, "__defaults": None},
        port,
    ]
    published = read_container({"ports": ports}).published
    assert [port.host_ip for port in published] == ["", "0.0.0.0", "0.0.0.0", "0.0.0.0"]


PORT = {"ports": [{"internal": 1, "external": 1}]}
PUBLISHED = (PublishedPort(1, 1),)


@pytest.mark.parametrize(("inputs", "networks", "published"), [
    ({"networkMode": ""}, (), PUBLISHED),
    ({"networkMode": "bridge"}, (), PUBLISHED),
    ({"networkMode": "host"}, (), ()),
    ({"networkMode": "none"}, (), PUBLISHED),
    ({"networkMode": "container:other"}, (), PUBLISHED),
    ({"networkMode": "net"}, (JoinedNetwork("net"),), PUBLISHED),
    # networks outweigh the mode
    ({"networksAdvanced": [{"name": "n"}], "networkMode": "other"}, (JoinedNetwork("n"),),
     PUBLISHED),
])  # fmt: skip
def test_a_network_may_be_the_mode(
    inputs: dict[str, Any],
    networks: tuple[JoinedNetwork, ...],
    published: tuple[PublishedPort, ...],
) -> None:
    container = read_container({"name": "k", **PORT, **inputs})
    assert (container.networks, container.published) == (networks, published)


def test_the_name_may_be_the_resource_s_and_the_image_that_of_a_note() -> None:
    inputs = {"image": "sha256:00", "envs": ["EARSHOT_IMAGE=apache/kafka:4.1.1"]}
    container = read_container(inputs, "k")
    assert (container.name, container.image) == ("k", "apache/kafka:4.1.1")


@pytest.mark.parametrize(
    ("inputs", "unknown"),
    [
        (None, ("its inputs",)),
        ({"envs": None, "ports": None, "networksAdvanced": None},
         ("variables", "ports", "networks")),
        ({"networkMode": None, "name": None}, ("the network mode", "its name")),
        ({"networksAdvanced": [{"name": "n", "ipv4Address": None}]}, ("ipv4Address on network n",)),
        ({"networksAdvanced": [None, {"aliases": ["a"]}, {"name": None}]}, ("a network",)),
        ({"networksAdvanced": [{"name": "n", "aliases": None}]}, ("aliases on network n",)),
        ({"networksAdvanced": [{"name": "n", "aliases": ["a", None]}]}, ("aliases on network n",)),
        ({"ports": [None, {"external": 1}]}, ("ports",)),
        ({"ports": [{"internal": 9092.0, "external": None}]}, ("ports",)),
        ({"hostname": None}, ("its hostname",)),
        ({"envs": ["A=b", None]}, ("variables",)),
        ({"envs": {"A": None}}, ()),
        ({"image": None}, ()),
    ],
)  # fmt: skip
def test_unknown_inputs_are_named(inputs: dict[str, Any] | None, unknown: tuple[str, ...]) -> None:
    assert read_container(inputs).unknown == unknown


def test_words_of_the_command() -> None:
    assert words({"entrypoints": ["sh"], "command": ["-c", "x"]}) == ("sh", "-c", "x")
    assert words({"command": ["kafka-topics", None]}) == ("kafka-topics", "${WORD}")
    assert words({"command": None}) == ("${WORD}",)


def test_a_mount_that_is_not_known_yet_is_passed_over() -> None:
    volumes = [None, {"containerPath": None}, {"containerPath": "/data"}, {}]
    assert read_container({"volumes": volumes, "mounts": None}).mounts == ("/data",)


def test_known_parts_of_unknown_inputs_are_read() -> None:
    container = read_container(
        {
            "name": None,
            "image": None,
            "envs": {"A": "b", "C": None},
            "ports": [None, {"internal": 1.0, "external": None, "ip": None, "protocol": None}],
            "networksAdvanced": [{"name": None}, {"name": "n", "aliases": ["a", None]}],
        },
        "k",
    )
    assert container == Container(
        name="k",
        networks=(JoinedNetwork("n", ("a",)),),
        published=(PublishedPort(1, None),),
        env={"A": "b", "C": "${C}"},
        unknown=("ports", "a network", "aliases on network n", "its name"),
    )


def test_a_container_is_read_as_a_service_of_a_deployment() -> None:
    service = read_service(
        {
            "name": "kafka1",
            "image": "apache/kafka:4.1.1",
            "envs": ["A=b"],
            "command": ["/etc/kafka/docker/run"],
            "hosts": [{"host": "Proxy", "ip": "10.0.0.9"}, {"host": "later", "ip": None}],
            "networksAdvanced": [{"name": "bridge"}, {"name": "n"}],
            "uploads": [
                {"file": "/mnt/shared/config/server.properties", "content": "listeners=A://:1"}
            ],
        },
        "k",
    )
    assert service.name == "kafka1" and service.command == ("/etc/kafka/docker/run",)
    assert service.properties == "listeners=A://:1"
    assert service.container.networks == (JoinedNetwork("n"),), "names mean nothing on the bridge"
    assert service.container.extra_hosts == {"proxy": "10.0.0.9", "later": "${WORD}"}
    assert service.container.unknown == ()


@pytest.mark.parametrize(
    ("inputs", "env", "unknown"),
    [
        ({"envs": {"A": "b", "C": None}}, {"A": "b", "C": "${C}"}, ()),
        ({"envs": ["A=b", None]}, {"A": "b"}, ("variables",)),
        ({"envs": None}, {}, ("variables",)),
        ({"ports": [{"internal": 1, "external": None}]}, {}, ("ports",)),
        ({"networksAdvanced": None, "hostname": None}, {}, ("networks", "its hostname")),
    ],
)
def test_unknown_inputs_are_unknown_in_a_service(
    inputs: dict[str, Any], env: dict[str, str], unknown: tuple[str, ...]
) -> None:
    container = read_service(inputs, "k").container
    assert (dict(container.env), container.unknown) == (env, unknown)


@pytest.mark.parametrize(
    "uploads",
    [None, [None], [{"file": None}], [{"file": "/x.sh", "content": "listeners=A://:1"}],
     [{"file": "/a.properties", "content": None}], [{"file": "/a.properties", "content": "a=b"}]],
)  # fmt: skip
def test_only_a_properties_file_of_a_broker_is_read(uploads: Any) -> None:
    assert read_service({"uploads": uploads}).properties == ""


@pytest.mark.parametrize(
    ("names", "path"),
    [
        (("advertised.listeners",), "envs[1]"),
        (("node.id", "listeners"), "envs[2]"),
        (("KAFKA_PORT",), "envs[3]"),
        (("ports",), "ports"),
        (("image",), ""),
        (("listeners", "ports"), "envs[2]"),
        ((), ""),
    ],
)
def test_a_finding_is_placed_at_its_property(names: tuple[str, ...], path: str) -> None:
    envs = [None, "KAFKA_ADVERTISED_LISTENERS=A://a:1", "KAFKA_CFG_LISTENERS=A://:1", "KAFKA_PORT="]
    inputs = {"envs": envs, "ports": [{"internal": 1}], "image": None}
    assert property_path(inputs, names) == path
