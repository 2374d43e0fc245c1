"""Finds the line and column of the value that a finding is about."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import yaml

from earshot.lint.model import Place
from earshot.listeners.images import spellings
from earshot.rules.rule import Finding
from earshot.yaml_reading.document import yaml_nodes, yaml_nodes_of_documents
from earshot.yaml_reading.nodes import entry_at, pairs

_OPTIONS = {"ports": ("-p", "--publish"), "command": (), "networks": ("--network", "--net")}

if TYPE_CHECKING:
    from earshot.sources.docker_run import StartedContainer
    from earshot.sources.pod_variables import Keys
    from earshot.sources.workloads import PodContainer


def in_files(
    files: Sequence[tuple[str, str]], findings: Iterable[Finding]
) -> Iterator[tuple[Finding, Place]]:
    """Yields each finding with the place of its variable, or else of its service.

    Each of the Compose ``files`` (text and name) is merged into those before it. The place is in
    the last file that sets the variable, else in the first file with the service.
    """
    all_findings = list(findings)
    parsed_files = [
        (_services(yaml_nodes(text, file_name)), file_name)
        for text, file_name in files
        if all_findings
    ]
    for finding in all_findings:
        files_with_setting = [file for file in reversed(parsed_files) if _is_set(file[0], finding)]
        places = [
            _place(services, finding, file_name)
            for services, file_name in (*files_with_setting, *parsed_files)
        ]
        yield finding, next((place for place in places if place.line), Place(files[0][1]))


def in_properties(text: str, file_name: str, finding: Finding) -> Place:
    """The last line that sets the property of the finding: Kafka uses the last value."""
    return _last_line(text, file_name, finding.inputs)


def in_user_data(text: str, file_name: str, finding: Finding) -> Place:
    """Like `in_properties`; else the last line with `echo` or `sed` that sets the property."""
    place = in_properties(text, file_name, finding)
    marks = tuple(f"{name}=" for name in finding.inputs)
    for number, line in enumerate(text.splitlines() if not place.line else (), 1):
        for mark in (mark for mark in marks if mark in line):
            place = Place(file_name, number, line.rindex(mark) + 1)
    return place


def in_env_file(text: str, file_name: str, finding: Finding) -> Place:
    """Like `in_properties`, for an environment file."""
    return _last_line(text, file_name, {name for key in finding.inputs for name in spellings(key)})


def _last_line(text: str, file_name: str, names: Collection[str]) -> Place:
    place = Place(file_name)
    for number, line in enumerate(text.splitlines(), 1):
        assignment = line.strip().removeprefix("export ").lstrip()
        if re.split(r"[=:\s]", assignment, maxsplit=1)[0] in names:
            place = Place(file_name, number, len(line.rstrip()) - len(assignment) + 1)
    return place


def in_lines(
    lines: Sequence[str], file_name: str, numbers: tuple[int, int], marks: Iterable[str]
) -> Place:
    """The first of ``marks`` in the lines of these ``numbers`` (first and last), else the first."""
    first, last = numbers
    for mark in marks:
        for number in range(first, min(last, len(lines)) + 1):
            if mark in lines[number - 1]:
                return Place(file_name, number, lines[number - 1].index(mark) + 1)
    line = lines[first - 1]
    return Place(file_name, first, len(line) - len(line.lstrip()) + 1)


def in_command(
    lines: Sequence[str], file_name: str, container: StartedContainer | None, finding: Finding
) -> Place:
    """The line of `docker run` with the variable or option of ``finding``, else its first line."""
    if container is None:
        return Place(file_name)
    marks = _marks(finding, container)
    return in_lines(lines, file_name, (container.line, container.last_line), marks)


def _marks(finding: Finding, container: StartedContainer) -> Iterator[str]:
    for name in finding.inputs:
        yield from (f"{spelling}=" for spelling in spellings(name))
        yield from (f"{option}{end}" for option in _OPTIONS.get(name, ()) for end in (" ", "="))
        if name == "image":
            yield container.service.container.image


def at_paths(
    text: str, file_name: str, findings: Iterable[tuple[Finding, Iterable[Keys]]]
) -> Iterator[tuple[Finding, Place]]:
    """Yields each finding with the place of its first existing path, in a file with several
    documents."""
    all_findings = list(findings)
    documents = yaml_nodes_of_documents(text, file_name) if all_findings else []
    for finding, paths in all_findings:
        entries = filter(None, (entry_at(documents, path) for path in paths))
        key, _ = next(entries, (None, None))
        yield finding, Place(file_name) if key is None else _place_of_node(key, file_name)


def of_container(container: PodContainer, finding: Finding) -> Iterator[Keys]:
    """The possible paths of a finding about ``container``: its variable, its key, the container."""
    for name in finding.inputs:
        for variable in spellings(name):
            if variable in container.variables:
                path = container.variables[variable]
                yield (*path, "value")
                yield path
        yield (*container.path, name)
        if name == "command":
            yield (*container.path, "args")
    yield (*container.path, "name")
    yield container.path


def of_resource(path: Keys, finding: Finding) -> Iterator[Keys]:
    """The possible paths of a finding with inputs such as `spec.kafka.listeners[0].port`."""
    for name in finding.inputs:
        keys = (int(key) if key.isdecimal() else key for key in re.findall(r"[^.\[\]]+", name))
        yield (*path, *keys)
    yield (*path, "kind")


def _is_set(services: dict[str, tuple[yaml.Node, yaml.Node]], finding: Finding) -> bool:
    """True if the service of the finding sets one of its inputs."""
    _, section = services.get(finding.container, (None, None))
    return section is not None and any(_setting(section, name) for name in finding.inputs)


def _place(
    services: dict[str, tuple[yaml.Node, yaml.Node]], finding: Finding, file_name: str
) -> Place:
    if finding.container not in services:
        return Place(file_name)
    key, section = services[finding.container]
    for name in finding.inputs:
        node = _setting(section, name)
        if node is not None:
            return _place_of_node(node, file_name)
    return _place_of_node(key, file_name)


def _setting(section: yaml.Node, name: str) -> yaml.Node | None:
    """The node of a key of the service, or of the variable that sets a property."""
    keys_of_service = dict(pairs(section))
    if name in keys_of_service:
        return keys_of_service[name][0]
    if (
        name == "advertised.listeners"
        and "command" in keys_of_service
        and _advertises(keys_of_service["command"][1])
    ):
        return keys_of_service["command"][0]
    variables = spellings(name)
    environment = keys_of_service.get("environment")
    if environment is None:
        return None
    if isinstance(environment[1], yaml.SequenceNode):
        for entry in reversed(environment[1].value):  # the last one counts
            if str(entry.value).partition("=")[0] in variables:
                return entry if isinstance(entry, yaml.Node) else None
        return None
    keys = {variable: key for variable, (key, _) in pairs(environment[1])}
    return next((key for variable, key in keys.items() if variable in variables), None)


def _advertises(command: yaml.Node) -> bool:
    """True if a flag in ``command`` sets the advertised address (Redpanda, `--override`)."""
    words = command.value if isinstance(command, yaml.SequenceNode) else [command]
    return any("advertise" in str(word.value) for word in words)


def _services(root: yaml.Node | None) -> dict[str, tuple[yaml.Node, yaml.Node]]:
    top_level = dict(pairs(root))
    services = dict(pairs(top_level["services"][1] if "services" in top_level else root))
    by_name = dict(services)
    if "services" in top_level:
        by_name[""] = top_level["services"]  # of a finding about all services
    for key, section in services.values():  # findings may use the container's name
        container_name = dict(pairs(section)).get("container_name")
        if container_name is not None:
            by_name.setdefault(str(container_name[1].value), (key, section))
    return by_name


def _place_of_node(node: yaml.Node, file_name: str) -> Place:
    return Place(file_name, node.start_mark.line + 1, node.start_mark.column + 1)
