"""The Python SDK of another package: generated from its schema, and added to a program."""

import subprocess
from pathlib import Path

import grpc
from grpc import ServicerContext
from pulumi.runtime.proto.language_pb2 import (
    GeneratePackageRequest,
    GeneratePackageResponse,
    LinkRequest,
    LinkResponse,
)

GENERATE_SECONDS = 120


def generate(
    request: GeneratePackageRequest, context: ServicerContext, *, codegen: Path
) -> GeneratePackageResponse:
    """Write the SDK into the request's directory with ``codegen``, Pulumi's own generator."""
    if not codegen.exists():
        text = f"{codegen} does not exist; run: make setup"
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, text)
    answer = subprocess.run(
        [codegen, "python", request.directory, request.loader_target],
        input=request.schema,
        capture_output=True,
        text=True,
        timeout=GENERATE_SECONDS,
    )
    if answer.returncode != 0:
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, answer.stderr.strip())
    for name, content in request.extra_files.items():
        path = Path(request.directory, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return GeneratePackageResponse()


def link(request: LinkRequest) -> LinkResponse:
    """Name the SDKs in the program's requirements, from which the CLI installs them next."""
    folder = Path(request.info.program_directory)
    requirements = folder / "requirements.txt"
    # a path without a slash would be the name of a package in a registry
    paths = [f"./{package.path}" for package in request.packages]
    if (folder / "pyproject.toml").exists() and not requirements.exists():
        text = "\n  ".join([f"Add to the dependencies of {folder / 'pyproject.toml'}:", *paths])
        return LinkResponse(import_instructions=text)
    old_lines = requirements.read_text().splitlines() if requirements.exists() else []
    added_paths = [path for path in paths if not {path, path.removeprefix("./")} & set(old_lines)]
    requirements.write_text("\n".join([*old_lines, *added_paths]) + "\n")
    imports = [_import_line(folder / package.path) for package in request.packages]
    return LinkResponse(import_instructions="\n".join(["Import the SDK with:", *imports]))


def _import_line(sdk: Path) -> str:
    modules = [path.parent.name for path in sdk.glob("*/__init__.py")]
    return "".join(f"  import {name} as {name.removeprefix('pulumi_')}\n" for name in modules)
