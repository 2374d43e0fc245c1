"""The line and column of the value that a finding is about."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import yaml

from earshot.lint.model import Place
from earshot.listeners.images import spellings
from earshot.rules.registry import Finding
from earshot.yaml_document import yaml_nodes, yaml_nodes_of_documents

if TYPE_CHECKING:
    from earshot.sources.pod_variables import Keys
    from earshot.sources.workloads import PodContainer


def in_files(
    files: Sequence[tuple[str, str]], findings: Iterable[Finding]
) -> Iterator[tuple[Finding, Place]]:
    """Each finding with the place of the variable, or of the service, that it names.

    The Compose ``files`` (text and name) are laid over each other: the last that sets what a
    finding names counts, else the first that has its service.
    """
    all_findings = list(findings)
    read = [(_services(yaml_nodes(text, shown)), shown) for text, shown in files if all_findings]
    for finding in all_findings:
        holders = [node for node in reversed(read) if _is_set(node[0], finding)]
        places = [_place(services, finding, shown) for services, shown in (*holders, *read)]
        yield finding, next((place for place in places if place.line), Place(files[0][1]))


def in_properties(text: str, file_name: str, finding: Finding) -> Place:
    """The last line that sets what the finding is about, as Kafka takes the last."""
    return _last_line(text, file_name, finding.inputs)


def in_env_file(text: str, file_name: str, finding: Finding) -> Place:
    """The same in a file of variables."""
    return _last_line(text, file_name, {name for key in finding.inputs for name in spellings(key)})


def _last_line(text: str, file_name: str, names: Collection[str]) -> Place:
    place = Place(file_name)
    for number, line in enumerate(text.splitlines(), 1):
        own = line.strip().removeprefix("export ").lstrip()
        if re.split(r"[=:\s]", own, maxsplit=1)[0] in names:
            place = Place(file_name, number, len(line.rstrip()) - len(own) + 1)
    return place


def at_paths(
    text: str, file_name: str, findings: Iterable[tuple[Finding, Iterable[Keys]]]
) -> Iterator[tuple[Finding, Place]]:
    """Each finding with the first of its paths that is there, in a file of several documents."""
    all_findings = list(findings)
    documents = yaml_nodes_of_documents(text, file_name) if all_findings else []
    for finding, paths in all_findings:
        nodes = (_node(documents, path) for path in paths)
        node = next((node for node in nodes if node is not None), None)
        yield finding, Place(file_name) if node is None else _at(node, file_name)


def of_container(container: PodContainer, finding: Finding) -> Iterator[Keys]:
    """Where a finding about ``container`` may be shown: its variable, its key, or the container."""
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
    """Where a finding may be shown whose inputs are such as `spec.kafka.listeners[0].port`."""
    for name in finding.inputs:
        keys = (int(key) if key.isdecimal() else key for key in re.findall(r"[^.\[\]]+", name))
        yield (*path, *keys)
    yield (*path, "kind")


def _node(documents: Sequence[yaml.Node], path: Keys) -> yaml.Node | None:
    """The key that ``path`` leads to, or the item of a list."""
    key, value = None, None
    for part in path:
        if value is None and key is None:
            key = value = documents[part] if isinstance(part, int) else None
        elif isinstance(part, int):
            listed = value.value if isinstance(value, yaml.SequenceNode) else []
            key = value = listed[part] if part < len(listed) else None
        else:
            key, value = dict(_pairs(value)).get(part, (None, None))
        if value is None:
            return None
    return key


def _is_set(services: dict[str, tuple[yaml.Node, yaml.Node]], finding: Finding) -> bool:
    """Whether the service of a finding has what it names."""
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
            return _at(node, file_name)
    return _at(key, file_name)


def _setting(section: yaml.Node, name: str) -> yaml.Node | None:
    """The node of a key of the service, or of the variable that sets a property."""
    parts = dict(_pairs(section))
    if name in parts:
        return parts[name][0]
    if name == "advertised.listeners" and "command" in parts and _advertises(parts["command"][1]):
        return parts["command"][0]
    variables = spellings(name)
    environment = parts.get("environment")
    if environment is None:
        return None
    if isinstance(environment[1], yaml.SequenceNode):
        for entry in reversed(environment[1].value):  # the last one counts
            if str(entry.value).partition("=")[0] in variables:
                return entry if isinstance(entry, yaml.Node) else None
        return None
    keys = {variable: key for variable, (key, _) in _pairs(environment[1])}
    return next((key for variable, key in keys.items() if variable in variables), None)


def _advertises(command: yaml.Node) -> bool:
    """Whether a flag there says what is advertised, as Redpanda's or `--override` do."""
    parts = command.value if isinstance(command, yaml.SequenceNode) else [command]
    return any("advertise" in str(part.value) for part in parts)


def _services(root: yaml.Node | None) -> dict[str, tuple[yaml.Node, yaml.Node]]:
    top = dict(_pairs(root))
    services = dict(_pairs(top["services"][1] if "services" in top else root))
    by_name = dict(services)
    for key, section in services.values():  # findings may call it by its container's name
        named = dict(_pairs(section)).get("container_name")
        if named is not None:
            by_name.setdefault(str(named[1].value), (key, section))
    return by_name


def _pairs(node: yaml.Node | None) -> Iterator[tuple[str, tuple[yaml.Node, yaml.Node]]]:
    """The entries of a map, what counts last: those that it merges (`<<`) before its own."""
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        if key.value == "<<":
            merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for merged_node in reversed(merged):  # of several the first counts
                yield from _pairs(merged_node)
    for key, value in node.value:
        yield str(key.value), (key, value)


def _at(node: yaml.Node, file_name: str) -> Place:
    return Place(file_name, node.start_mark.line + 1, node.start_mark.column + 1)
