"""What ``pulumi`` needs in its environment to work in this checkout."""

import contextlib
import json
import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from earshot.errors import EarshotError
from earshot.jvm.java import find_java
from earshot.placements import PLACEMENTS
from earshot.stack_files import own_or_templates
from toolchain.paths import PRIVATE, PULUMI_HOME, STACKS, STATE, VENV
from toolchain.pulumi_cli import installation
from toolchain.pulumi_cli.installation import Installation, Origin

# Protects only a state file on this machine; set your own before the first `make up`.
DEFAULT_PASSPHRASE = "earshot"
_PLACEMENT = re.compile(r"""^[^#\n]*\bplacement['"]?\s*:\s*['"]?([a-z]+)""", re.MULTILINE)
_EXTENDS = re.compile(r"""^[^#\n]*\bextends['"]?\s*:\s*['"]?([\w.-]+)""", re.MULTILINE)


def variables(stack: str, base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables to set on top of ``base`` for commands on ``stack``.

    An official CLI with a backend of the user's keeps that backend; otherwise state is in files of
    this checkout. Raises EarshotError where the set-up has not run.
    """
    cli = installation.recorded()
    exported = {"PATH": _path(cli, base.get("PATH", os.defpath))}
    # A run starts six or so Python processes. Many container images switch bytecode off, and then
    # each process compiles all its imports: a preview takes twice the time.
    exported["PYTHONDONTWRITEBYTECODE"] = ""
    # Pulumi's processes speak to each other by gRPC, which would use the proxy in http_proxy for
    # addresses of this machine, too.
    exported["no_grpc_proxy"] = "127.0.0.1,localhost"
    # Without this, the engine would download a plugin for every installed Pulumi package, even for
    # a stack that needs none, and fail where it cannot.
    kind = PLACEMENTS.get(placement(stack))
    may_download = cli.origin is not Origin.BUILT and (kind is None or kind.plugin)
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
        # It was built because Pulumi's own sites are out of reach: do not wait for them.
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
    """Whether the user has chosen a backend: by variable, by token, or by ``pulumi login``."""
    backend = base.get("PULUMI_BACKEND_URL", "")
    if backend:
        # One that `make env` of some checkout has set is not the user's choice.
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
    """The placement of ``stack`` in its own or its template's file, or in one that this extends;
    else `local`.

    Regular expressions find it: there may be no YAML parser yet.
    """
    path = own_or_templates(stack, folder, "Pulumi.{}.yaml")
    visited: list[Path] = []
    while path is not None and path not in visited and path.is_file():
        visited.append(path)
        text = path.read_text(errors="replace")
        if match := _PLACEMENT.search(text):
            return match[1]
        base = _EXTENDS.search(text)
        path = folder / f"Pulumi.{base[1]}.yaml" if base else None
    return "local"


def _path(cli: Installation, path: str) -> str:
    """``path`` with our directories first, each once: the exports may be evaluated repeatedly."""
    ours = [str(cli.directory), str(VENV / "bin")]
    rest = [entry for entry in path.split(os.pathsep) if entry and entry not in ours]
    return os.pathsep.join([*ours, *rest])
