"""`earshot lint`: the mistakes in files that somebody has, each at its place."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from earshot.cli.output import emit, formats, save
from earshot.errors import EarshotError
from earshot.lint.baseline import Recorded, as_text, read_baseline, recorded, with_baseline
from earshot.lint.files import choose
from earshot.lint.formats import SUFFIXES, Format, render
from earshot.lint.ignores import of_rules, rules_named, with_comments
from earshot.lint.judge import judge
from earshot.lint.model import Linted
from earshot.lint.outcome import Failed, Outcome, counted
from earshot.lint.source_lines import SourceLines
from earshot.report.terminal import Terminal
from earshot.report.wording import visible


@dataclass(frozen=True)
class Choice:
    """Which rules count, and where known mistakes are read from and written to."""

    select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    baseline: Path | None = None
    write_baseline: Path | None = None


def run(
    paths: Sequence[Path], choice: Choice, format: Format | None, output: Sequence[Path]
) -> int:
    """Judges every file of ``paths`` and shows the result; the exit code.

    A file that cannot be judged is told on stderr, and ends nothing. Raises EarshotError for bad
    options and for a path that does not exist.
    """
    targets = formats(output, format, SUFFIXES)
    _refuse_folder(choice.write_baseline)
    outcome, known = _outcome(paths, choice)
    for file, chosen in targets.items():
        save(file, render(outcome, chosen))
    printed = Format.TEXT if targets else format or Format.TEXT
    emit(render(outcome, printed, Terminal.of(sys.stdout)))
    if choice.write_baseline is not None:
        save(choice.write_baseline, as_text(known))
        _say(f"written: {choice.write_baseline}, {counted(len(known), 'mistake')}")
    for failed in outcome.failed:
        _say(f"error: {failed.error}")
    return outcome.exit_code


def _outcome(paths: Sequence[Path], choice: Choice) -> tuple[Outcome, frozenset[Recorded]]:
    """What became of all files, and the baseline, which may have just been made from them."""
    select = rules_named(choice.select, "--select")
    ignore = rules_named(choice.ignore, "--ignore")
    known = read_baseline(choice.baseline) if choice.baseline is not None else frozenset()
    chosen = choose(paths)
    root = Path.cwd()
    lines = SourceLines(root)
    linted: list[Linted] = []
    failed: list[Failed] = []
    for file in chosen.files:
        try:
            linted.append(with_comments(of_rules(judge(file, os.environ), select, ignore), lines))
        except EarshotError as error:
            failed.append(Failed(str(file), error))
    if choice.write_baseline is not None:
        known = recorded(linted, root)
    ignored = [with_baseline(item, known, root) for item in linted]
    return Outcome((*ignored, *chosen.passed_over), failed, root, lines), known


def _refuse_folder(file: Path | None) -> None:
    if file is not None and file.is_dir():
        raise EarshotError(f"--write-baseline {file}", observed="is a folder", allowed="a file")


def _say(message: str) -> None:
    print(visible(message), file=sys.stderr)
