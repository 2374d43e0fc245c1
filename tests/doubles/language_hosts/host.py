"""The part of a language host that does not depend on the language."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import language_pb2 as messages
from pulumi.runtime.proto import language_pb2_grpc, plugin_pb2


class Host(language_pb2_grpc.LanguageRuntimeServicer):
    """The calls of `pulumi up`, `install` and `package add`."""

    language: str

    def __init__(self, codegen: str, engine: str) -> None:
        self.codegen, self.engine = codegen, engine

    def Handshake(self, request: Any, context: Any) -> Any:
        return messages.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version="3.259.0")

    def GetRequiredPackages(self, request: Any, context: Any) -> Any:
        return messages.GetRequiredPackagesResponse()

    def About(self, request: Any, context: Any) -> Any:
        return messages.AboutResponse(executable=self.language, version="0")

    def Cancel(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()

    def GeneratePackage(self, request: Any, context: Any) -> Any:
        words = [self.codegen, self.language, request.directory, request.loader_target]
        completed = subprocess.run(words, input=request.schema, capture_output=True, text=True)
        if completed.returncode:
            context.abort(grpc.StatusCode.UNKNOWN, completed.stderr)
        return messages.GeneratePackageResponse()

    def Link(self, request: Any, context: Any) -> Any:
        folder = Path(request.info.program_directory)
        for package in request.packages:
            self.link(folder, package.package.name, package.path)
        return messages.LinkResponse(import_instructions="linked")

    def InstallDependencies(self, request: Any, context: Any) -> Iterator[Any]:
        completed = self.install(Path(request.info.program_directory))
        yield messages.InstallDependenciesResponse(stdout=completed.stdout)
        if completed.returncode:
            context.abort(grpc.StatusCode.UNKNOWN, "the dependencies cannot be installed")

    def Run(self, request: Any, context: Any) -> Any:
        values = {
            "monitor": request.monitor_address,
            "engine": self.engine,
            "project": request.project,
            "stack": request.stack,
            "organization": request.organization,
            "parallel": str(request.parallel),
            "config": json.dumps(dict(request.config)),
            "config_secret_keys": json.dumps(list(request.configSecretKeys)),
        }
        words, environment = self.program(Path(request.info.program_directory), request, values)
        # on stderr: the CLI has read its one line of stdout
        completed = subprocess.run(
            words, cwd=request.pwd, env={**os.environ, **environment}, stdout=sys.stderr
        )
        if completed.returncode == 0:
            return messages.RunResponse()
        return messages.RunResponse(error=f"the program ended with {completed.returncode}")

    def program(
        self, folder: Path, request: Any, values: Mapping[str, str]
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        """The command of the program in ``folder``, and its additional environment variables."""
        raise NotImplementedError

    def link(self, folder: Path, name: str, sdk: str) -> None:
        """Makes the package ``name``, whose SDK is at ``sdk``, a dependency of the program."""
        raise NotImplementedError

    def install(self, folder: Path) -> subprocess.CompletedProcess[bytes]:
        """Installs the program's dependencies."""
        raise NotImplementedError


def run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )


def serve(host: type[Host]) -> None:
    """Serves until the CLI's SIGINT; its address is the last argument, the generator the first."""
    has_ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: has_ended.set())
    server = grpc.server(ThreadPoolExecutor(16))
    service = host(sys.argv[1], sys.argv[-1])
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    parent = os.getppid()
    while not has_ended.wait(0.5) and os.getppid() == parent:
        pass
    os._exit(0)
