"""How a broker in a container is asked: in plain text, as a node of the stack, or not at all."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.docker import engine_objects
from earshot_pulumi.docker.container_address import ContainerAddress, Engines
from earshot_pulumi.docker.inner_listener import InnerListener, NodeKeys
from earshot_pulumi.properties import read, write

from earshot.config.docker_host import DockerHost
from earshot.errors import EarshotError
from earshot.listeners.terms import Mechanism
from tests.components.docker.container_engine import node_container
from tests.components.docker.stacks import target_stack
from tests.doubles.engine_server import document, engine_server

ROOT = Path("/checkout/.earshot/stacks/s/kafka")


def address(id: int, root: Path | None, **settings: Any) -> ContainerAddress:
    of = target_stack(brokers=1, **settings)
    container = of.containers[id]
    return ContainerAddress.of(of.plan, of.plan.node(id), container, of.hosts[0], root)


def test_a_secured_broker_is_asked_as_itself_by_the_name_that_it_has_for_others() -> None:
    place = address(1, ROOT, security={})
    keys = NodeKeys(str(ROOT), "node-1", "kafka-1")
    assert place.endpoint == InnerListener("127.0.0.1", 19092, False, keys, "INTERNAL")
    (host, external) = place.clients
    assert (host.name, host.port, external.name) == ("HOST", 9092, "EXTERNAL")
    assert host.keys == NodeKeys(str(ROOT), "node-1", "localhost")
    assert host.mechanisms == (Mechanism.SCRAM_SHA_512,) and not host.answers
    assert place.can_be_asked
    assert read(ContainerAddress, write(place)) == place


@pytest.mark.parametrize(("root", "settings", "can_be_asked"), [
    (None, {"security": {}}, False),
    (ROOT, {"listeners": [{"name": "A", "port": 1, "scopes": "internal"}]}, True),
    (ROOT, {"listeners": [{"name": "A", "port": 1, "scopes": "internal", "protocol": "SSL"}]},
     False),
])  # fmt: skip
def test_no_other_keys_are_used(
    root: Path | None, settings: dict[str, Any], can_be_asked: bool
) -> None:
    place = address(1, root, **settings)
    assert place.endpoint.keys is None and place.can_be_asked is can_be_asked
    assert read(ContainerAddress, write(place)) == place


def test_a_controller_alone_answers_no_broker_s_questions() -> None:
    quorum = {"mode": "separate", "count": 1}
    place = address(10001, ROOT, security={}, controllers=quorum)
    assert place.endpoint.keys is None and not place.can_be_asked
    assert place.endpoint.host == "controller-10001"


LISTED = {"Id": "x", "Names": ["/k"], "Image": "i", "State": "dead", "Labels": {}, "Ports": []}
LISTS = ("containers/json", "volumes", "networks")


@pytest.mark.parametrize(
    ("path", "content"),
    [
        *product(LISTS, ("text", [{}], [1])),
        ("containers/json", None),
        ("containers/json", {"message": "no"}),
        ("containers/json", [{**LISTED, "Labels": ["earshot.node"]}]),
        ("containers/json", [{**LISTED, "Labels": {"earshot.node": 1}}]),
        ("containers/json", [{**LISTED, "Ports": [{"PublicPort": 1}]}]),
        ("volumes", None),
        ("volumes", {"Volumes": [{"Name": "v", "Labels": "text"}]}),
    ],
)
def test_a_list_of_another_form_is_one_error_about_the_engine(path: str, content: Any) -> None:
    with engine_server({f"GET /v1.41/{path}": document(content)}) as at, Engines() as engines:
        host = DockerHost(name="box", engine=at)
        with pytest.raises(EarshotError, match="another form than Docker's") as caught:
            engine_objects.look(engines, [host])
    assert str(caught.value).startswith(f"Docker host box: its engine at {at} gives")


def test_an_engine_without_a_list_is_one_error() -> None:
    missing = document({"message": "page not found"}, "404 Not Found")
    failure = pytest.raises(EarshotError, match=r"Docker host box: .* fails \(page not found\)")
    with engine_server({"GET /v1.41/volumes": missing}) as at, Engines() as engines, failure:
        engine_objects.look(engines, [DockerHost(name="box", engine=at)])


def described(description: Any) -> Any:
    """The description of a container, from an engine that answers ``description``."""
    path = "GET /v1.41/containers/[^/]+/json"
    with engine_server({path: document(description)}) as at, Engines() as engines:
        return engines.inspect("the container", DockerHost(name="box", engine=at), "x")


WHOLE = node_container("x", 1)


@pytest.mark.parametrize(
    "description",
    [
        None,
        [],
        {},
        *({key: value for key, value in WHOLE.items() if key != absent} for absent in WHOLE),
        {**WHOLE, "State": "running"},
        {**WHOLE, "State": {**WHOLE["State"], "Running": "yes"}},
        {**WHOLE, "State": {**WHOLE["State"], "ExitCode": "0"}},
        {**WHOLE, "State": {**WHOLE["State"], "StartedAt": "yesterday"}},
        {**WHOLE, "RestartCount": None},
        {**WHOLE, "NetworkSettings": {"Networks": ["net"]}},
        {**WHOLE, "NetworkSettings": {"Networks": {"net": None}}},
    ],
)
def test_a_description_of_another_form_is_one_error_about_the_container(description: Any) -> None:
    with pytest.raises(EarshotError, match=r"the container: .* another form than Docker's"):
        described(description)


def test_a_container_on_no_network_has_an_empty_list_of_networks() -> None:
    assert described(WHOLE) == WHOLE
    bare = described({**WHOLE, "NetworkSettings": {"Networks": None}})
    assert bare["NetworkSettings"] == {"Networks": {}}


@pytest.mark.parametrize(
    "clock", [{"SystemTime": "now"}, {"SystemTime": "2026-01-01T00:00:00"}, {}, None, []]
)
def test_a_clock_of_another_form_is_one_error(clock: Any) -> None:
    failure = pytest.raises(EarshotError, match=r"the container: .* another form than Docker's")
    with engine_server({"GET /v1.41/info": document(clock)}) as at, Engines() as engines, failure:
        engines.seconds_up("the container", DockerHost(name="box", engine=at), WHOLE)
