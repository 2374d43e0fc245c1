"""The image and the networks of a container, read from other resources of its stack."""

from __future__ import annotations

from typing import Any

import pytest

from earshot.sources.docker_container import NETWORK, REMOTE_IMAGE, TYPES, in_stack
from earshot.sources.service import Service
from earshot.sources.stack_resources import RegisteredResource, RegisteredStack
from earshot.topology.container import Container, JoinedNetwork

ID = "sha256:" + "0123456789abcdef" * 4


REMOTE = RegisteredResource(REMOTE_IMAGE, "r", {"name": "apache/kafka:4.1.1"})
UNNAMED = RegisteredResource(REMOTE_IMAGE, "r", {"name": None})
OTHER = RegisteredResource("other", "o", {"name": "x"})
OWN = RegisteredResource(NETWORK, "n", {"name": "own"})


def read_in_stack(
    *resources: RegisteredResource, image: str = ID, networks: tuple[str, ...] = (), env: str = ""
) -> tuple[str, bool, bool]:
    """The image, whether it is built, and whether its networks may have more names."""
    depends = {"image": tuple(resource.urn for resource in resources)}
    holder = RegisteredResource("container", "c", {}, depends=depends)
    types = {*TYPES, "container"}
    stack = RegisteredStack(item for item in (*resources, holder) if item.type in types)
    joined = tuple(map(JoinedNetwork, networks))
    container = Container("c", image, networks=joined, env={"EARSHOT_IMAGE": env} if env else {})
    service = in_stack(Service("c", container), "c", stack)
    return service.container.image, service.is_built, service.container.open_networks


@pytest.mark.parametrize(
    ("resources", "inputs", "image"),
    [
        ([REMOTE], {}, "apache/kafka:4.1.1"),
        ([REMOTE], {"image": "example/kafka:1"}, "example/kafka:1"),
        ([REMOTE], {"env": "example/kafka:1"}, ID),
        ([UNNAMED, REMOTE], {}, "apache/kafka:4.1.1"),
        ([OTHER], {}, ID),
    ],
)
def test_an_id_has_the_name_of_the_image_that_it_comes_from(
    resources: list[RegisteredResource], inputs: dict[str, Any], image: str
) -> None:
    assert read_in_stack(*resources, **inputs) == (image, False, False)


@pytest.mark.parametrize(
    "type",
    [
        "docker:index/image:Image",
        "docker:index/registryImage:RegistryImage",
        "docker-build:index:Image",
        "docker-build:index:Index",
    ],
)
def test_an_image_of_the_stack_is_built_and_has_no_name(type: str) -> None:
    image = RegisteredResource(type, "b", {"name": "apache/kafka:4.1.1"})
    assert read_in_stack(image) == (ID, True, False)


def test_a_network_of_another_stack_may_have_more_names() -> None:
    assert read_in_stack(OWN, networks=("own",)) == (ID, False, False)
    assert read_in_stack(OWN, networks=("own", "other")) == (ID, False, True)
    assert read_in_stack(networks=("own",)) == (ID, False, True)
