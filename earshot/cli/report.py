"""`earshot report`: prints saved reports from files or buckets, in any format."""

from collections.abc import Sequence
from pathlib import Path

from earshot.cli.output import SUFFIXES, formats, refuse_outputs, show
from earshot.errors import EarshotError
from earshot.files.reading import content_of
from earshot.files.stack_files import stack_name
from earshot.project import Project
from earshot.remote.bucket import fetch, is_url
from earshot.report import Format
from earshot.report.json import read_report
from earshot.report.merge import Source, merge
from earshot.validation.result import MAX_CELLS


def run(
    files: Sequence[str],
    stack: str | None,
    format: Format | None,
    output: Sequence[Path],
    *,
    force: bool = False,
) -> int:
    """Prints the reports of ``stack`` and ``files`` as one; returns its exit code."""
    targets = formats(output, format, SUFFIXES)
    names = list(files)
    if stack is not None:
        names.insert(0, str(_of_stack(stack)))
    if not names:
        raise EarshotError(
            "no report",
            observed="neither --stack nor a file is given",
            remedy="earshot report --stack local, or earshot report FILE...",
        )
    input_files = [Path(name) for name in names if not is_url(name)]
    refuse_outputs([*targets], input_files, force)
    report = merge(_sources(names))
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


def _sources(names: Sequence[str]) -> list[Source]:
    """The reports called ``names``. Raises EarshotError, also for too many cells."""
    sources: list[Source] = []
    cells = 0
    for name in names:
        sources.append(_source(name))
        cells += len(sources[-1].report.cells)
        if cells > MAX_CELLS:
            raise EarshotError(
                "reports",
                observed=f"have {cells:,} cells up to {name}",
                allowed=f"{MAX_CELLS:,} at most in all",
                remedy="print fewer reports as one",
            )
    return sources


def _source(name: str) -> Source:
    content = fetch(name) if is_url(name) else content_of(Path(name), f"file {name}")
    return Source(name, read_report(content, name))
