"""What a stack of placement docker needs before Pulumi runs, and what `make clean` removes."""

from __future__ import annotations

from collections.abc import Mapping

from components.docker.labels import STACK
from earshot.engine import connect, said
from earshot.errors import EarshotError
from earshot.spec.docker import DockerSpec
from toolchain.plugins import check_plugin
from toolchain.progress import say


def check(spec: DockerSpec, environment: Mapping[str, str]) -> None:
    """That every engine answers and Pulumi can have its plugin. Raises EarshotError."""
    for host in spec.hosts:
        with connect(host):
            pass
    check_plugin("docker", environment)


def remove_volumes(spec: DockerSpec, stack: str) -> None:
    """Removes the volumes of ``stack`` from its hosts, told by their label. Raises EarshotError."""
    from docker.errors import DockerException

    for host in spec.hosts:
        with connect(host) as client:
            for volume in client.volumes.list(filters={"label": f"{STACK}={stack}"}):
                try:
                    volume.remove()
                except (DockerException, OSError) as reason:
                    raise EarshotError(
                        f"volume {volume.name} on Docker host {host.name}",
                        observed=f"cannot be removed: {said(reason)}",
                        remedy="remove what uses it, then run the same command again",
                    ) from None
                say(f"Removed volume {volume.name} ...")
