"""`make release-check`: build wheel and sdist, and try the wheel in a separate environment.

The wheel is installed into an environment of its own, and its commands run in an empty folder, so
that they use nothing of the checkout: first without any extra, then with `deploy`, for which a
Pulumi program uses the provider plugin and the policy pack. `twine check` reads the metadata.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterable
from pathlib import Path

from earshot import __version__
from earshot.errors import EarshotError
from toolchain.environment import variables
from toolchain.paths import LOCK_FILE, ROOT
from toolchain.progress import exit_status

PACKAGES = {
    "earshot/": "",
    "components/earshot_pulumi/": "components/",
    "policies/earshot_policies/": "policies/",
}
"""The wheel's packages: the folder of each in the checkout, and the part of it that the wheel
omits."""
COMMANDS = (
    ("--version",),
    ("rules", "KL011"),
    ("plan", "--help"),
    ("doctor", "--help"),
    ("lint", "."),
    ("schema",),
)
CLOUD = ("boto3", "docker", "pulumi_aws", "pulumi_docker", "pyspark")
"""Packages that neither `pip install earshot` nor the extra `deploy` installs."""
EXTRAS = (*CLOUD, "cryptography", "pulumi", "pulumi_policy")
"""Packages that `pip install earshot` does not install."""
PUBLIC = "from earshot_pulumi import *; import earshot_policies.pack; from earshot import *"
WITHOUT_AWS = """
from pulumi import RunError
from earshot_pulumi import AwsNetwork
try:
    AwsNetwork("n", {"zones": ["eu-central-1a", "eu-central-1b"]})
except RunError as error:
    assert "pip install 'earshot[aws]'" in str(error), error
else:
    raise AssertionError("AwsNetwork needs no pulumi_aws")
"""
WITHOUT_SPARK = """
import pulumi
from earshot_pulumi import LocalCluster
class Mocks(pulumi.runtime.Mocks):
    def new_resource(self, args): return args.name, args.inputs
    def call(self, args): return {}
pulumi.runtime.set_mocks(Mocks())
try:
    LocalCluster("kafka", {"brokers": 1})
except pulumi.RunError as error:
    assert str(error).startswith("kafka: ") and "pip install 'earshot[spark]'" in str(error), error
else:
    raise AssertionError("LocalCluster needs no pyspark")
