"""`earshot` in this process, and what it prints."""

import json
from typing import NamedTuple

import pytest

from earshot.cli import run
from earshot.placement import plan_stack
from earshot.project import Project
from earshot.validation.contract import Contract


class Printed(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


class Earshot:
    """Runs the command with the words of a line, and further words that may have spaces."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, line: str, *words: str) -> Printed:
        code = run([*line.split(), *words])
        return Printed(code, *self._capsys.readouterr())

    def output(self, line: str, *words: str) -> str:
        """The output of a command that succeeds without a message."""
        code, output, errors = self(line, *words)
        assert (code, errors) == (0, ""), (code, errors)
        return output

    def refusal(self, line: str, *words: str) -> str:
        """The message of a command that exits with 2 and has no output."""
        code, output, errors = self(line, *words)
        assert (code, output) == (2, ""), (code, output, errors)
        return errors


def save_stack(project: Project, name: str, **cluster: object) -> None:
    """Writes the file of the stack ``name`` with the keys of ``cluster``."""
    text = json.dumps({"config": {"earshot:cluster": cluster}})
    project.stack_file(name).write_text(text)


def save_contract(project: Project, name: str, placement: str = "local") -> Contract:
    """Writes the contract that an update of the stack leaves, and returns it."""
    planned = plan_stack(project.read_cluster(name), name, project.state_dir(name))
    contract = Contract.of(planned.plan, name, placement)
    file = project.contract_file(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(contract.to_json())
    return contract
