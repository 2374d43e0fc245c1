"""What the other resources of a stack say of a container: its image, and who made its networks."""

from __future__ import annotations

from dataclasses import replace

from earshot.listeners.images import IMAGE_NOTE, is_unnamed
from earshot.sources.compose import Service
from earshot.sources.stack_resources import RegisteredStack

NETWORK = "docker:index/network:Network"
REMOTE_IMAGE = "docker:index/remoteImage:RemoteImage"
BUILT_IMAGES = frozenset(
    {
        "docker:index/image:Image",
        "docker:index/registryImage:RegistryImage",
        "docker-build:index:Image",
        "docker-build:index:Index",
    }
)
TYPES = frozenset({NETWORK, REMOTE_IMAGE, *BUILT_IMAGES})
"""Resources whose outputs a container is given."""


def in_stack(service: Service, urn: str, stack: RegisteredStack) -> Service:
    """``service`` with the image that a resource of ``stack`` names in place of an id.

    Networks that the stack does not make may have names that nobody has described.
    """
    holder = stack.get(urn)
    sources = holder.depends.get("image", ()) if holder is not None else ()
    images = [item for item in map(stack.get, sources) if item is not None]
    container = service.container
    if is_unnamed(container.image) and IMAGE_NOTE not in container.env:
        names = [item.text("name") for item in images if item.type == REMOTE_IMAGE]
        container = replace(container, image=next(filter(None, names), container.image))
    own = {item.props.get("name") for item in stack.all(NETWORK)}
    is_open = any(item.name not in own for item in container.networks)
    return replace(
        service,
        container=replace(container, open_networks=is_open),
        is_built=any(item.type in BUILT_IMAGES for item in images),
    )
