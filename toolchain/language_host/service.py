"""``pulumirpc.LanguageRuntime``: one method per call of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf import empty_pb2
from pulumi.runtime.proto import language_pb2, plugin_pb2

from toolchain.language_host import dependencies, plugins, program
from toolchain.language_host.children import Children
from toolchain.language_host.interpreter import Interpreter

VERSION = "3.259.0"


class LanguageRuntime:
    """The calls of a Python host. Methods have the protocol's names.

    Calls that only ``pulumi new``, ``convert`` and ``package add`` use are left out.
    """

    def __init__(self, children: Children, *, engine_address: str, bin_directory: Path) -> None:
        self._children = children
        self._engine_address = engine_address
        self._bin = bin_directory

    def Handshake(
        self, request: language_pb2.LanguageHandshakeRequest, context: Any
    ) -> language_pb2.LanguageHandshakeResponse:
        """Called only by an engine that attaches to a running host."""
        self._engine_address = request.engine_address
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: empty_pb2.Empty, context: Any) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=VERSION)

    def About(self, request: language_pb2.AboutRequest, context: Any) -> language_pb2.AboutResponse:
        executable, version = dependencies.describe(Interpreter.of(request.info))
        return language_pb2.AboutResponse(executable=executable, version=version)

    def GetRequiredPackages(
        self, request: language_pb2.GetRequiredPackagesRequest, context: Any
    ) -> language_pb2.GetRequiredPackagesResponse:
        found = dependencies.find_packages(Interpreter.of(request.info))
        return language_pb2.GetRequiredPackagesResponse(
            packages=[
                plugin_pb2.PackageDependency(
                    kind="resource",
                    name=package["name"],
                    version=package["version"],
                    server=package["server"],
                )
                for package in found
            ]
        )

    def GetProgramDependencies(
        self, request: language_pb2.GetProgramDependenciesRequest, context: Any
    ) -> language_pb2.GetProgramDependenciesResponse:
        found = dependencies.list_installed(
            Interpreter.of(request.info), transitive=request.transitiveDependencies
        )
        return language_pb2.GetProgramDependenciesResponse(
            dependencies=[language_pb2.DependencyInfo(name=n, version=v) for n, v in found]
        )

    def InstallDependencies(
        self, request: language_pb2.InstallDependenciesRequest, context: Any
    ) -> Iterator[language_pb2.InstallDependenciesResponse]:
        return dependencies.install(request, context, self._children)

    def Run(self, request: language_pb2.RunRequest, context: Any) -> language_pb2.RunResponse:
        return program.run(
            request,
            context,
            self._children,
            engine_address=self._engine_address,
            script=self._bin / "pulumi-language-python-exec",
        )

    def RunPlugin(
        self, request: language_pb2.RunPluginRequest, context: Any
    ) -> Iterator[language_pb2.RunPluginResponse]:
        return plugins.run(request, context, self._children)

    def Cancel(self, request: empty_pb2.Empty, context: Any) -> empty_pb2.Empty:
        """Called at the end of a run; the engine's SIGINT follows and does the rest."""
        return empty_pb2.Empty()
