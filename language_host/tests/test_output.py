"""The output of a child, on its way to the engine."""

import os
from pathlib import Path

import pytest
from pulumi_python_host.children import Children
from pulumi_python_host.output import output_of


def follow(script: str, tmp_path: Path, lines: list[bytes] | None = None) -> list[str]:
    children = Children()
    child = children.start(["sh", "-c", script], cwd=tmp_path, environment=os.environ, piped=True)
    output = output_of(child, children, None if lines is None else lines.append)
    return [str(chunk.WhichOneof("output")) for chunk in output]


def test_exit_code_comes_last(tmp_path: Path) -> None:
    chunks = follow("echo out; echo err >&2; exit 3", tmp_path)
    assert sorted(chunks[:-1]) == ["stderr", "stdout"]
    assert chunks[-1] == "exitcode"


@pytest.mark.parametrize(
    ("script", "line", "later_chunks"),
    [("printf '12'; printf '34\\nmore'", b"1234", ["stdout"]), ("exit 1", b"", [])],
)
def test_the_first_line_can_be_separated(
    tmp_path: Path, script: str, line: bytes, later_chunks: list[str]
) -> None:
    lines: list[bytes] = []
    assert follow(script, tmp_path, lines) == [*later_chunks, "exitcode"]
    assert lines == [line]


def test_grandchild_that_keeps_the_pipes_does_not_hold_the_end(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    chunks = follow(f"sleep 60 & echo $! > {pid_file}; exit 0", tmp_path)
    os.kill(int(pid_file.read_text()), 9)
    assert chunks == ["exitcode"]
