"""Checks the containers that a script starts, and the Compose files that it writes."""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from earshot.checks.deployment import has_refused_client
from earshot.errors import EarshotError
from earshot.lint import other_files
from earshot.lint.compose_files import check_compose
from earshot.lint.containers import Containers
from earshot.lint.model import FileOptions, FileReport, Mistake, together
from earshot.lint.places import in_command
from earshot.sources.bootstraps import bootstraps_alone
from earshot.sources.compose import is_compose
from earshot.sources.docker_run import started_containers
from earshot.sources.files import beside
from earshot.sources.recipes import in_shell_form, with_alternatives
from earshot.sources.shell import Script, read_script, syntax_of

_NO_BROKER = "starts no container that is known to run a Kafka broker"
_SERVICES = re.compile(r"^services:", re.MULTILINE)
_RUN = re.compile(r"\b(?:run|create)\b")


def check_script(text: str, file: Path, options: FileOptions, *, is_boot: bool) -> FileReport:
    """Checks a script by what it starts and writes.

    If it ``is_boot``, it may be the user data of an instance, which may write properties.
    """
    script = read_script(in_shell_form(text, file.name), syntax_of(file.name))
    reports = [_containers(script, text, file, options)] if _RUN.search(text) else []
    reports += _compose_files(script, file, options)
    checked = [report for report in reports if report.kind]
    boot = other_files.user_data(text, str(file), options.release) if is_boot else None
    if boot is not None and (boot.kind or not checked):
        checked.append(boot)
    if len(checked) == 1:
        return checked[0]
    if not checked:
        reasons = tuple(reason for report in reports for reason in report.unchecked)
        return FileReport(str(file), "", unchecked=reasons or (_NO_BROKER,))
    return together(checked, "script")


def _compose_files(script: Script, file: Path, options: FileOptions) -> Iterator[FileReport]:
    """Checks the here-documents that are Compose files, at their lines in the script."""
    for document in script.documents:
        text = "\n" * (document.line - 1) + document.text.replace("\\$", "$")
        with contextlib.suppress(EarshotError):  # a template, or a part of a file
            if _SERVICES.search(text) and is_compose(text, str(file)):
                report = check_compose(text, file, script.values, options, is_whole=True)
                yield replace(report, kind=report.kind and "script with a Compose file")


def _containers(script: Script, text: str, file: Path, options: FileOptions) -> FileReport:
    """Checks the containers that a script starts; the report has no kind if none is a broker."""
    file_name = str(file)
    started = started_containers(script, beside(file), text)
    started = replace(started, containers=with_alternatives(started.containers, text, file.name))
    services = tuple(replace(service, release=options.release) for service in started.services)
    run = Containers(services)
    is_alone = not started.not_read and (bootstraps_alone(services) or has_refused_client(services))
    if not (is_alone or run.brokers):
        return FileReport(file_name, "", unchecked=(*started.not_read, _NO_BROKER))
    lines = text.splitlines()
    containers = {container.service.name: container for container in started.containers}
    placed_mistakes = tuple(
        Mistake(finding, in_command(lines, file_name, containers.get(finding.container), finding))
        for finding in run.findings
    )
    return FileReport(
        file_name,
        "script",
        placed_mistakes,
        (*started.not_read, *(reason for _, reason in run.unread())),
        open_listeners=tuple(reason for _, reason in run.open_listeners()),
    )
