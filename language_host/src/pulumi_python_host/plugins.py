"""Runs what the engine treats as a plugin: policy packs and providers written in Python."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from grpc import ServicerContext
from pulumi.runtime.proto import language_pb2

from pulumi_python_host.children import Children
from pulumi_python_host.interpreter import Interpreter
from pulumi_python_host.output import Chunk, output_of
from pulumi_python_host.relay import PackRelay


def launch(
    request: language_pb2.RunPluginRequest, interpreter: Interpreter
) -> tuple[tuple[str, ...], Path, dict[str, str]]:
    """A plugin's command, directory, and environment, all of which the engine sends."""
    environment = dict(variable.split("=", 1) for variable in request.env if "=" in variable)
    folder = request.info.program_directory
    python = (interpreter.executable, "-u")
    if request.kind == "analyzer":
        # Two arguments: the engine's address, which comes last, and the pack.
        command = (*python, "-m", "pulumi.policy", request.args[-1], folder)
        return command, Path(folder), environment
    return (*python, folder, *request.args), Path(request.pwd), environment


def run(
    request: language_pb2.RunPluginRequest, context: ServicerContext, children: Children
) -> Iterator[Chunk]:
    """Stream the plugin's output as it arrives, then its exit code.

    Where the engine cancels the call, the plugin ends; otherwise a run would wait for it.
    """
    interpreter = Interpreter.of(request.info)
    if problem := interpreter.problem():
        yield from _failed(problem)
        return

    command, cwd, environment = launch(request, interpreter)

    def start(additions: Mapping[str, str]) -> subprocess.Popen[bytes]:
        child = children.start(
            command, cwd=cwd, environment={**environment, **additions}, piped=True
        )
        if not context.add_callback(lambda: children.stop(child)):
            children.stop(child)
        return child

    try:
        if request.kind == "analyzer":
            relay = PackRelay(start, children, name=_name(cwd))
            context.add_callback(relay.cancel)
            yield from relay.serve()
        else:
            yield from output_of(start({}), children)
    except OSError as error:
        yield from _failed(f"{command[0]} could not be started: {error}")


def _failed(text: str) -> Iterator[Chunk]:
    yield Chunk(stderr=f"{text}\n".encode())
    yield Chunk(exitcode=1)


def _name(folder: Path) -> str:
    return os.path.relpath(folder) if folder.is_relative_to(Path.cwd()) else str(folder)
