"""The environment variables of ``pulumi`` in this checkout."""

import contextlib
import json
import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from earshot.errors import EarshotError
from earshot.files.stack_files import own_or_templates
from earshot.jvm.java import find_java
from earshot.placement_registry import PLACEMENTS
from toolchain.paths import PRIVATE, PULUMI_HOME, STACKS, STATE, VENV
from toolchain.pulumi_cli import installation
from toolchain.pulumi_cli.installation import Installation, Origin

# Protects only a state file on this machine; set your own before the first `make up`.
DEFAULT_PASSPHRASE = "earshot"
_PLACEMENT = re.compile(r"""^[^#\n]*\bplacement['"]?\s*:\s*['"]?([a-z]+)""", re.MULTILINE)
_EXTENDS = re.compile(r"""^[^#\n]*\bextends['"]?\s*:\s*['"]?([\w.-]+)""", re.MULTILINE)


def variables(stack: str, base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables to set on top of ``base`` for commands on ``stack``.

    An official CLI uses the backend that the user has configured. Otherwise the state is in files
    of this checkout. Raises EarshotError if the set-up has not run.
    """
    cli = installation.recorded()
    exported = {"PATH": _path(cli, base.get("PATH", os.defpath))}
    # A run starts six or so Python processes. Many container images switch bytecode off, and then
    # each process compiles all its imports: a preview takes twice the time.
    exported["PYTHONDONTWRITEBYTECODE"] = ""
    # Pulumi's processes connect to each other by gRPC, which would use the proxy in http_proxy
    # also for addresses of this machine.
    exported["no_grpc_proxy"] = "127.0.0.1,localhost"
    # Otherwise the engine would download a plugin for every installed Pulumi package, also for a
    # stack that needs none, and fail without a connection.
    stack_placement = PLACEMENTS.get(placement(stack))
    may_download = cli.origin is not Origin.BUILT and (
        stack_placement is None or stack_placement.plugin
    )
    exported["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] = "false" if may_download else "true"
    if not has_own_backend(cli, base):
        STATE.mkdir(parents=True, exist_ok=True)
        if STATE.stat().st_mode & 0o077:
            STATE.chmod(0o700)  # the passphrase below is public
        exported |= {
            "PULUMI_BACKEND_URL": STATE.as_uri(),
            "PULUMI_HOME": str(PULUMI_HOME),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        }
        if not {"PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"} & base.keys():
            exported["PULUMI_CONFIG_PASSPHRASE"] = DEFAULT_PASSPHRASE
    if cli.origin is Origin.BUILT:
        # It was built because Pulumi's sites were not reachable: do not wait for them.
        exported["PULUMI_DISABLE_REGISTRY_RESOLVE"] = "true"
    with contextlib.suppress(EarshotError):  # commands that need Java report it
        exported["JAVA_HOME"] = str(find_java().home)
    return exported


def exports(stack: str, base: Mapping[str, str] = os.environ) -> str:
    """The variables as lines for a POSIX shell to evaluate."""
    settings = variables(stack, base)
    lines = [f"export {name}={shlex.quote(value)}" for name, value in settings.items()]
    return "\n".join(lines)


def has_own_backend(cli: Installation, base: Mapping[str, str]) -> bool:
    """True if the user has chosen a backend: by variable, by token, or by ``pulumi login``."""
    backend = base.get("PULUMI_BACKEND_URL", "")
    if backend:
        # `make env` of a checkout sets such a backend: it is not the user's choice.
        return not backend.endswith(f"/{PRIVATE.name}/{STATE.name}")
    if base.get("PULUMI_ACCESS_TOKEN"):
        return True
    if cli.origin is not Origin.INSTALLED:
        return False
    home = Path(base.get("PULUMI_HOME") or Path.home() / ".pulumi")
    try:
        credentials = json.loads((home / "credentials.json").read_text())
    except (OSError, ValueError):
        return False
    return isinstance(credentials, dict) and bool(credentials.get("current"))


def placement(stack: str, folder: Path = STACKS) -> str:
    """The placement of ``stack``, from its own file or its template's, or from a file that this
    one extends; `local` if none has it.

    Searches with regular expressions, because no YAML parser may be installed yet.
    """
    path = own_or_templates(stack, folder, "Pulumi.{}.yaml")
    visited: list[Path] = []
    while path is not None and path not in visited and path.is_file():
        visited.append(path)
        text = path.read_text(errors="replace")
        if match := _PLACEMENT.search(text):
            return match[1]
        extended = _EXTENDS.search(text)
        path = folder / f"Pulumi.{extended[1]}.yaml" if extended else None
    return "local"


def _path(cli: Installation, path: str) -> str:
    """``path`` with our folders first, each once: the exports may be evaluated repeatedly."""
    own_folders = [str(cli.directory), str(VENV / "bin")]
    other_folders = [
        folder for folder in path.split(os.pathsep) if folder and folder not in own_folders
    ]
    return os.pathsep.join([*own_folders, *other_folders])
