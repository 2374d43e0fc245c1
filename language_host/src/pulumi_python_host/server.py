"""``pulumirpc.LanguageRuntime``: its calls, and its server, which ends with the engine."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2
from google.protobuf.message_factory import GetMessageClass
from grpc import ServicerContext
from pulumi.runtime.proto import language_pb2, plugin_pb2

from pulumi_python_host import dependencies, packages, plugins, program
from pulumi_python_host.children import Children
from pulumi_python_host.interpreter import Interpreter
from pulumi_python_host.relay import CHANNEL_OPTIONS, WORKERS

VERSION = "3.259.0"


class LanguageRuntime:
    """The calls of a Python host. Methods have the protocol's names.

    Calls that only ``pulumi new`` and `convert` use are left out.
    """

    def __init__(self, children: Children, *, engine_address: str, bin_directory: Path) -> None:
        self._children = children
        self._engine_address = engine_address
        self._bin = bin_directory

    def Handshake(
        self, request: language_pb2.LanguageHandshakeRequest, context: ServicerContext
    ) -> language_pb2.LanguageHandshakeResponse:
        """Called only by an engine that attaches to a running host."""
        self._engine_address = request.engine_address
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(
        self, request: empty_pb2.Empty, context: ServicerContext
    ) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=VERSION)

    def About(
        self, request: language_pb2.AboutRequest, context: ServicerContext
    ) -> language_pb2.AboutResponse:
        executable, version = dependencies.describe(Interpreter.of(request.info))
        return language_pb2.AboutResponse(executable=executable, version=version)

    def GetRequiredPackages(
        self, request: language_pb2.GetRequiredPackagesRequest, context: ServicerContext
    ) -> language_pb2.GetRequiredPackagesResponse:
        packages = dependencies.find_packages(Interpreter.of(request.info))
        return language_pb2.GetRequiredPackagesResponse(
            packages=[
                plugin_pb2.PackageDependency(
                    kind="resource",
                    name=package["name"],
                    version=package["version"],
                    server=package["server"],
                )
                for package in packages
            ]
        )

    def GetProgramDependencies(
        self, request: language_pb2.GetProgramDependenciesRequest, context: ServicerContext
    ) -> language_pb2.GetProgramDependenciesResponse:
        installed_packages = dependencies.list_installed(
            Interpreter.of(request.info), transitive=request.transitiveDependencies
        )
        return language_pb2.GetProgramDependenciesResponse(
            dependencies=[
                language_pb2.DependencyInfo(name=name, version=version)
                for name, version in installed_packages
            ]
        )

    def InstallDependencies(
        self, request: language_pb2.InstallDependenciesRequest, context: ServicerContext
    ) -> Iterator[language_pb2.InstallDependenciesResponse]:
        return dependencies.install(request, context, self._children)

    def GeneratePackage(
        self, request: language_pb2.GeneratePackageRequest, context: ServicerContext
    ) -> language_pb2.GeneratePackageResponse:
        return packages.generate(request, context, codegen=self._bin / "pulumi-codegen")

    def Link(
        self, request: language_pb2.LinkRequest, context: ServicerContext
    ) -> language_pb2.LinkResponse:
        return packages.link(request)

    def Run(
        self, request: language_pb2.RunRequest, context: ServicerContext
    ) -> language_pb2.RunResponse:
        return program.run(
            request,
            context,
            self._children,
            engine_address=self._engine_address,
            script=self._bin / "pulumi-language-python-exec",
        )

    def RunPlugin(
        self, request: language_pb2.RunPluginRequest, context: ServicerContext
    ) -> Iterator[language_pb2.RunPluginResponse]:
        return plugins.run(request, context, self._children)

    def Cancel(self, request: empty_pb2.Empty, context: ServicerContext) -> empty_pb2.Empty:
        """Called at the end of a run; the engine's SIGINT follows and does the rest."""
        return empty_pb2.Empty()


ENGINE_POLL_SECONDS = 0.5


def serve(*, engine_address: str, engine_pid: int, bin_directory: Path) -> int:
    """Serve until a signal (INT, TERM, HUP) or the engine's end; then end this process's children.

    The first line on stdout is the port. The user would see any later line, so none is printed.
    """
    ending = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: ending.set())

    children = Children()
    service = LanguageRuntime(children, engine_address=engine_address, bin_directory=bin_directory)
    server = grpc.server(ThreadPoolExecutor(WORKERS), options=CHANNEL_OPTIONS)
    server.add_generic_rpc_handlers((_handlers(service),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
    except BrokenPipeError:  # the engine is gone already
        ending.set()

    # Not by PR_SET_PDEATHSIG: that signals the end of the engine's *thread*, and Go's threads end
    # early. Only the parent's pid shows that the engine is gone.
    while not ending.wait(ENGINE_POLL_SECONDS):
        if os.getppid() != engine_pid:
            break
    children.stop_all()
    if os.getppid() != engine_pid:
        # imported here: a host that ends with its engine has no use for it
        from pulumi_python_host.orphans import end_orphans

        end_orphans(os.environ, report=lambda _: None)
    server.stop(grace=0.2).wait(1)
    os._exit(0)  # a worker still inside a call must not hold up the exit


def _handlers(service: LanguageRuntime) -> Any:
    """Handlers of the methods that ``service`` has; gRPC answers UNIMPLEMENTED for the others.

    The generated servicer class would raise for those, and the user would see the traceback.
    """
    descriptor = language_pb2.DESCRIPTOR.services_by_name["LanguageRuntime"]
    handlers = {}
    for method in descriptor.methods:
        implementation = getattr(service, method.name, None)
        if implementation is None:
            continue
        make = (
            grpc.unary_stream_rpc_method_handler
            if method.server_streaming
            else grpc.unary_unary_rpc_method_handler
        )
        handlers[method.name] = make(
            implementation,
            request_deserializer=GetMessageClass(method.input_type).FromString,
            response_serializer=GetMessageClass(method.output_type).SerializeToString,
        )
    return grpc.method_handlers_generic_handler(descriptor.full_name, handlers)
