"""Pulls the nodes' image on each Docker host, before any container changes.

The official provider pulls, too, but its error has neither the Docker host nor a remedy.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import docker
from docker.errors import ImageNotFound

from earshot.aws.ecr import ecr_image
from earshot.config.docker_host import DockerHost
from earshot.engine.connection import address_of, root_cause
from earshot.engine.failures import FAILURES
from earshot.errors import EarshotError
from earshot_pulumi.docker.container_address import Engines, asking
from earshot_pulumi.docker.engine_objects import TargetStack

AT_ONCE: Final = 8
"""Maximum number of engines that pull at the same time."""


def absent(engines: Engines, target: TargetStack) -> list[str]:
    """Names of the Docker hosts that lack their nodes' image. Raises EarshotError."""
    return [host.name for host, image in _images(target) if not has_image(engines, host, image)]


def pull(
    engines: Engines, target: TargetStack, hosts: Sequence[str], progress: Callable[[str], None]
) -> None:
    """Pull the nodes' image on the Docker hosts with the names ``hosts``. Raises EarshotError."""
    jobs = [
        (engines.of(host), host, image) for host, image in _images(target) if host.name in hosts
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in pool.map(lambda job: _pull(*job, progress=progress), jobs):
            pass


def _images(target: TargetStack) -> list[tuple[DockerHost, str]]:
    images = {container.host: container.image for container in target.containers.values()}
    return [(target.hosts[index], image) for index, image in sorted(images.items())]


def has_image(engines: Engines, host: DockerHost, image: str) -> bool:
    """True if the engine of ``host`` has ``image``. Raises EarshotError if the engine fails."""
    with asking(f"Docker host {host.name}", host):
        try:
            engines.of(host).api.inspect_image(image)
        except ImageNotFound:
            return False
    return True


def _pull(
    client: docker.DockerClient, host: DockerHost, image: str, *, progress: Callable[[str], None]
) -> None:
    progress(f"Docker host {host.name}: pulling {image} ...")
    try:
        client.images.pull(image)
    except FAILURES as reason:
        role_hint = "add it to `images` of the `DockerHosts`, which pull it with their role; or "
        raise EarshotError(
            f"image {image} on Docker host {host.name}",
            observed=f"is missing, and its engine cannot pull it ({root_cause(reason)}); nothing "
            "was changed",
            remedy=(role_hint if ecr_image(image) else "")
            + "correct `image` or `kafka_version` in the stack file, let the engine reach the "
            "registry, or log in to it on this machine (docker login); or copy the image from "
            f"another engine: docker save {image} | docker --host {address_of(host)} load",
        ) from None
