"""The host's parts without an engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from pulumi.runtime.proto import analyzer_pb2, language_pb2

from toolchain.language_host import dependencies, provider_packages
from toolchain.language_host.children import Children
from toolchain.language_host.interpreter import Interpreter
from toolchain.language_host.output import Output
from toolchain.language_host.plugins import Plugin
from toolchain.language_host.relay import stack_variables


def info(root: Path, **options: str) -> language_pb2.ProgramInfo:
    message = language_pb2.ProgramInfo(
        root_directory=str(root), program_directory=str(root), entry_point="."
    )
    message.options.update(options)
    return message


class TestInterpreter:
    def test_without_option_it_is_python3(self, tmp_path: Path) -> None:
        assert Interpreter.of(info(tmp_path)).executable == "python3"
        assert Interpreter.of(language_pb2.ProgramInfo()).executable == "python3"

    @pytest.mark.parametrize("option", ["../env", "{parent}/env"])
    def test_relative_option_counts_from_the_projects_file(
        self, tmp_path: Path, option: str
    ) -> None:
        option = option.format(parent=tmp_path)
        found = Interpreter.of(info(tmp_path / "project", virtualenv=option))
        assert found.executable == str(tmp_path / "env" / "bin" / "python")
        problem = found.problem()
        assert problem is not None
        assert str(tmp_path / "env") in problem

    def test_activation(self, tmp_path: Path) -> None:
        found = Interpreter.of(info(tmp_path, virtualenv="env"))
        environment = found.activated({"PATH": "/bin", "PYTHONHOME": "/else", "A": "b"})
        assert environment == {
            "PATH": f"{tmp_path}/env/bin:/bin",
            "VIRTUAL_ENV": f"{tmp_path}/env",
            "A": "b",
        }

    def test_own_environment_is_recognized(self, tmp_path: Path) -> None:
        (tmp_path / "env").symlink_to(sys.prefix)
        assert Interpreter.of(info(tmp_path, virtualenv="env")).is_running()
        assert not Interpreter.of(info(tmp_path, virtualenv="other")).is_running()


class TestChildren:
    def start(self, children: Children, script: str, cwd: Path) -> subprocess.Popen[bytes]:
        return children.start(["sh", "-c", script], cwd=cwd, environment=os.environ, piped=True)

    def test_stop_reaches_what_a_child_has_started(self, tmp_path: Path) -> None:
        children = Children()
        child = self.start(children, "sleep 60 & echo $!; wait", tmp_path)
        assert child.stdout is not None and child.stderr is not None
        grandchild = int(child.stdout.readline())
        children.stop(child)
        assert child.returncode is not None
        self.await_end(grandchild)
        child.stdout.close()
        child.stderr.close()

    def test_deaf_child_is_killed(self, tmp_path: Path) -> None:
        children = Children()
        child = self.start(
            children, "trap '' TERM; echo ready; while :; do sleep 1; done", tmp_path
        )
        assert child.stdout is not None and child.stderr is not None
        child.stdout.readline()
        children.stop(child, grace=0.1)
        assert child.returncode == -9
        child.stdout.close()
        child.stderr.close()

    def test_nothing_starts_after_the_end(self, tmp_path: Path) -> None:
        children = Children()
        children.stop_all()
        with pytest.raises(ChildProcessError):
            self.start(children, "true", tmp_path)

    @staticmethod
    def await_end(pid: int) -> None:
        while True:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return
            stat = Path(f"/proc/{pid}/stat")
            if stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return
            time.sleep(0.05)


class TestOutput:
    def follow(self, script: str, tmp_path: Path, lines: list[bytes] | None = None) -> list[str]:
        children, output = Children(), Output()
        child = children.start(
            ["sh", "-c", script], cwd=tmp_path, environment=os.environ, piped=True
        )
        output.follow(child, children, None if lines is None else lines.append)
        chunks = [str(chunk.WhichOneof("output")) for chunk in output]
        return chunks

    def test_exit_code_comes_last(self, tmp_path: Path) -> None:
        chunks = self.follow("echo out; echo err >&2; exit 3", tmp_path)
        assert sorted(chunks[:-1]) == ["stderr", "stdout"]
        assert chunks[-1] == "exitcode"

    def test_first_line_can_be_taken_off(self, tmp_path: Path) -> None:
        lines: list[bytes] = []
        chunks = self.follow("printf '12'; printf '34\\nmore'", tmp_path, lines)
        assert lines == [b"1234"]
        assert chunks == ["stdout", "exitcode"]

    def test_child_without_a_line(self, tmp_path: Path) -> None:
        lines: list[bytes] = []
        assert self.follow("exit 1", tmp_path, lines) == ["exitcode"]
        assert lines == [b""]

    def test_grandchild_that_keeps_the_pipes_does_not_hold_the_end(self, tmp_path: Path) -> None:
        pid_file = tmp_path / "pid"
        chunks = self.follow(f"sleep 60 & echo $! > {pid_file}; exit 0", tmp_path)
        os.kill(int(pid_file.read_text()), 9)
        assert chunks == ["exitcode"]

    def test_closing_ends_the_stream(self) -> None:
        output = Output()
        threading.Timer(0.05, output.close).start()
        assert list(output) == []


class TestPlugin:
    def request(self, kind: str) -> language_pb2.RunPluginRequest:
        return language_pb2.RunPluginRequest(
            pwd="/project",
            args=["--logtostderr", "127.0.0.1:1"],
            env=["A=b=c", "B="],
            info=language_pb2.ProgramInfo(root_directory="/plugin", program_directory="/plugin"),
            kind=kind,
        )

    def test_provider_gets_all_arguments_and_the_projects_directory(self) -> None:
        plugin = Plugin.of(self.request("resource"), Interpreter("python3"))
        assert plugin.command == ("python3", "-u", "/plugin", "--logtostderr", "127.0.0.1:1")
        assert plugin.cwd == Path("/project")
        assert plugin.environment == {"A": "b=c", "B": ""}

    def test_pack_gets_the_address_and_its_own_directory(self) -> None:
        plugin = Plugin.of(self.request("analyzer"), Interpreter("python3"))
        assert plugin.command[2:] == ("-m", "pulumi.policy", "127.0.0.1:1", "/plugin")
        assert plugin.cwd == Path("/plugin")


def test_stack_variables() -> None:
    request = analyzer_pb2.AnalyzerStackConfigureRequest(
        project="p", stack="s", dry_run=True, config={"p:key": "value"}
    )
    variables = stack_variables(request)
    assert json.loads(variables.pop("PULUMI_CONFIG")) == {"p:key": "value"}
    assert variables == {
        "PULUMI_PROJECT": "p",
        "PULUMI_STACK": "s",
        "PULUMI_ORGANIZATION": "organization",
        "PULUMI_DRY_RUN": "true",
    }


class TestProviderPackages:
    def install(self, site: Path, name: str, plugin: object, record: bool = True) -> None:
        package, info = site / name, site / f"{name}-1.2.3.dist-info"
        package.mkdir()
        info.mkdir()
        (package / "pulumi-plugin.json").write_text(json.dumps(plugin))
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2.3\n")
        if record:
            (info / "RECORD").write_text(f"{name}/pulumi-plugin.json,,\n{name}/__init__.py,,\n")

    def test_only_resource_providers_count(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.install(tmp_path, "pulumi_one", {"resource": True})
        self.install(tmp_path, "pulumi_two", {"resource": True, "name": "deux", "version": "9.0.0"})
        self.install(tmp_path, "pulumi_policy", {"resource": False, "name": "policy"})
        self.install(tmp_path, "pulumi_broken", "no object")
        self.install(tmp_path, "pulumi_unrecorded", {"resource": True}, record=False)
        monkeypatch.setattr(sys, "path", [str(tmp_path)])
        assert provider_packages.find() == [
            {"name": "deux", "version": "9.0.0", "server": ""},
            {"name": "one", "version": "1.2.3", "server": ""},
        ]

    def test_other_interpreter_is_asked(self, tmp_path: Path) -> None:
        self.install(tmp_path, "pulumi_one", {"resource": True})
        python = tmp_path / "python"
        python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
        python.chmod(0o755)
        found = dependencies.find_packages(Interpreter(str(python), tmp_path))
        assert {"name": "one", "version": "1.2.3", "server": ""} in found

    def test_interpreter_that_does_not_run_has_none(self, tmp_path: Path) -> None:
        assert dependencies.find_packages(Interpreter("/nowhere/python", tmp_path)) == []
