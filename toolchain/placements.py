"""What a placement needs before Pulumi runs, and what `make clean` removes.

A placement with steps of its own has them in a module `make` in its folder of components.
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
    """Repair what a refresh of ``stack`` would take for changed. Raises EarshotError."""
    if module := _module(spec.placement):
        module.repair(spec, stack, state_dir, say)


def remove_data(spec: Spec, stack: str, state_dir: Path) -> None:
    """Remove what a stack keeps outside ``state_dir``. Raises EarshotError."""
    if module := _module(spec.placement):
        module.remove_data(spec, stack, state_dir, say)


def _module(placement: str) -> Any:
    """The placement's own module; None where it has none."""
    name = f"earshot_pulumi.{placement}.make"
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


def check_plugin(name: str, environment: Mapping[str, str]) -> None:
    """Check that Pulumi can get its plugin ``name`` (docker, aws). Raises EarshotError.

    Official CLIs download it; the built one exists where nothing can be downloaded.
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
    get = f"PULUMI_HOME={home} {pulumi} plugin install resource {name} {version}"
    raise EarshotError(
        f"Pulumi's plugin {name} {version}",
        observed=f"is not in {home / 'plugins'}, and the CLI of this checkout, which was built "
        "where Pulumi's sites could not be reached, does not download it",
        remedy=f"where they can be reached now:\n    {get}\n"
        "  or carry the archive over from elsewhere:\n"
        f"    {get} --file {program}-v{version}-{_platform()}.tar.gz",
    )


def _platform() -> str:
    """This platform, as Pulumi's archives name it."""
    machine = platform.machine().lower()
    known = {"x86_64": "amd64", "aarch64": "arm64"}
    return f"{platform.system().lower()}-{known.get(machine, machine)}"
