"""Commands that start packs and provider plugins."""

from pathlib import Path

from pulumi.runtime.proto import language_pb2
from pulumi_python_host.interpreter import Interpreter
from pulumi_python_host.plugins import launch


def request(kind: str) -> language_pb2.RunPluginRequest:
    return language_pb2.RunPluginRequest(
        pwd="/project",
        args=["--logtostderr", "127.0.0.1:1"],
        env=["A=b=c", "B="],
        info=language_pb2.ProgramInfo(root_directory="/plugin", program_directory="/plugin"),
        kind=kind,
    )


def test_provider_gets_all_arguments_and_the_projects_directory() -> None:
    command, cwd, environment = launch(request("resource"), Interpreter("python3"))
    assert command == ("python3", "-u", "/plugin", "--logtostderr", "127.0.0.1:1")
    assert cwd == Path("/project")
    assert environment == {"A": "b=c", "B": ""}


def test_pack_gets_the_address_and_its_own_directory() -> None:
    command, cwd, _ = launch(request("analyzer"), Interpreter("python3"))
    assert command[2:] == ("-m", "pulumi.policy", "127.0.0.1:1", "/plugin")
    assert cwd == Path("/plugin")
