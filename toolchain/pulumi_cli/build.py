"""Builds the CLI from its published Go module, for machines that reach only package registries.

``module/`` requires the CLI as a tool and pins every module by version and hash. `go install
...@version` would fail, because the CLI's own go.mod has replace directives. Its folder ``codegen``
is a command that generates SDKs with the CLI's own packages, for our language host.
"""

import os
import platform
import shutil
from pathlib import Path

from earshot.files import cache
from toolchain import progress
from toolchain.paths import LOGS
from toolchain.pulumi_cli import go
from toolchain.pulumi_cli.wrapper import CODEGEN, EXECUTABLES

MODULE = Path(__file__).parent / "module"
PACKAGE = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
SDK = "github.com/pulumi/pulumi/sdk/v3"
# The script with which the language host runs the user's program. Module archives drop its
# executable bit.
PROGRAM_SCRIPT = "python/cmd/pulumi-language-python-exec"


def is_done(version: str) -> bool:
    return _is_complete(_folder(version))


def ensure(version: str, *, pip: Path) -> Path:
    """The directory of the built executables; ``pip`` is a Python that can install a Go if needed.

    Raises EarshotError.
    """

    def make(folder: Path) -> None:
        compiler = go.ensure(pip)
        with progress.step(f"Pulumi CLI {version}: building from its Go module (some minutes)"):
            _build(folder, version, compiler)

    return cache.ensure(_folder(version), make, _is_complete) / "bin"


def _folder(version: str) -> Path:
    system = f"{platform.system()}-{platform.machine()}".lower()  # homes may be shared
    return cache.root() / "pulumi" / f"{version}-{system}"


def _is_complete(folder: Path) -> bool:
    return all(os.access(folder / "bin" / name, os.X_OK) for name in EXECUTABLES)


def _build(folder: Path, version: str, compiler: Path) -> None:
    work, environment = go.prepare(MODULE, folder)
    # Without the version flag the CLI does not know its own version.
    flags = f"-s -w -X {SDK}/go/common/version.Version=v{version}"
    for name, package in (("pulumi", PACKAGE), (CODEGEN, "./codegen")):
        progress.run(
            [compiler, "build", "-v", "-trimpath", "-tags", "osusergo,grpcnotrace",
             "-ldflags", flags, "-o", folder / "bin" / name, package],
            log=LOGS / "pulumi-build.log",
            failure="Pulumi CLI",
            remedy="check that Go can reach its module proxy (go env GOPROXY), or install Pulumi"
            " yourself, then run it again",
            cwd=work,
            environment=environment,
        )  # fmt: skip
    sdk = go.module_directory(compiler, SDK, cwd=work, environment=environment)
    target = folder / "bin" / Path(PROGRAM_SCRIPT).name
    shutil.copyfile(sdk / PROGRAM_SCRIPT, target)
    target.chmod(0o755)
    shutil.rmtree(work)
