"""What a child prints, on its way to the engine."""

import os
import threading
from pathlib import Path

from pulumi_python_host.children import Children
from pulumi_python_host.output import Output


def follow(script: str, tmp_path: Path, lines: list[bytes] | None = None) -> list[str]:
    children, output = Children(), Output()
    child = children.start(["sh", "-c", script], cwd=tmp_path, environment=os.environ, piped=True)
    output.follow(child, children, None if lines is None else lines.append)
    chunks = [str(chunk.WhichOneof("output")) for chunk in output]
    return chunks


def test_exit_code_comes_last(tmp_path: Path) -> None:
    chunks = follow("echo out; echo err >&2; exit 3", tmp_path)
    assert sorted(chunks[:-1]) == ["stderr", "stdout"]
    assert chunks[-1] == "exitcode"


def test_first_line_can_be_taken_off(tmp_path: Path) -> None:
    lines: list[bytes] = []
    chunks = follow("printf '12'; printf '34\\nmore'", tmp_path, lines)
    assert lines == [b"1234"]
    assert chunks == ["stdout", "exitcode"]


def test_child_without_a_line(tmp_path: Path) -> None:
    lines: list[bytes] = []
    assert follow("exit 1", tmp_path, lines) == ["exitcode"]
    assert lines == [b""]


def test_grandchild_that_keeps_the_pipes_does_not_hold_the_end(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    chunks = follow(f"sleep 60 & echo $! > {pid_file}; exit 0", tmp_path)
    os.kill(int(pid_file.read_text()), 9)
    assert chunks == ["exitcode"]


def test_closing_ends_the_stream() -> None:
    output = Output()
    threading.Timer(0.05, output.close).start()
    assert list(output) == []
