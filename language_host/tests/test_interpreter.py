"""The Python of a request."""

import sys
from pathlib import Path

import pytest
from pulumi.runtime.proto import language_pb2
from pulumi_python_host.interpreter import Interpreter


def info(root: Path, **options: str) -> language_pb2.ProgramInfo:
    message = language_pb2.ProgramInfo(
        root_directory=str(root), program_directory=str(root), entry_point="."
    )
    message.options.update(options)
    return message


def test_without_option_it_is_python3(tmp_path: Path) -> None:
    assert Interpreter.of(info(tmp_path)).executable == "python3"
    assert Interpreter.of(language_pb2.ProgramInfo()).executable == "python3"


@pytest.mark.parametrize("option", ["../env", "{parent}/env"])
def test_relative_option_counts_from_the_projects_file(tmp_path: Path, option: str) -> None:
    option = option.format(parent=tmp_path)
    interpreter = Interpreter.of(info(tmp_path / "project", virtualenv=option))
    assert interpreter.executable == str(tmp_path / "env" / "bin" / "python")
    problem = interpreter.problem()
    assert problem is not None
    assert str(tmp_path / "env") in problem


def test_activation(tmp_path: Path) -> None:
    interpreter = Interpreter.of(info(tmp_path, virtualenv="env"))
    environment = interpreter.activated({"PATH": "/bin", "PYTHONHOME": "/else", "A": "b"})
    assert environment == {
        "PATH": f"{tmp_path}/env/bin:/bin",
        "VIRTUAL_ENV": f"{tmp_path}/env",
        "A": "b",
    }


def test_own_environment_is_recognized(tmp_path: Path) -> None:
    (tmp_path / "env").symlink_to(sys.prefix)
    assert Interpreter.of(info(tmp_path, virtualenv="env")).is_running()
    assert not Interpreter.of(info(tmp_path, virtualenv="other")).is_running()
