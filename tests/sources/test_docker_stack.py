"""What other resources say of a container, by those that the pack keeps."""

from __future__ import annotations

import pytest

from earshot.sources.compose import Service
from earshot.sources.docker_container import NETWORK, REMOTE_IMAGE, TYPES, in_stack
from earshot.sources.stack_resources import RegisteredResource, RegisteredStack
from earshot.topology.container import Container, JoinedNetwork

ID = "sha256:" + "0123456789abcdef" * 4


def reported(
    *others: RegisteredResource, image: str = ID, networks: tuple[str, ...] = (), env: str = ""
) -> tuple[str, bool, bool]:
    """The image, whether it is built, and whether its networks may hold names of others."""
    holder = RegisteredResource(
        "container", "c", {}, depends={"image": tuple(item.urn for item in others)}
    )
    stack = RegisteredStack(
        item for item in (*others, holder) if item.type in {*TYPES, "container"}
    )
    joined = tuple(map(JoinedNetwork, networks))
    container = Container("c", image, networks=joined, env={"EARSHOT_IMAGE": env} if env else {})
    found = in_stack(Service("c", container), "c", stack)
    return found.container.image, found.is_built, found.container.open_networks


def test_an_id_is_called_as_the_image_that_it_comes_from() -> None:
    remote = RegisteredResource(REMOTE_IMAGE, "r", {"name": "apache/kafka:4.1.1"})
    assert reported(remote) == ("apache/kafka:4.1.1", False, False)
    assert reported(remote, image="example/kafka:1") == ("example/kafka:1", False, False)
    assert reported(remote, env="example/kafka:1") == (ID, False, False)
    assert reported(RegisteredResource(REMOTE_IMAGE, "r", {"name": None}), remote) == (
        "apache/kafka:4.1.1",
        False,
        False,
    )
    assert reported(RegisteredResource("other", "o", {"name": "x"})) == (ID, False, False)


@pytest.mark.parametrize(
    "type",
    [
        "docker:index/image:Image",
        "docker:index/registryImage:RegistryImage",
        "docker-build:index:Image",
        "docker-build:index:Index",
    ],
)
def test_what_the_stack_builds_is_built_and_has_no_name_of_its_own(type: str) -> None:
    assert reported(RegisteredResource(type, "b", {"name": "apache/kafka:4.1.1"})) == (
        ID,
        True,
        False,
    )


def test_on_a_network_of_others_there_may_be_other_names() -> None:
    own = RegisteredResource(NETWORK, "n", {"name": "own"})
    assert reported(own, networks=("own",)) == (ID, False, False)
    assert reported(own, networks=("own", "other")) == (ID, False, True)
    assert reported(networks=("own",)) == (ID, False, True)
