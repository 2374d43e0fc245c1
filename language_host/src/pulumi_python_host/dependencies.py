"""Lists the provider and Python packages of a program, and installs them."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
from grpc import ServicerContext
from pulumi.runtime.proto.language_pb2 import (
    InstallDependenciesRequest,
    InstallDependenciesResponse,
)

from pulumi_python_host import provider_packages
from pulumi_python_host.children import Children
from pulumi_python_host.interpreter import Interpreter
from pulumi_python_host.output import output_of

QUERY_SECONDS = 60


def describe(interpreter: Interpreter) -> tuple[str, str]:
    """Path and version of the interpreter; the version is empty where it does not run."""
    if interpreter.is_running():
        return interpreter.executable, platform.python_version()
    code = "import platform, sys; print(sys.executable); print(platform.python_version())"
    executable, _, version = _query(interpreter, "-c", code).strip().partition("\n")
    return executable or interpreter.executable, version


def find_packages(interpreter: Interpreter) -> list[dict[str, str]]:
    """The resource providers that the installed packages belong to: name, version, server."""
    if interpreter.is_running():
        return provider_packages.find()
    # By path: the other environment may not have this project.
    return _json_list(_query(interpreter, provider_packages.__file__))


def list_installed(interpreter: Interpreter, *, transitive: bool) -> list[tuple[str, str]]:
    """Name and version of installed packages: all, or those that no other one requires."""
    filters = [] if transitive else ["--not-required"]
    listing = _query(interpreter, "-m", "pip", "list", "--format", "json", *filters)
    return [(package["name"], package["version"]) for package in _json_list(listing)]


def install(
    request: InstallDependenciesRequest, context: ServicerContext, children: Children
) -> Iterator[InstallDependenciesResponse]:
    """Make the virtual environment if it is missing, and install the program's requirements."""
    info = request.info
    interpreter = Interpreter.of(info)
    folder = Path(info.program_directory)
    commands = []
    if interpreter.environment is not None and interpreter.problem():
        commands.append([sys.executable, "-m", "venv", str(interpreter.environment)])
    sources = {"requirements.txt": ["-r", "requirements.txt"], "pyproject.toml": ["-e", "."]}
    if arguments := next(
        (options for name, options in sources.items() if (folder / name).exists()), None
    ):
        commands.append([interpreter.executable, "-m", "pip", "install", *arguments])

    for command in commands:
        child = children.start(command, cwd=folder, environment=os.environ, piped=True)
        context.add_callback(lambda child=child: children.stop(child))
        for chunk in output_of(child, children):
            if chunk.WhichOneof("output") != "exitcode":
                yield InstallDependenciesResponse(stdout=chunk.stdout, stderr=chunk.stderr)
            elif chunk.exitcode:
                text = f"{' '.join(command)} ended with status {chunk.exitcode}"
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, text)


def _query(interpreter: Interpreter, *arguments: str) -> str:
    """The output of the interpreter, or an empty string if it fails."""
    try:
        return subprocess.run(
            [interpreter.executable, *arguments],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=QUERY_SECONDS,
            text=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _json_list(text: str) -> list[dict[str, str]]:
    result: list[dict[str, str]] = json.loads(text or "[]")
    return result
