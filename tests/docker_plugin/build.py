"""Builds the plugin from its Go modules as ``module/`` pins them.

``module/upstream`` and ``module/sdk`` hold one file each, which is added to a copy of the pinned
module: upstream's provider is internal, and the bridge's SDK is older than upstream's.
"""

import hashlib
import os
import shutil
from pathlib import Path

from earshot.files import cache
from toolchain import progress
from toolchain.paths import LOGS, PYTHON
from toolchain.pulumi_cli import go

MODULE = Path(__file__).with_name("module")
NAME = "pulumi-resource-docker"
COPIED = {
    "upstream": "github.com/terraform-providers/terraform-provider-docker",
    "sdk": "github.com/hashicorp/terraform-plugin-sdk/v2",
}


def executable(version: str) -> Path:
    """The plugin as ``version`` of pulumi-docker, built where the cache has none.

    Raises EarshotError.
    """

    def make(fresh: Path) -> None:
        compiler = go.ensure(PYTHON, MODULE / "go.mod")
        with progress.step("Docker's plugin: building it from Go modules (some minutes)"):
            _build(fresh, compiler, version)

    return cache.ensure(cache.root() / "docker-plugin" / _digest(version), make) / NAME


def _digest(version: str) -> str:
    content_hash = hashlib.sha256(repr((version, os.uname().machine)).encode())
    for path in sorted(path for path in MODULE.rglob("*") if path.is_file()):
        content_hash.update(path.read_bytes())
    return content_hash.hexdigest()[:12]


def _build(folder: Path, compiler: Path, version: str) -> None:
    work, environment = go.prepare(MODULE, folder)

    def run_go(*arguments: str | Path) -> None:
        progress.run(
            [compiler, *arguments],
            log=LOGS / "docker-plugin-build.log",
            failure="Docker's plugin",
            remedy="check that Go can reach its module proxy (go env GOPROXY), then run it again",
            cwd=work,
            environment=environment,
        )

    run_go("mod", "download", *COPIED.values())
    for name, module in COPIED.items():
        sources = go.module_directory(compiler, module, cwd=work, environment=environment)
        _add_missing(sources, work / name)
    run_go("mod", "edit", *(f"-replace={module}=./{name}" for name, module in COPIED.items()))
    flags = f"-s -w -X main.version={version}"
    # upstream's docker_compose, which Pulumi's package does not have, needs much more
    run_go("build", "-tags", "no_compose", "-trimpath", "-ldflags", flags, "-o", folder / NAME, ".")
    shutil.rmtree(work)


def _add_missing(sources: Path, target: Path) -> None:
    """Copies ``sources`` of Go's cache, which are read-only, into the folder ``target``."""
    shutil.copytree(sources, target, dirs_exist_ok=True, copy_function=shutil.copyfile)
    for folder, _, _ in os.walk(target):
        Path(folder).chmod(0o755)
