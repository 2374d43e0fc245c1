"""Runs the user's program by Pulumi's own script for it."""

import json
import os
import signal
from pathlib import Path

from grpc import ServicerContext
from pulumi.runtime.proto import language_pb2

from pulumi_python_host.children import Children
from pulumi_python_host.interpreter import Interpreter

# The script's exit code for an error that the user has seen already.
ERROR_ALREADY_SHOWN = 32


def run(
    request: language_pb2.RunRequest,
    context: ServicerContext,
    children: Children,
    *,
    engine_address: str,
    script: Path,
) -> language_pb2.RunResponse:
    """Run the program to its end; it shares the host's output, so `print` shows a message."""
    interpreter = Interpreter.of(request.info)
    if problem := interpreter.problem():
        return language_pb2.RunResponse(error=problem)
    environment = interpreter.activated(os.environ) | {
        "PULUMI_CONFIG": json.dumps(dict(request.config)),
        "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
    }
    try:
        child = children.start(
            [interpreter.executable, "-u", script, *_arguments(request, engine_address)],
            cwd=Path(request.pwd),
            environment=environment,
        )
    except OSError as error:
        return language_pb2.RunResponse(error=f"the program could not be started: {error}")
    if not context.add_callback(lambda: children.stop(child)):  # cancelled in the meantime
        children.stop(child)
    return _response(children.wait(child))


def _arguments(request: language_pb2.RunRequest, engine_address: str) -> list[str]:
    info = request.info
    entry_point = "" if info.entry_point == "." else info.entry_point
    flags = {
        "monitor": request.monitor_address,
        "engine": engine_address,
        "project": request.project,
        "stack": request.stack,
        "root_directory": info.root_directory,
        "pwd": request.pwd,
        "dry_run": "true" if request.dryRun else "false",
        "parallel": str(request.parallel),
        "organization": request.organization,
    }
    # `--flag=value` is one argument: a value may begin with a dash.
    words = [f"--{name}={value}" for name, value in flags.items()]
    return [*words, str(Path(info.program_directory) / entry_point), *request.args]


def _response(code: int) -> language_pb2.RunResponse:
    if code == 0:
        return language_pb2.RunResponse()
    if code == ERROR_ALREADY_SHOWN:
        return language_pb2.RunResponse(bail=True)
    if code < 0:
        name = signal.Signals(-code).name
        return language_pb2.RunResponse(error=f"the program was ended by {name}")
    return language_pb2.RunResponse(error=f"program exited with non-zero exit code: {code}")
