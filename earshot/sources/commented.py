"""Commented-out variables of the services of a Compose file.

A commented-out entry with another value for a variable that is set shows that the user switches
between the two by hand.
"""

import re
from collections.abc import Mapping, Sequence

import yaml

from earshot.yaml_reading.document import yaml_nodes

_ENTRY = re.compile(
    r"^[ \t]*#[# \t]*(?:-[ \t]+)?[\"']?(?P<name>[A-Z][A-Z0-9_]{0,40}ADVERTISED_[A-Z_]{1,40})"
    r"[ \t]*[:=][ \t]*(?P<value>[^#\n]*)",
    re.ASCII | re.MULTILINE,
)
"""`# KAFKA_ADVERTISED_LISTENERS: …`, `# - KAFKA_ADVERTISED_LISTENERS=…`."""
_KEY = re.compile(r"[# \t]*(?:image|build|container_name)[ \t]*:", re.ASCII)
"""Keys of a whole service."""
Commented = Mapping[str, Sequence[str]]
"""Commented-out values by variable."""


def commented_values(text: str, file_name: str) -> Mapping[str, Commented]:
    """Commented-out values by service. Raises EarshotError for invalid YAML."""
    if not _ENTRY.search(text):
        return {}
    starts = _starts(text, file_name)
    values_by_service: dict[str, dict[str, list[str]]] = {}
    service, is_anothers = "", False
    for number, line in enumerate(text.split("\n")):
        while starts and starts[0][0] <= number:
            service = starts.pop(0)[1]
        # lines after the keys of a commented-out service belong to that service
        is_anothers = line.lstrip().startswith("#") and (is_anothers or bool(_KEY.match(line)))
        match = _ENTRY.match(line)
        if match and service and not is_anothers:
            values = values_by_service.setdefault(service, {}).setdefault(match["name"], [])
            values.append(match["value"].strip().strip("\"'"))
    return values_by_service


def _starts(text: str, file_name: str) -> list[tuple[int, str]]:
    """The first line and name of each service; other sections have an empty name."""
    root = yaml_nodes(text, file_name)
    starts: list[tuple[int, str]] = []
    for key, value in _pairs(root):
        starts.append((key.start_mark.line, ""))
        if key.value == "services":
            starts += [(name.start_mark.line, str(name.value)) for name, _ in _pairs(value)]
    if not any(key.value == "services" for key, _ in _pairs(root)):
        starts = [(key.start_mark.line, str(key.value)) for key, _ in _pairs(root)]
    return sorted(starts, key=lambda item: item[0])


def _pairs(node: yaml.Node | None) -> list[tuple[yaml.Node, yaml.Node]]:
    return list(node.value) if isinstance(node, yaml.MappingNode) else []
