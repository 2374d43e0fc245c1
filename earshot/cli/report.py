"""`earshot report`: saved reports, in any format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from earshot.cli.output import formats, show
from earshot.errors import EarshotError
from earshot.project import Project, stack_name
from earshot.report import Format
from earshot.report.json import read_report
from earshot.report.merge import Source, merge


def run(
    files: Sequence[Path], stack: str | None, format: Format | None, output: Sequence[Path]
) -> int:
    """Prints the report of ``stack`` and ``files``, as one; the result is its exit code."""
    targets = formats(output, format)
    named = list(files)
    if stack is not None:
        named.insert(0, _of_stack(stack))
    if not named:
        raise EarshotError(
            "no report",
            observed="neither --stack nor a file is given",
            remedy="earshot report --stack local, or earshot report FILE...",
        )
    report = merge([Source(str(file), read_report(_bytes(file), str(file))) for file in named])
    show(report, targets, format)
    return report.exit_code


def _of_stack(stack: str) -> Path:
    name = stack_name(stack)
    file = Project.find().report_file(stack)
    if not file.exists():
        raise EarshotError(
            f"stack {name}",
            observed=f"has no report yet: {file} does not exist",
            remedy=f"earshot validate --stack {name}",
        )
    return file


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as reason:
        raise EarshotError(f"file {file}", observed=f"cannot be read ({reason.strerror})") from None
