"""`earshot lint`: the mistakes in a user's files, each at its place."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from earshot.cli.output import (
    STDOUT,
    emit,
    formats,
    printed,
    refuse_outputs,
    refuse_read,
    refuse_replacing,
    replaced,
    save,
)
from earshot.errors import EarshotError
from earshot.facts.settings import NEWEST
from earshot.files.reading import read_bytes
from earshot.files.stack_files import current_folder
from earshot.files.streams import to_stderr
from earshot.lint.check import check
from earshot.lint.compose_files import check_compose, check_together
from earshot.lint.files import choose, overlays_of
from earshot.lint.formats import SUFFIXES, LintFormat, render
from earshot.lint.ignores import rules_named, with_comments, with_rules
from earshot.lint.model import (
    FailedFile,
    FileOptions,
    FileReport,
    Outcome,
    count_of,
    without_repeats,
)
from earshot.lint.source_lines import SourceLines
from earshot.report.terminal import Terminal
from earshot.visible import visible

if TYPE_CHECKING:
    from earshot.lint.baseline import BaselineEntry

COMPOSE = (".yml", ".yaml")


@dataclass(frozen=True)
class Choice:
    """The values of the command's options: rules, baselines, and facts about the files.

    ``together`` are Compose files to be merged. With ``skip_unrelated`` a named file without a
    broker is skipped like in a folder. With ``fix`` the files are fixed before they are checked,
    and the changes shown; with ``diff``, also beside ``fix``, the changes are only shown.
    """

    select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    baseline: Path | None = None
    write_baseline: Path | None = None
    together: Sequence[Path] = ()
    profiles: Sequence[str] = ()
    kafka_version: str = ""
    skip_unrelated: bool = False
    fix: bool = False
    diff: bool = False
    explain: str = ""
    """The client whose walk is printed instead of findings."""
    force: bool = False
    """True if a result may replace any file."""


def run(
    paths: Sequence[Path], choice: Choice, format: LintFormat | None, output: Sequence[Path]
) -> int:
    """Checks every file of ``paths`` and shows the result; the exit code.

    A file that cannot be checked is reported on stderr; the others are still checked.
    Raises EarshotError for bad options and for a path that does not exist.
    """
    targets = formats(output, format, SUFFIXES)
    baseline = choice.write_baseline
    if baseline is not None and baseline.is_dir():
        subject = f"--write-baseline {baseline}"
        raise EarshotError(subject, observed="is a folder", allowed="a file")
    written_files = [*output, *([baseline] if baseline else [])]
    if any(file.is_file() for file in written_files):
        refuse_read(written_files, (*choose(paths).files, *choice.together))
        baseline_files = (choice.baseline,) if choice.baseline else ()
        refuse_outputs(output, baseline_files, choice.force)
    if baseline is not None and not choice.force and not _is_baseline(baseline):
        refuse_replacing(baseline, "a baseline")
    known_entries: frozenset[BaselineEntry] = frozenset()
    if choice.baseline is not None:
        from earshot.lint.baseline import read_baseline

        known_entries = read_baseline(choice.baseline)
    diff_text = _fix_files(paths, choice) if choice.fix or choice.diff else ""
    outcome, known_entries = _outcome(paths, choice, known_entries)
    unwritten = _save_all(outcome, targets)  # raised once stdout has the findings
    to_stdout = printed(targets, format, LintFormat.TEXT)
    if diff_text:
        if to_stdout is LintFormat.TEXT:
            emit(f"{visible(diff_text)}\n")
        else:
            to_stderr(diff_text)
    emit(render(outcome, to_stdout, Terminal.of(sys.stdout)))
    if unwritten is not None:
        raise unwritten
    if baseline is not None:
        from earshot.lint.baseline import as_text

        save(baseline, as_text(known_entries))
        to_stderr(f"written: {baseline}, {count_of(len(known_entries), 'mistake')}")
    for failed_file in outcome.failed:
        to_stderr(f"error: {failed_file.error}")
    return outcome.exit_code


def explain(paths: Sequence[Path], choice: Choice) -> int:
    """Prints the walk of one client; its exit code. Raises EarshotError."""
    from earshot.lint.explain import explain_client

    files = [*choice.together, *paths]
    if not files or (paths and (choice.together or len(paths) > 1)) or files[0].is_dir():
        raise EarshotError(
            f"--explain {choice.explain}",
            observed=f"found with {count_of(len(files), 'path')}",
            allowed="one Compose file, or -f FILE -f FILE",
        )
    options = FileOptions(_release(choice.kafka_version), choice.profiles)
    text, code = explain_client(files, choice.explain, options)
    emit(visible(text))
    return code


def _is_baseline(file: Path) -> bool:
    from earshot.lint.baseline import read_baseline

    if not file.is_file():
        return False
    try:
        read_baseline(file)
    except EarshotError:
        return False
    return True


def _outcome(
    paths: Sequence[Path], choice: Choice, baseline: frozenset[BaselineEntry]
) -> tuple[Outcome, frozenset[BaselineEntry]]:
    """The reports of all files, and the baseline, which may have just been created from them."""
    select = _selected(choice)
    ignore = rules_named(choice.ignore, "--ignore")
    if select and not select - ignore:
        observed = f"has all rules of --select: {', '.join(sorted(select))}"
        raise EarshotError("--ignore", observed=observed, allowed="a selected rule remains")
    if not (paths or choice.together):
        raise EarshotError("earshot lint", observed="names no file", allowed="PATH..., or -f FILE")
    options = FileOptions(_release(choice.kafka_version), choice.profiles)
    chosen = choose(paths)
    root, today = current_folder(), date.today()
    lines = SourceLines(root)
    linted: list[FileReport] = []
    failed_files: list[FailedFile] = []
    checks = [(file, partial(check, file, os.environ, options)) for file in chosen.files]
    named_files = chosen.named
    if together := choice.together:  # reported by the name of the first file
        checks.insert(0, (together[0], partial(check_together, together, os.environ, options)))
        named_files |= {together[0]}
    for file, check_file in checks:
        try:
            result = with_rules(check_file(), select, ignore)
            result = replace(result, is_named=file in named_files and not choice.skip_unrelated)
            linted.append(with_comments(result, lines, today))
        except EarshotError as error:
            failed_files.append(FailedFile(str(file), error))
    linted = without_repeats(linted, root)
    if choice.write_baseline is not None or baseline:
        from earshot.lint.baseline import baseline_entries, with_baseline  # slow to import

        if choice.write_baseline is not None:
            baseline = baseline_entries(linted, root, baseline)
        linted = [with_baseline(report, baseline, root, today) for report in linted]
    return Outcome((*linted, *chosen.passed_over), failed_files, root, lines), baseline


def _selected(choice: Choice) -> frozenset[str]:
    """The rules of --select. Raises EarshotError for a rule that does not check files."""
    select = rules_named(choice.select, "--select")
    if select:
        from earshot.rules.evaluate import rules_at  # all rules: slow to import
        from earshot.rules.rule import AppliedAt

        of_files = [rule.id for rule in rules_at(AppliedAt.FILE)]
        if other_rules := sorted(select - {*of_files}):
            raise EarshotError(
                "--select",
                observed=f"no file is checked by {', '.join(other_rules)}",
                allowed=", ".join(of_files),
                remedy="for a stack's plan run: earshot plan --check",
            )
    return select


def _save_all(outcome: Outcome, targets: Mapping[Path, LintFormat]) -> EarshotError | None:
    """Writes ``outcome`` to files; the first error, after the others have been written."""
    first_error = None
    for file, chosen in targets.items():
        if file != STDOUT:
            try:
                save(file, render(outcome, chosen))
            except EarshotError as error:
                first_error = first_error or error
    return first_error


def _fix_files(paths: Sequence[Path], choice: Choice) -> str:
    """Fixes files, with --fix; returns the changes as diffs. Raises EarshotError."""
    from earshot.lint.fix import difference, fix_text

    if choice.together:
        raise EarshotError(
            "--fix" if choice.fix else "--diff",
            observed="cannot tell into which of the files after -f a line belongs",
            remedy="name one Compose file without -f",
        )
    select = _selected(choice)
    ignore = rules_named(choice.ignore, "--ignore")
    options = FileOptions(_release(choice.kafka_version), choice.profiles)
    today, diffs = date.today(), []
    is_written = choice.fix and not choice.diff
    for file in choose(paths).files:
        if file.suffix not in COMPOSE:
            continue
        if overlays := overlays_of(file):
            names = ", ".join(path.name for path in overlays)
            to_stderr(f"not fixed: {file}: {names} is merged into it; fix each by hand")
            continue

        def report_of(text: str, file: Path = file) -> FileReport:
            linted = with_rules(check_compose(text, file, os.environ, options), select, ignore)
            return with_comments(linted, lambda _: text.split("\n"), today)

        try:
            old_text = read_bytes(file).decode("utf-8")
            fixed_file = fix_text(old_text, str(file), report_of)
        except (OSError, ValueError, EarshotError):
            continue  # reported where the file is checked
        if not fixed_file.fixed_mistakes:
            continue
        if is_written and not replaced(file, old_text, fixed_file.text):
            to_stderr(f"not fixed: {file} was edited meanwhile; run the same command again")
            continue
        diffs.append(difference(old_text, fixed_file.text, str(file)))
        verb = "fixed" if is_written else "can be fixed"
        to_stderr(f"{verb}: {file}, {count_of(len(fixed_file.fixed_mistakes), 'mistake')}")
    return "\n".join(diffs)


def _release(text: str) -> tuple[int, int] | None:
    """`3.9` or `3.9.1` as (3, 9); None for an empty text. Raises EarshotError."""
    if not text:
        return None
    match = re.fullmatch(r"(\d)\.(\d{1,2})(?:\.\d{1,3})*", text, re.ASCII)
    if match is None or int(match[1]) > NEWEST[0]:
        raise EarshotError(
            f"--kafka-version {text}",
            observed="names no release of Kafka",
            allowed="Kafka's own number, such as 2.8 or 3.9 (Confluent 7.x is Kafka 3.x)",
        )
    return int(match[1]), int(match[2])
