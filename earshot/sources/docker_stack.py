"""What the other resources of a stack say of a container: its image, and who made its networks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from earshot.listeners.images import IMAGE_NOTE, is_unnamed, repository_of, tag_of
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


def built_names(props: Mapping[str, object]) -> Iterator[str]:
    """What a resource calls the image that it builds, by the properties of `BUILT_IMAGES`."""
    tags = props.get("tags")
    named = [props.get(key) for key in ("imageName", "name", "tag")]
    for name in (*named, *(tags if isinstance(tags, (list, tuple)) else ())):
        if isinstance(name, str) and name:
            yield name


def is_one_of(image: str, names: Iterable[str]) -> bool:
    """Whether ``image`` is one of ``names``; no tag is `latest`, a digest any of them."""
    repository, tag = repository_of(image), tag_of(image) or "latest"
    return any(
        repository_of(name) == repository and ("@" in image or (tag_of(name) or "latest") == tag)
        for name in names
    )


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
    built = [name for item in stack.all(*BUILT_IMAGES) for name in built_names(item.props)]
    return replace(
        service,
        container=replace(container, open_networks=is_open),
        is_built=any(item.type in BUILT_IMAGES for item in images)
        or is_one_of(container.image, built),
    )
