"""Checks one file by its form: YAML, properties, variables, user data, unit, devcontainer.json."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from earshot.checks.lone_settings import (
    advice_in_properties,
    is_of_broker,
    mistakes_in_properties,
    open_in_properties,
)
from earshot.errors import EarshotError
from earshot.lint.compose_files import NOT_COMPOSE, check_compose, check_together
from earshot.lint.files import overlays_of
from earshot.lint.forms import Form, by_content, by_name
from earshot.lint.model import NO_OPTIONS, FileOptions, FileReport, Mistake
from earshot.lint.places import in_properties
from earshot.lint.unread_kinds import why_unread
from earshot.sources.compose import is_compose, may_be_merged
from earshot.sources.compose_files import documents_of
from earshot.sources.drop_ins import is_drop_in, units_of
from earshot.sources.files import text_of
from earshot.sources.user_data import is_user_data
from earshot.sources.values import as_map
from earshot.yaml_reading.document import read_yaml_documents, read_yaml_texts
from earshot.yaml_reading.tags import untagged

_BOUNDARY = re.compile(r"(?:---|\.\.\.)[ \t]*")
"""A line that begins or ends a document."""
_TEMPLATE = re.compile(
    r"^[ \t]*\{\{-? *(?:if|range|with|end|define|include|else)\b|^[ \t]*\{%", re.MULTILINE
)
"""A statement of Helm or Jinja on its own line."""
_CI_KEYS = re.compile(r"^jobs[ \t]*:|^[ \t]+script[ \t]*:", re.MULTILINE)
"""Keys of CI files."""
_TASK_SIGN = re.compile(r"containerDefinitions\b[\"']?\s*:")
"""The list of containers of an ECS task definition."""
_DOCUMENT = re.compile(r"^---(?:\s|$)", re.MULTILINE)
"""The beginning of a document."""


def check(
    file: Path, variables: Mapping[str, str], options: FileOptions = NO_OPTIONS
) -> FileReport:
    """Checks ``file``. ``variables`` are those of the environment.

    Override files are merged into a Compose file as `docker compose` does. The report of a file
    without Kafka has no `kind`. Raises EarshotError if the file cannot be read.
    """
    text = text_of(file)
    form = by_name(file.name)
    is_boot = form in (None, Form.YAML, Form.SCRIPT) and is_user_data(text)
    if form is Form.SCRIPT or (form is None and is_boot):
        from earshot.lint import script_files

        return script_files.check_script(text, file, options, is_boot=is_boot)
    is_guessed = form is None
    if form is None:
        form = by_content(text)
        if form is None and is_drop_in(file) and not units_of(file):
            reason = "is a drop-in of a Podman unit that is not next to its folder"
            return FileReport(str(file), "", unchecked=(reason,))
    if form is Form.PROPERTIES:
        return _properties(text, str(file), options)
    if form is Form.VARIABLES:
        return _variables(text, str(file), variables, options, is_guessed=is_guessed)
    if is_boot:
        from earshot.lint import other_files

        return other_files.user_data(text, str(file), options.release)
    if form is Form.UNIT:
        from earshot.lint import ci_files

        return ci_files.check_units(file, text, options)
    if form is Form.DEVELOPMENT_CONTAINER:
        return _development_container(text, file, variables, options)
    if form is Form.TERRAFORM:
        from earshot.lint import terraform_files

        return terraform_files.check_terraform(text, file, options)
    if form is Form.YAML:
        return _yaml(text, file, variables, options)
    return _unknown_form(text, file, variables, options)


def _development_container(
    text: str, file: Path, variables: Mapping[str, str], options: FileOptions
) -> FileReport:
    """Checks the Compose files that a devcontainer.json names."""
    from earshot.lint import ci_files

    files = ci_files.compose_files(file, text)
    if files is None:
        return FileReport(str(file), "", unchecked=("is not JSON, with or without comments",))
    if not files:
        reason = "names no Compose file, so it starts no broker"
        return FileReport(str(file), "", unchecked=(reason,))
    report = check_together(files, variables, options)
    kind = f"development container, with {', '.join(compose_file.name for compose_file in files)}"
    return replace(report, file=str(file), kind=kind if report.kind else "")


def _unknown_form(
    text: str, file: Path, variables: Mapping[str, str], options: FileOptions
) -> FileReport:
    """Checks a file of unknown form as YAML. Other content is not checked."""
    try:
        report = _yaml(text, file, variables, options)
    except EarshotError:
        report = FileReport(str(file), "")
    if report.kind or report.unchecked not in ((), NOT_COMPOSE):
        return report
    reason = "contains no properties, variables, services or resources of a broker"
    return FileReport(str(file), "", unchecked=(why_unread(text, reason),))


def _properties(text: str, file_name: str, options: FileOptions) -> FileReport:
    if not is_of_broker(text):
        return FileReport(file_name, "", unchecked=("is not a broker configuration",))
    findings = mistakes_in_properties(text, options.release) or advice_in_properties(
        text, options.release
    )
    placed_mistakes = tuple(
        Mistake(finding, in_properties(text, file_name, finding)) for finding in findings
    )
    open_ends = tuple(open_in_properties(text))
    return FileReport(file_name, "properties file", placed_mistakes, open_listeners=open_ends)


def _variables(
    text: str,
    file_name: str,
    variables: Mapping[str, str],
    options: FileOptions,
    *,
    is_guessed: bool,
) -> FileReport:
    """Checks an environment file.

    If the form ``is_guessed`` from the content, the file may as well be a job of Nomad or a
    program, which is not judged. Raises EarshotError if another file is no environment file.
    """
    from earshot.lint import other_files  # slow to import

    try:
        return other_files.variables(text, file_name, variables, options.release)
    except EarshotError as error:
        if not is_guessed:
            raise
        reason = (
            "sets variables of a broker, but is not an environment file: "
            f"{error.object.removeprefix(f'{file_name}, ')} {error.observed}"
        )
        return FileReport(file_name, "", unchecked=(why_unread(text, reason),))


def _without_empty_end(text: str) -> str:
    """``text`` without empty documents at its end. A regular expression takes quadratic time."""
    lines = text.splitlines(keepends=True)
    kept = len(lines)
    for index in range(len(lines) - 1, -1, -1):
        if _BOUNDARY.fullmatch(lines[index].rstrip("\r\n")):
            kept = index
        elif lines[index].strip():
            break
    return "".join(lines[:kept])


def _yaml(text: str, file: Path, variables: Mapping[str, str], options: FileOptions) -> FileReport:
    file_name, text = str(file), _without_empty_end(text)
    if _TEMPLATE.search(text) or _is_cut_by_braces(text, file_name):
        reason = "is a template: check what it renders (`helm template`, `docker compose config`)"
        return FileReport(file_name, "", unchecked=(reason,))
    if "apiVersion" in text or _DOCUMENT.search(text):
        from earshot.lint.other_files import check_manifest, is_manifest  # slow to import

        documents = read_yaml_documents(text, file_name, unique=False)
        if is_manifest(documents):
            return check_manifest(text, file_name, documents, options)
        if len(documents) > 1 and not any("services" in as_map(each) for each in documents):
            reason = "contains several YAML documents: not a Compose file"
            return FileReport(file_name, "", unchecked=(reason,))
    if _TASK_SIGN.search(text):
        from earshot.lint.task_files import check_task

        document = untagged(read_yaml_texts(text, file_name, unique=False, lenient=True))
        return check_task(text, file_name, document, options)
    if _CI_KEYS.search(text):
        from earshot.lint import ci_files

        document = untagged(read_yaml_texts(text, file_name, unique=False, lenient=True))
        if ci_files.is_workflow(file.name, document):
            return ci_files.check_workflow(text, file_name, document, options)
    overlays = overlays_of(file)
    if overlays and not is_compose(documents_of(text)[0], file_name):
        overlays = ()
    over = [(text_of(overlay), str(overlay)) for overlay in overlays]
    compose_overlays = [overlay for overlay in over if may_be_merged(*overlay)]
    report = check_compose(text, file, variables, options, compose_overlays)
    skipped_overlays = tuple(
        f"{Path(overlay[1]).name} is no Compose file: it is not read, although `docker compose` "
        "merges it into this file"
        for overlay in over
        if overlay not in compose_overlays
    )
    return (
        replace(report, unchecked=(*report.unchecked, *skipped_overlays)) if report.kind else report
    )


def _is_cut_by_braces(text: str, file_name: str) -> bool:
    """True if ``text`` is not YAML and contains `{{`: a template."""
    if "{{" not in text:
        return False
    try:
        read_yaml_documents(text, file_name, unique=False)
    except EarshotError:
        return True
    return False
