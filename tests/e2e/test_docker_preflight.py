"""What engines and images are asked before a broker is touched; no stack is needed for that."""

import contextlib
import socket
from collections.abc import Iterator
from types import SimpleNamespace

import docker
import pytest
from earshot_pulumi.docker import host_ports, images, labels, preflight, throwaway
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.on_engines import TargetStack
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
    """Of the engine, on which no question leaves a container."""
    with contextlib.closing(docker_engine.client()) as found:
        yield found
        left = found.containers.list(all=True, filters={"label": labels.THROWAWAY})
        assert left == []


def properties(**extra: str) -> dict[int, str]:
    """Of the template's three brokers."""
    spec = read_spec({"placement": "docker", "extra": extra}, "test")
    assert isinstance(spec, DockerSpec)
    plan = plan_docker(spec, "s").plan
    return {node.id: server_properties(plan, node) for node in plan.nodes}


def test_an_image_says_which_settings_its_kafka_refuses(
    client: docker.DockerClient, kafka_image: str
) -> None:
    asked = properties()
    asked[2] = properties(**{"num.io.threads": "abc"})[2]
    asked[3] = asked[3].replace("broker,controller", "broker")
    said = preflight.refusals(client, kafka_image, asked)
    assert said[2] == "Invalid value abc for configuration num.io.threads: Not a number of type INT"
    assert said[3].startswith("If process.roles contains just the 'broker' role, the node id 3")
    assert said.keys() == {2, 3}


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
    reported = throwaway.ask(
        client, client_image, ["bash", "-c", "ls /sys/class/net; echo $A"], environment={"A": "b"}
    )
    assert reported.split() == ["lo", "b"]
    with pytest.raises(CommandFailed, match="No such image"):
        throwaway.ask(client, "earshot-test/absent:none", ["true"])


@pytest.mark.combination
@pytest.mark.parametrize("here", [True, False])
@pytest.mark.parametrize(
    ("family", "bound", "only", "taken"),
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
    here: bool,
    family: socket.AddressFamily,
    bound: str,
    only: int | None,
    taken: bool,
) -> None:
    """Of this machine, and as if the engine were elsewhere."""
    if not here:
        monkeypatch.setattr(host_ports, "shares_network", lambda _: False)
    with socket.socket(family) as server:
        if only is not None:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
        server.bind((bound, 0))
        server.listen()
        port = PublishedPort(9092, server.getsockname()[1], "127.0.0.1")
        where = SimpleNamespace(engine=docker_engine.address, cert_path=None)
        found = host_ports.holders(client, where, kafka_image, [port], [])
        assert bool(found) is taken
        own = PublishedPort(9092, port.host_port, bound)
        assert host_ports.holders(client, where, kafka_image, [port], [own]) == {}, "Docker's own"


def wanted_image(engine: Engine, image: str) -> TargetStack:
    """A stack whose nodes have this ``image``, on a host that is called local."""
    hosts = [{"name": "local", "engine": engine.address}]
    spec = read_spec({"placement": "docker", "image": image, "hosts": hosts}, "test")
    assert isinstance(spec, DockerSpec)
    planned = plan_docker(spec, "s")
    return TargetStack("s", "", "", planned.plan, planned.containers, planned.hosts)


def test_a_missing_image_is_pulled_or_its_host_and_a_remedy_are_named(
    client: docker.DockerClient, docker_engine: Engine
) -> None:
    with registry("there") as address, Engines() as engines:
        there, none = (
            wanted_image(docker_engine, f"{address}/{REPOSITORY}:{tag}")
            for tag in ("there", "none")
        )
        assert images.absent(engines, there) == ["local"]
        images.pull(engines, there, ["local"], print)
        try:
            assert images.absent(engines, there) == []
        finally:
            client.images.remove(f"{address}/{REPOSITORY}:there")
        with pytest.raises(EarshotError) as caught:
            images.pull(engines, none, ["local"], print)
    message = str(caught.value)
    assert message.startswith(f"image {address}/{REPOSITORY}:none on Docker host local: is missing")
    assert "manifest unknown" in message and "fix: correct `image` or `kafka_version`" in message
