"""Checks the containers, the tasks of ECS and the user data that a Terraform file declares.

The other files of its folder are its module: they set variables and declare the containers around.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from earshot.errors import EarshotError
from earshot.lint.containers import Containers
from earshot.lint.model import FileOptions, FileReport, Mistake, Place, together
from earshot.lint.places import in_lines
from earshot.lint.script_files import check_script
from earshot.lint.task_files import Findings, report_on
from earshot.lint.unread_kinds import names_broker
from earshot.listeners.images import is_broker, spellings
from earshot.listeners.listed import by_key
from earshot.rules.rule import Finding
from earshot.sources.files import text_of, texts_beside
from earshot.sources.hcl import Block, Expression, Value, evaluate
from earshot.sources.task_definition import task_containers
from earshot.sources.terraform import CONTAINER, TASK, USER_DATA, DeclaredContainer, Module
from earshot.sources.user_data import is_user_data
from earshot.sources.values import list_of

KIND = "Terraform file"
_NOTHING = "declares no container that is known to run a Kafka broker, and no user data of one"
_DEFINITIONS = "container_definitions"
_NAMES_IMAGE = ("image", "chart")
_READ_KINDS = (CONTAINER, TASK, "docker_image", "docker_registry_image", "docker_tag")
_CHARTS = re.compile(r"(?:.*/)?(?:(?:cp-)?kafka|redpanda|cp-helm-charts)", re.IGNORECASE)
_ATTRIBUTES = {"networks": "networks_advanced", "ports": "ports", "image": "image"}


def check_terraform(text: str, file: Path, options: FileOptions) -> FileReport:
    """Checks one file of a module; the findings about other files of it are theirs."""
    if not any(name in text for name in (CONTAINER, TASK, *USER_DATA, *_NAMES_IMAGE)):
        return FileReport(str(file), "", unchecked=(_NOTHING,))
    texts = sorted({**dict(texts_beside(file, (".tf", ".tf.json"))), str(file): text}.items())
    module = _module(tuple(texts), tuple(_values(file)))
    reports = [
        *_containers(module, text, file, options),
        *_tasks(module, text, file, options),
        *_user_data(module, text, file, options),
        *_unread_kinds(module, file),
    ]
    checked = [report for report in reports if report.kind]
    if not checked:
        reasons = tuple(reason for report in reports for reason in report.unchecked)
        return FileReport(str(file), "", unchecked=reasons or (_NOTHING,))
    return together(reports, KIND)


@lru_cache(maxsize=1)  # the files of a folder are checked one after the other
def _module(texts: tuple[tuple[str, str], ...], values: tuple[str, ...]) -> Module:
    return Module(dict(texts), values)


def _values(file: Path) -> Iterator[str]:
    """The texts of the files with values of variables that Terraform reads by itself."""
    folder = file.parent
    automatic = sorted((*folder.glob("*.auto.tfvars"), *folder.glob("*.auto.tfvars.json")))
    for path in (folder / "terraform.tfvars", folder / "terraform.tfvars.json", *automatic):
        if path.is_file():
            with suppress(EarshotError):
                yield text_of(path)


_Engine = tuple[Sequence[DeclaredContainer], Containers]
"""The declared containers of one provider, and the same as checked."""


@lru_cache(maxsize=1)
def _engines(module: Module, release: tuple[int, int] | None) -> tuple[_Engine, ...]:
    """The engines of ``module``."""
    pairs = ((declared.provider, declared) for declared in module.containers())
    return tuple(
        (declared, Containers([replace(one.service, release=release) for one in declared]))
        for declared in by_key(pairs).values()
    )


def _containers(
    module: Module, text: str, file: Path, options: FileOptions
) -> Iterator[FileReport]:
    """A report for each engine on which ``file`` declares containers."""
    lines = text.splitlines()
    for declared, containers in _engines(module, options.release):
        own = {one.service.name: one for one in declared if one.file == str(file)}
        if not own:
            continue
        if not containers.brokers:
            images = (reason for name, reason in containers.unknown_images() if name in own)
            yield FileReport(str(file), "", unchecked=tuple(images))
            continue
        yield FileReport(
            str(file),
            KIND,
            tuple(
                Mistake(finding, _place(lines, str(file), own[finding.container].block, finding))
                for finding in containers.findings
                if finding.container in own
            ),
            tuple(reason for name, reason in containers.unread() if name in own),
            open_listeners=tuple(
                reason for name, reason in containers.open_listeners() if name in own
            ),
        )


def _place(lines: Sequence[str], file_name: str, block: Block, finding: Finding) -> Place:
    """The variable or attribute of ``finding`` in its block, else elsewhere, else the block."""
    variables = [name for key in finding.inputs for name in spellings(key)]
    attributes = [_ATTRIBUTES.get(key, key) for key in finding.inputs]
    within = "\n".join(lines[block.line - 1 : block.last_line])
    marks = [mark for mark in (*variables, *attributes) if mark in within]
    numbers = (block.line, block.last_line)
    elsewhere = [name for name in variables if any(name in line for line in lines)]
    if not marks and elsewhere:
        numbers, marks = (1, len(lines)), elsewhere
    return in_lines(lines, file_name, numbers, marks)


def _tasks(module: Module, text: str, file: Path, options: FileOptions) -> Iterator[FileReport]:
    """A report for each task definition of ECS in ``file`` that has a broker or is unreadable."""
    lines = text.splitlines()
    for block in module.files[str(file)].inner("resource"):
        if block.labels[:1] != (TASK,) or _DEFINITIONS not in block.attributes:
            continue
        value = evaluate(block.attributes[_DEFINITIONS].text, module.resolve)
        definitions = _list_in(value) if isinstance(value, str) else []

        def placed(findings: Findings, block: Block = block) -> Iterator[tuple[Finding, Place]]:
            for finding, _ in findings:
                yield finding, _place(lines, str(file), block, finding)

        if not definitions:
            yield _unread(file, block, _DEFINITIONS)
        elif None in definitions:
            yield _unread(file, block, f"a container of {_DEFINITIONS}")
        report = report_on(task_containers(definitions), str(file), KIND, placed, options)
        if report.kind:
            yield report


def _unread_kinds(module: Module, file: Path) -> Iterator[FileReport]:
    """A report for each resource or module of ``file`` that names a broker, and is not read."""
    for block in module.files[str(file)].blocks:
        is_read = (
            block.type not in ("resource", "module") or "".join(block.labels[:1]) in _READ_KINDS
        )
        if not is_read and any(_names_broker(key, text) for key, text in _texts(block, module)):
            name = ".".join((*(["module"] if block.type == "module" else []), *block.labels))
            reason = f"{name}: has the image or the chart of a broker, and its kind is not read"
            yield FileReport(str(file), "", unchecked=(reason,))


def _names_broker(key: str, text: str) -> bool:
    if key == "chart":
        return _CHARTS.fullmatch(text) is not None
    return is_broker(text, {}) if key.endswith("image") else names_broker(text)


def _texts(block: Block, module: Module) -> Iterator[tuple[str, str]]:
    """(key, text) of each text in ``block``, at any depth."""
    for key, expression in block.attributes.items():
        if key not in USER_DATA:
            yield from _texts_in(key, evaluate(expression.text, module.resolve))
    for inner in block.blocks:
        yield from _texts(inner, module)


def _texts_in(key: str, value: Value) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, list):
        for entry in value:
            yield from _texts_in(key, entry)
    elif value is not None:
        for name, entry in value.items():
            yield from _texts_in(name, entry)


def _list_in(text: str) -> list[object]:
    """The list that ``text`` is in JSON; empty if it is none."""
    with suppress(ValueError, RecursionError):
        return list_of(json.loads(text))
    return []


def _unread(file: Path, block: Block, name: str) -> FileReport:
    reason = f"{'.'.join(block.labels)}: {name} could not be read (a function or a reference)"
    return FileReport(str(file), "", unchecked=(reason,))


def _user_data(module: Module, text: str, file: Path, options: FileOptions) -> Iterator[FileReport]:
    """A report for each text that an instance of the file runs at its first boot."""
    for block in module.files[str(file)].inner("resource"):
        for name in USER_DATA:
            if expression := block.attributes.get(name):
                yield _boot_script(module, block, name, expression, text, file, options)


def _boot_script(
    module: Module,
    block: Block,
    name: str,
    expression: Expression,
    text: str,
    file: Path,
    options: FileOptions,
) -> FileReport:
    value = evaluate(expression.text, module.resolve)
    if not isinstance(value, str):
        return _unread(file, block, name)
    if file.suffix == ".json":  # in one line of the file
        report = check_script(value, file, options, is_boot=is_user_data(value))
        mistakes = (replace(mistake, place=Place(str(file))) for mistake in report.mistakes)
        return replace(report, mistakes=tuple(mistakes))
    written = "\n" * expression.line + value.lstrip("\n")
    report = check_script(written, file, options, is_boot=is_user_data(value))
    lines, written_lines = text.splitlines(), written.splitlines()
    return replace(
        report,
        mistakes=tuple(
            replace(mistake, place=_in_file(mistake.place, written_lines, lines))
            for mistake in report.mistakes
        ),
    )


def _in_file(place: Place, written: Sequence[str], lines: Sequence[str]) -> Place:
    """``place`` with the indentation that a here-document loses."""
    if not 0 < place.line <= min(len(written), len(lines)):
        return place
    removed = max(0, len(lines[place.line - 1]) - len(written[place.line - 1]))
    return replace(place, column=place.column + removed)
