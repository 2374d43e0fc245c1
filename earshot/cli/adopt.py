"""`earshot adopt`: turns a team's existing file into a stack file."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path

from earshot.adopt.adoption import Adoption, Scopes, adopt_compose, adopt_properties
from earshot.adopt.report import as_json, as_text, stack_file
from earshot.cli.output import STDOUT, emit, refuse_read, refuse_replacing, save
from earshot.errors import EarshotError
from earshot.files.streams import to_stderr
from earshot.lint.files import overlays_of
from earshot.lint.ignores import with_comments
from earshot.lint.model import FileReport, Mistake
from earshot.lint.places import in_files, in_properties
from earshot.listeners.terms import CLIENT_SCOPES, Scope
from earshot.report.terminal import Terminal
from earshot.sources.compose import is_compose, read_compose
from earshot.sources.files import beside, text_of, variables_for

Texts = Sequence[tuple[str, str]]
"""Files as text and name."""
COMPOSE = (".yml", ".yaml")
PROPERTIES = (".properties",)
_SCOPE_FORM = f"NAME={'|'.join(CLIENT_SCOPES)}, several joined with +"


def run(
    file: Path,
    env_file: Path | None,
    services: Sequence[str],
    scopes: Sequence[str],
    output: Path | None,
    *,
    json: bool,
    force: bool = False,
) -> int:
    """Prints the report, writes the stack file, and returns the exit code. Raises EarshotError.

    Users edit stack files, so only ``force`` replaces one. If the stack file goes to stdout, the
    report goes to stderr.
    """
    if file.suffix not in (*COMPOSE, *PROPERTIES):
        raise EarshotError(
            f"file {file}",
            observed="its suffix is neither of compose files nor of properties",
            allowed=", ".join((*COMPOSE, *PROPERTIES)),
        )
    if output is not None and output.is_dir():
        raise EarshotError(f"--output {output}", observed="is a folder", allowed="a file")
    # files that `docker compose` merges into this one by default
    texts = [(text_of(path), str(path)) for path in overlays_of(file)]
    over = [text for text in texts if is_compose(*text)]
    if output is not None:
        input_files = (file, *(Path(name) for _, name in over), env_file or file.with_name(".env"))
        refuse_read((output,), input_files)
        if not force:
            refuse_replacing(output, "an empty file")
    adoption = _adopt(file, over, env_file, services, read_scopes(scopes))
    adoption = _without_ignored(adoption, file, over)
    to_stdout = output == STDOUT
    terminal = Terminal() if to_stdout else Terminal.of(sys.stdout)
    report_text = as_json(adoption) if json else as_text(adoption, terminal)
    if to_stdout:
        to_stderr(report_text.rstrip("\n"))
    else:
        emit(report_text)
    if adoption.document is not None:
        text = stack_file(adoption)
        if output is not None:
            save(output, text)
        if not json and not to_stdout:
            emit(f"\nwritten: {output}\n" if output is not None else f"\n{text}")
    return adoption.exit_code


def read_scopes(texts: Sequence[str]) -> Scopes:
    """The scopes in texts such as `NAME=internal` or `NAME=host+external`. Raises EarshotError."""
    scopes: dict[str, tuple[Scope, ...]] = {}
    for text in texts:
        name, sign, scope_list = text.partition("=")
        chosen_scopes = scope_list.split("+")
        if not sign or not name or any(scope not in list(CLIENT_SCOPES) for scope in chosen_scopes):
            raise EarshotError(f"--scope {text}", observed="names no scope", allowed=_SCOPE_FORM)
        if name in scopes:
            raise EarshotError(f"--scope {text}", observed=f"{name} is given twice")
        scopes[name] = tuple(scope for scope in CLIENT_SCOPES if scope in chosen_scopes)
    return scopes


def _adopt(
    file: Path, over: Texts, env_file: Path | None, services: Sequence[str], scopes: Scopes
) -> Adoption:
    if file.suffix in PROPERTIES:
        for option, value in (("--service", services), ("--env-file", env_file)):
            if value:
                raise EarshotError(option, observed=f"{file} is not a compose file")
        return adopt_properties(text_of(file), str(file), scopes)
    text, environment = text_of(file), variables_for(file, os.environ, env_file)
    read_compose_text = partial(read_compose, text, file.name, environment, beside(file), over=over)
    adoption = adopt_compose(
        read_compose_text(), read_compose_text(lenient=True), str(file), services, scopes
    )
    notes = (f"{name} is merged into it, as `docker compose` does" for _, name in over)
    return replace(adoption, notes=(*notes, *adoption.notes))


def _without_ignored(adoption: Adoption, file: Path, over: Texts) -> Adoption:
    """``adoption`` with notes instead of the findings that comments in the file ignore."""
    text, file_name, mistakes = text_of(file), str(file), adoption.mistakes
    placed = (
        ((mistake, in_properties(text, file_name, mistake)) for mistake in mistakes)
        if file.suffix in PROPERTIES
        else in_files(((text, file_name), *over), mistakes)
    )
    linted = FileReport(file_name, "", tuple(Mistake(finding, place) for finding, place in placed))
    placed_findings = with_comments(linted, lambda _: text.split("\n"), date.today()).mistakes
    notes = [
        f"{finding.finding.rule}, {finding.finding.subject}: "
        + (f"ignored: {finding.ignored}" if finding.ignored else finding.expired)
        for finding in placed_findings
        if finding.ignored or finding.expired
    ]
    return replace(
        adoption,
        mistakes=tuple(
            placed_finding.finding
            for placed_finding in placed_findings
            if not placed_finding.ignored
        ),
        notes=(*adoption.notes, *notes),
    )