"""
RESOURCES = (
    "AwsCluster", "AwsEndpoint", "AwsNetwork", "DockerCluster", "DockerHosts", "Listeners",
    "LocalCluster", "Proof",
)  # fmt: skip
"""Resources in the schema of the installed plugin."""
_BUILD = "import sys; from setuptools import build_meta; "
_BUILD += "print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"
_PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input")


def check(folder: Path) -> Path:
    """The wheel of this checkout, built into ``folder`` and tried out. Raises EarshotError."""
    dated(ROOT.joinpath("CHANGELOG.md").read_text(), __version__)
    wheel, sdist = (build(kind, folder) for kind in ("wheel", "sdist"))
    tracked = [name for name in _tracked() if name.startswith(tuple(PACKAGES))]
    complete(wheel, zipfile.ZipFile(wheel).namelist(), map(in_wheel, tracked))
    with tarfile.open(sdist) as archive:
        top = f"{sdist.name.removesuffix('.tar.gz')}/"
        complete(sdist, (name.removeprefix(top) for name in archive.getnames()), tracked)
    _check_metadata((wheel, sdist), folder)
    _try_out(wheel, folder)
    return wheel


def build(kind: str, folder: Path) -> Path:
    """The wheel or the sdist of this checkout, built into ``folder``. Raises EarshotError."""
    source = folder / "source"  # building leaves folders behind
    if not source.exists():
        _copy(_tracked(), source)
    hook = f"build_{kind}"
    out = _run(sys.executable, "-c", _BUILD, hook, str(folder), cwd=source)
    return folder / out.splitlines()[-1]


def _tracked() -> list[str]:
    return _run("git", "-c", "safe.directory=*", "ls-files", "-z", cwd=ROOT).split("\0")[:-1]


def in_wheel(name: str) -> str:
    """The name in the wheel of a file of the checkout."""
    package = next(folder for folder in PACKAGES if name.startswith(folder))
    return name.removeprefix(PACKAGES[package])


def dated(changelog: str, version: str) -> None:
    """Raises EarshotError if the changelog has no date for ``version``."""
    if not re.search(
        rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE
    ):
        raise EarshotError(
            "CHANGELOG.md",
            observed=f"has no dated heading for {version}",
            allowed=f"## [{version}] - YYYY-MM-DD",
        )


def complete(archive: Path, names: Iterable[str], tracked: Iterable[str]) -> None:
    """Raises EarshotError for files that git tracks and ``archive`` lacks."""
    if missing_files := sorted(set(tracked) - set(names)):
        raise EarshotError(
            archive.name,
            observed=f"lacks {len(missing_files)} files, {missing_files[0]} first",
            remedy="name them in pyproject.toml, tool.setuptools",
        )


def pinned(lock: str) -> str:
    """The versions of a lock file as pip takes them for constraints: without hashes."""
    lines = (line.removesuffix("\\").strip() for line in lock.splitlines())
    return "".join(f"{line}\n" for line in lines if re.match(r"[\w.-]+==", line))


def _copy(tracked: Iterable[str], folder: Path) -> None:
    for name in tracked:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)


def _try_out(wheel: Path, folder: Path) -> None:
    home, empty = folder / "environment", folder / "empty"
    empty.mkdir()
    venv.create(home, with_pip=True)
    python = str(home / "bin" / "python")
    constraints = folder / "constraints.txt"
    constraints.write_text(pinned(LOCK_FILE.read_text()))
    _run(python, *_PIP, "--constraint", str(constraints), str(wheel), cwd=empty)
    _check_missing(python, EXTRAS, empty)
    for arguments in COMMANDS:
        _run(str(home / "bin" / "earshot"), *arguments, cwd=empty)
        print(f"  earshot {' '.join(arguments)}: well")
    for program in ("earshot policy-pack", "pulumi-resource-earshot 127.0.0.1:1"):
        _fails_for_lack_of("deploy", home, program, empty)
    _run(python, *_PIP, "--constraint", str(constraints), f"{wheel}[deploy]", cwd=empty)
    _check_missing(python, CLOUD, empty)
    for code in (PUBLIC, WITHOUT_AWS, WITHOUT_SPARK):
        _run(python, "-c", code, cwd=empty)
    print("  from earshot_pulumi import *: well")
    _try_pulumi(home, empty)


def _check_missing(python: str, packages: Iterable[str], cwd: Path) -> None:
    for name in packages:
        code = f"import importlib.util, sys; sys.exit(bool(importlib.util.find_spec({name!r})))"
        _run(python, "-c", code, cwd=cwd)


def _fails_for_lack_of(extra: str, home: Path, program: str, cwd: Path) -> None:
    name, *arguments = program.split()
    process = subprocess.run(
        [home / "bin" / name, *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )
    if process.returncode == 0 or f"pip install 'earshot[{extra}]'" not in process.stderr:
        raise EarshotError(
            program,
            observed=f"ended with {process.returncode}: {process.stderr[-2000:]}",
            allowed=f"a failure that names the extra {extra}",
        )
    print(f"  {program}, without the extra: named")


def _try_pulumi(home: Path, empty: Path) -> None:
    plugin = home / "bin" / "pulumi-resource-earshot"
    text = _run("pulumi", "package", "get-schema", str(plugin), cwd=empty)
    resources = json.loads(text)["resources"]
    if missing_resources := [
        name for name in RESOURCES if f"earshot:index:{name}" not in resources
    ]:
        raise EarshotError(
            "the schema of the wheel's plugin", observed=f"lacks {missing_resources[0]}"
        )
    print("  pulumi package get-schema: well")
    state = empty / "state.json"
    state.write_text(json.dumps({"version": 3, "deployment": {}}))
    pack = _run(str(home / "bin" / "earshot"), "policy-pack", cwd=empty).strip()
    analyze = ("pulumi", "policy", "analyze", "--policy-pack", pack, "--file", str(state))
    _run(*analyze, cwd=empty)
    print("  pulumi policy analyze --policy-pack: well")


def _check_metadata(archives: Iterable[Path], folder: Path) -> None:
    """`twine check`, with warnings as errors. Raises EarshotError."""
    home = folder / "twine"
    venv.create(home, with_pip=True)
    _run(str(home / "bin" / "python"), *_PIP, "twine", cwd=folder)
    _run(str(home / "bin" / "twine"), "check", "--strict", *map(str, archives), cwd=folder)
    print("  twine check --strict: well")


def _run(*command: str, cwd: Path) -> str:
    environment = {**os.environ, **variables("release-check"), "XDG_CACHE_HOME": str(cwd / "cache")}
    # what `make` sets for the checkout's own stacks
    environment = {name: environment[name] for name in environment if "POLICY_PACK" not in name}
    process = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if process.returncode:
        raise EarshotError(
            " ".join(command[:6]),
            observed=f"ended with {process.returncode}: {process.stderr[-2000:]}",
        )
    return process.stdout


def main() -> int:
    """0; progress goes to standard output."""
    with tempfile.TemporaryDirectory() as folder:
        print(f"building earshot {__version__}, then an environment of its own (minutes) ...")
        print(f"{check(Path(folder)).name}: well")
    return 0


if __name__ == "__main__":
    sys.exit(exit_status(main, "run it again"))
