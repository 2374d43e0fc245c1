"""Where a finding stands in its file: the line and column of the value that it is about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import yaml

from earshot.lint.model import Place
from earshot.listeners.images import BITNAMI_PREFIX, PREFIX
from earshot.rules.finding import Finding
from earshot.yaml_document import yaml_nodes


def in_compose(
    text: str, shown: str, findings: Iterable[Finding]
) -> Iterator[tuple[Finding, Place]]:
    """Each finding with the place of the variable, or of the service, that it names."""
    wanted = list(findings)
    services = _services(yaml_nodes(text, shown)) if wanted else {}
    for finding in wanted:
        yield finding, _place(services, finding, shown)


def in_properties(text: str, shown: str, finding: Finding) -> Place:
    """The last line that sets what the finding is about, as Kafka takes the last."""
    found = Place(shown)
    for number, line in enumerate(text.splitlines(), 1):
        key = re.split(r"[=:\s]", line.strip(), maxsplit=1)[0]
        if key in finding.inputs:
            found = Place(shown, number, len(line) - len(line.lstrip()) + 1)
    return found


def _place(services: dict[str, tuple[yaml.Node, yaml.Node]], finding: Finding, shown: str) -> Place:
    if finding.container not in services:
        return Place(shown)
    key, section = services[finding.container]
    for name in finding.inputs:
        node = _setting(section, name)
        if node is not None:
            return _at(node, shown)
    return _at(key, shown)


def _setting(section: yaml.Node, name: str) -> yaml.Node | None:
    """The node of a key of the service, or of the variable that sets a property."""
    parts = dict(_pairs(section))
    if name in parts:
        return parts[name][0]
    dotted = name.upper().replace(".", "_")
    variables = {name, PREFIX + dotted, BITNAMI_PREFIX + dotted}
    environment = parts.get("environment")
    if environment is None:
        return None
    if isinstance(environment[1], yaml.SequenceNode):
        for item in environment[1].value:
            if str(item.value).partition("=")[0] in variables:
                return item if isinstance(item, yaml.Node) else None
        return None
    return next((key for found, (key, _) in _pairs(environment[1]) if found in variables), None)


def _services(root: yaml.Node | None) -> dict[str, tuple[yaml.Node, yaml.Node]]:
    top = dict(_pairs(root))
    services = dict(_pairs(top["services"][1] if "services" in top else root))
    found = dict(services)
    for name, (key, section) in services.items():  # findings may call it by its container's name
        named = dict(_pairs(section)).get("container_name")
        if named is not None:
            found.setdefault(str(named[1].value), (key, section))
        found[name] = (key, section)
    return found


def _pairs(node: yaml.Node | None) -> Iterator[tuple[str, tuple[yaml.Node, yaml.Node]]]:
    """The entries of a map, those that it merges (`<<`) first."""
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        if key.value == "<<":
            merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for item in merged:
                yield from _pairs(item)
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value != "<<":
            yield str(key.value), (key, value)


def _at(node: yaml.Node, shown: str) -> Place:
    return Place(shown, node.start_mark.line + 1, node.start_mark.column + 1)
