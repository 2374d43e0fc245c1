"""What a stack of placement docker needs before Pulumi runs, and what `make clean` removes."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path

from components.docker.labels import STACK
from earshot.engine import connect, said
from earshot.errors import EarshotError
from earshot.spec.docker import DockerSpec
from toolchain.progress import say
from toolchain.pulumi_cli import installation
from toolchain.pulumi_cli.installation import Origin

PLUGIN = "pulumi-resource-docker"


def check(spec: DockerSpec, environment: Mapping[str, str]) -> None:
    """That every engine answers and Pulumi can have its plugin. Raises EarshotError."""
    for host in spec.hosts:
        with connect(host):
            pass
    _check_plugin(environment)


def _check_plugin(environment: Mapping[str, str]) -> None:
    """Official CLIs download it; the built one is there because nothing can be downloaded."""
    cli = installation.recorded()
    if cli.origin is not Origin.BUILT:
        return
    if shutil.which(PLUGIN, path=environment.get("PATH")) is not None:
        return
    version = importlib.metadata.version("pulumi-docker")
    home = Path(environment.get("PULUMI_HOME") or Path.home() / ".pulumi")
    if (home / "plugins" / f"resource-docker-v{version}").is_dir():
        return
    pulumi = cli.directory / "pulumi"
    get = f"PULUMI_HOME={home} {pulumi} plugin install resource docker {version}"
    raise EarshotError(
        f"Pulumi's plugin docker {version}",
        observed=f"is not in {home / 'plugins'}, and the CLI of this checkout, which was built "
        "where Pulumi's sites could not be reached, does not download it",
        remedy=f"where they can be reached now:\n    {get}\n"
        "  or carry the archive over from elsewhere:\n"
        f"    {get} --file {PLUGIN}-v{version}-{_platform()}.tar.gz",
    )


def _platform() -> str:
    """As Pulumi's archives name it."""
    machine = platform.machine().lower()
    known = {"x86_64": "amd64", "aarch64": "arm64"}
    return f"{platform.system().lower()}-{known.get(machine, machine)}"


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
