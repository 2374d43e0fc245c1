"""Checks before Pulumi runs, repairs before a refresh, and the removal of data by `make clean`.

The steps of a placement are in a module `make` in its folder of components.
"""

import importlib
import importlib.metadata
import importlib.util
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from earshot.config.docker import DockerSpec
from earshot.config.document import Spec
from earshot.errors import EarshotError
from earshot.placements import PLACEMENTS
from toolchain.progress import say
from toolchain.pulumi_cli import installation
from toolchain.pulumi_cli.installation import Origin


def check(spec: Spec, environment: Mapping[str, str]) -> None:
    """Check that ``spec`` can be deployed from here. Raises EarshotError."""
    if module := _module(spec.placement):
        module.check(spec)
    if PLACEMENTS[spec.placement].plugin:
        check_plugin(spec.placement, environment)
    if isinstance(spec, DockerSpec) and spec.provisioned:
        check_plugin("aws", environment)


def repair(spec: Spec, stack: str, state_dir: Path) -> None:
    """Repair resources that a refresh of ``stack`` would report as changed. Raises EarshotError."""
    if module := _module(spec.placement):
        module.repair(spec, stack, state_dir, say)


def remove_data(spec: Spec, stack: str, state_dir: Path) -> None:
    """Remove data of a stack outside ``state_dir``. Raises EarshotError."""
    if module := _module(spec.placement):
        module.remove_data(spec, stack, state_dir, say)


def _module(placement: str) -> Any:
    """The placement's module `make`, or None."""
    name = f"earshot_pulumi.{placement}.make"
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


def check_plugin(name: str, environment: Mapping[str, str]) -> None:
    """Check that Pulumi has, or can download, its plugin ``name`` (docker, aws).

    Official CLIs download it. A CLI was built only if nothing could be downloaded. Raises
    EarshotError.
    """
    cli = installation.recorded()
    if cli.origin is not Origin.BUILT:
        return
    program = f"pulumi-resource-{name}"
    if shutil.which(program, path=environment.get("PATH")) is not None:
        return
    version = importlib.metadata.version(f"pulumi-{name}")
    home = Path(environment.get("PULUMI_HOME") or Path.home() / ".pulumi")
    if (home / "plugins" / f"resource-{name}-v{version}").is_dir():
        return
    pulumi = cli.directory / "pulumi"
    install_command = f"PULUMI_HOME={home} {pulumi} plugin install resource {name} {version}"
    raise EarshotError(
        f"Pulumi's plugin {name} {version}",
        observed=f"is not in {home / 'plugins'}, and the CLI of this checkout does not download "
        "it: it was built here because Pulumi's sites could not be reached",
        remedy=f"if they can be reached now:\n    {install_command}\n"
        "  or copy the archive from another machine:\n"
        f"    {install_command} --file {program}-v{version}-{_platform()}.tar.gz",
    )


def _platform() -> str:
    """The name of this platform in the names of Pulumi's archives."""
    machine = platform.machine().lower()
    architectures = {"x86_64": "amd64", "aarch64": "arm64"}
    return f"{platform.system().lower()}-{architectures.get(machine, machine)}"
