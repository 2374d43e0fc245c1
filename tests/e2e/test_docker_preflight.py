"""Preflight checks of engines and images, without a stack."""

import contextlib
import socket
from collections.abc import Iterator
from types import SimpleNamespace

import docker
import pytest
from earshot_pulumi.docker import host_ports, images, labels, preflight, throwaway
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.engine_objects import TargetStack
from earshot_pulumi.docker.throwaway import CommandFailed

from earshot.config.docker import DockerSpec
from earshot.config.document import read_spec
from earshot.errors import EarshotError
from earshot.listeners.render import server_properties
from earshot.placement.docker import plan_docker
from earshot.topology.container import PublishedPort
from tests.doubles.registry import REPOSITORY, registry
from tests.e2e.docker_engine import Engine

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture
def client(docker_engine: Engine) -> Iterator[docker.DockerClient]:
    """A client of the engine. The checks must leave no container."""
    with contextlib.closing(docker_engine.client()) as docker_client:
        yield docker_client
        remaining_containers = docker_client.containers.list(
            all=True, filters={"label": labels.THROWAWAY}
        )
        assert remaining_containers == []


def properties(**extra: str) -> dict[int, str]:
    """The properties of the template's three brokers, by node id."""
    spec = read_spec({"placement": "docker", "extra": extra}, "test")
    assert isinstance(spec, DockerSpec)
    plan = plan_docker(spec, "s").plan
    return {node.id: server_properties(plan, node) for node in plan.nodes}


def test_an_image_says_which_settings_its_kafka_refuses(
    client: docker.DockerClient, kafka_image: str
) -> None:
    settings_by_node = properties()
    settings_by_node[2] = properties(**{"num.io.threads": "abc"})[2]
    settings_by_node[3] = settings_by_node[3].replace("broker,controller", "broker")
    refusals = preflight.refusals(client, kafka_image, settings_by_node)
    assert (
        refusals[2]
        == "Invalid value abc for configuration num.io.threads: Not a number of type INT"
    )
    assert refusals[3].startswith("If process.roles contains just the 'broker' role, the node id 3")
    assert refusals.keys() == {2, 3}


@pytest.mark.combination
def test_an_image_without_kafka_says_nothing_about_settings(
    client: docker.DockerClient, client_image: str
) -> None:
    with pytest.raises(CommandFailed, match="it has no jars in the folders of Kafka images"):
        preflight.refusals(client, client_image, properties())


@pytest.mark.combination
def test_what_is_asked_has_no_network_and_no_environment_that_others_read(
    client: docker.DockerClient, client_image: str
) -> None:
    answer = throwaway.ask(
        client, client_image, ["bash", "-c", "ls /sys/class/net; echo $A"], environment={"A": "b"}
    )
    assert answer.split() == ["lo", "b"]
    with pytest.raises(CommandFailed, match="No such image"):
        throwaway.ask(client, "earshot-test/absent:none", ["true"])


@pytest.mark.combination
@pytest.mark.parametrize("shares_network", [True, False])
@pytest.mark.parametrize(
    ("family", "bound_host", "ipv6_only", "is_taken"),
    [
        (socket.AF_INET, "127.0.0.1", None, True),
        (socket.AF_INET, "127.0.0.2", None, False),
        (socket.AF_INET6, "::", 0, True),
        (socket.AF_INET6, "::", 1, False),
    ],
)
def test_a_port_of_the_host_is_taken_as_its_kernel_says(
    client: docker.DockerClient,
    kafka_image: str,
    docker_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    shares_network: bool,
    family: socket.AddressFamily,
    bound_host: str,
    ipv6_only: int | None,
    is_taken: bool,
) -> None:
    """Checked from this machine, and as if the engine were on another machine."""
    if not shares_network:
        monkeypatch.setattr(host_ports, "shares_network", lambda _: False)
    with socket.socket(family) as server:
        if ipv6_only is not None:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, ipv6_only)
        server.bind((bound_host, 0))
        server.listen()
        port = PublishedPort(9092, server.getsockname()[1], "127.0.0.1")
        docker_host = SimpleNamespace(engine=docker_engine.address, cert_path=None)
        port_holders = host_ports.holders(client, docker_host, kafka_image, [port], [])
        assert bool(port_holders) is is_taken
        published_port = PublishedPort(9092, port.host_port, bound_host)
        assert (
            host_ports.holders(client, docker_host, kafka_image, [port], [published_port]) == {}
        ), "Docker's own"


def wanted_image(engine: Engine, image: str) -> TargetStack:
    """A stack whose nodes have this ``image``, on a host that is called local."""
    hosts = [{"name": "local", "engine": engine.address}]
    spec = read_spec({"placement": "docker", "image": image, "hosts": hosts}, "test")
    assert isinstance(spec, DockerSpec)
    docker_plan = plan_docker(spec, "s")
    return TargetStack("s", "", "", docker_plan.plan, docker_plan.containers, docker_plan.hosts)


def test_a_missing_image_is_pulled_or_its_host_and_a_remedy_are_named(
    client: docker.DockerClient, docker_engine: Engine
) -> None:
    with registry("there") as address, Engines() as engines:
        published_image, missing_image = (
            wanted_image(docker_engine, f"{address}/{REPOSITORY}:{tag}")
            for tag in ("there", "none")
        )
        assert images.absent(engines, published_image) == ["local"]
        images.pull(engines, published_image, ["local"], print)
        try:
            assert images.absent(engines, published_image) == []
        finally:
            client.images.remove(f"{address}/{REPOSITORY}:there")
        with pytest.raises(EarshotError) as caught:
            images.pull(engines, missing_image, ["local"], print)
    message = str(caught.value)
    assert message.startswith(f"image {address}/{REPOSITORY}:none on Docker host local: is missing")
    assert "manifest unknown" in message and "fix: correct `image` or `kafka_version`" in message
