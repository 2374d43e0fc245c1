"""Instances of the box with a Docker engine each, and images for them, because there is no
registry."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.images.load import docker_host_image, validator_images

WITH_ENGINE = ("--security-opt=systempaths=unconfined", "--cap-add=SYS_PTRACE")
"""Docker's options for an engine in a container, in addition to systemd's: it forwards packets, and
enters its own containers."""


def give_engines(
    box: CloudBox, names: Iterable[str], kafka_image: str, folder: Path, *options: str
) -> str:
    """Gives the instances ``names`` an engine, and the images in a file of ``folder``. Returns the
    name of the base image. ``options`` are more of Docker's options."""
    base, validator = validator_images(box.engine)
    images = folder / "images.tar"
    box.engine.run("save", "--output", str(images), kafka_image, validator, base)
    for name in names:
        box.images[name] = docker_host_image(box.engine)
        images_option = f"--volume={images}:/usr/local/share/images.tar:ro"
        box.engines[name] = (*WITH_ENGINE, images_option, *options)
    return base


def journals(box: CloudBox) -> str:
    """The end of each instance's log of its set-up and its engine."""
    units = ("docker-prepare", "docker")
    logs = {name: instance.journal(*units) for name, instance in box.instances().items()}
    return "\n".join(f"{name}:\n{text[-3000:]}" for name, text in logs.items())
