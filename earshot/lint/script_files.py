"""Checks the containers that a script starts, and the Compose files that it writes."""

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from earshot.checks.deployment import has_refused_client
from earshot.errors import EarshotError
from earshot.lint import other_files
from earshot.lint.compose_files import check_compose
from earshot.lint.containers import Containers
from earshot.lint.model import FileOptions, FileReport, Mistake, Place, together
from earshot.lint.places import in_command
from earshot.rules import kl014_image
from earshot.sources.alternatives import with_alternatives
from earshot.sources.bootstraps import bootstraps_alone
from earshot.sources.compose import is_compose
from earshot.sources.docker_run import StartedContainers, started_containers
from earshot.sources.files import beside
from earshot.sources.recipes import in_shell_form, targets
from earshot.sources.shell import Script, read_script
from earshot.sources.shell_syntax import syntax_of

_NO_BROKER = "starts no container that is known to run a Kafka broker"
_SERVICES = re.compile(r"^services:", re.MULTILINE)
_RUN = re.compile(r"\b(?:run|create)\b")


def check_script(text: str, file: Path, options: FileOptions, *, is_boot: bool) -> FileReport:
    """Checks a script by what it starts and writes.

    If it ``is_boot``, it may be the user data of an instance, which may write properties.
    """
    script = read_script(in_shell_form(text, file.name), syntax_of(file.name))
    reports = [_containers(script, text, file, options)] if _RUN.search(text) else []
    reports += written_compose_files(script, file, options, text.splitlines())
    checked = [report for report in reports if report.kind]
    boot = other_files.user_data(text, str(file), options.release) if is_boot else None
    if boot is not None and boot.kind:
        checked.append(boot)
    if len(checked) == 1:
        return checked[0]
    if not checked:
        reasons = [reason for report in reports for reason in report.unchecked]
        reasons = [reason for reason in reasons if reason != _NO_BROKER]
        reasons += boot.unchecked if boot is not None else (_NO_BROKER,)
        return FileReport(str(file), "", unchecked=tuple(reasons))
    return together(checked, "script")


def written_compose_files(
    script: Script, file: Path, options: FileOptions, lines: Sequence[str]
) -> Iterator[FileReport]:
    """Checks the here-documents that are Compose files, at their places in the ``lines`` of
    ``file``."""
    for document in script.documents:
        text = "\n" * (document.line - 1) + document.text.replace("\\$", "$")
        with contextlib.suppress(EarshotError):  # a template, or a part of a file
            if _SERVICES.search(text) and is_compose(text, str(file)):
                report = check_compose(text, file, script.values, options, is_whole=True)
                written = text.splitlines()
                mistakes = tuple(_moved(each, written, lines) for each in report.mistakes)
                kind = report.kind and "script with a Compose file"
                yield replace(report, kind=kind, mistakes=mistakes)


def cut_commands(started: StartedContainers, file_name: str) -> Iterator[Mistake]:
    """A mistake for each command that a comment line ends before its image."""
    for command in started.cut:
        finding = kl014_image.RULE.finding(
            f"a comment in line {command.last_line} ends `{command.program} run` before its image",
            "no comment lines within a command that goes on in the next line",
            remedy="write the comments above the command",
            source="https://www.gnu.org/software/bash/manual/bash.html#Comments",
        )
        yield Mistake(finding, Place(file_name, command.line, 1))


def _moved(mistake: Mistake, written: Sequence[str], lines: Sequence[str]) -> Mistake:
    """``mistake`` in a ``written`` file at its column in the ``lines``, which may be indented."""
    place = mistake.place
    if not 0 < place.line <= min(len(lines), len(written)):  # in an included file
        return mistake
    indent = lines[place.line - 1].find(written[place.line - 1].lstrip())
    own = len(written[place.line - 1]) - len(written[place.line - 1].lstrip())
    column = place.column + max(0, indent - own)
    return replace(mistake, place=replace(place, column=column))


def _containers(script: Script, text: str, file: Path, options: FileOptions) -> FileReport:
    """Checks the containers that a script starts; the report has no kind if none is a broker."""
    file_name = str(file)
    started = started_containers(script, beside(file), text)
    groups = targets([one.line for one in started.containers], text, file.name)
    containers = with_alternatives([one.service.container for one in started.containers], groups)
    started = replace(
        started,
        containers=tuple(
            replace(one, service=replace(one.service, container=container))
            for one, container in zip(started.containers, containers, strict=True)
        ),
    )
    services = tuple(replace(service, release=options.release) for service in started.services)
    run = Containers(services)
    is_alone = not started.not_read and (bootstraps_alone(services) or has_refused_client(services))
    lines = text.splitlines()
    cut = tuple(cut_commands(started, file_name))
    if not (is_alone or run.brokers or cut):
        images = (reason for _, reason in run.unknown_images())
        return FileReport(file_name, "", unchecked=(*started.not_read, *images, _NO_BROKER))
    by_name = {one.service.name: one for one in started.containers}
    placed_mistakes = tuple(
        Mistake(finding, in_command(lines, file_name, by_name.get(finding.container), finding))
        for finding in run.findings
    )
    return FileReport(
        file_name,
        "script",
        (*cut, *placed_mistakes),
        (*started.not_read, *(reason for _, reason in run.unread())),
        open_listeners=tuple(reason for _, reason in run.open_listeners()),
    )
