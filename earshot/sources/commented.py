"""What a Compose file has switched off: variables of a service in comments.

An entry in a comment beside the one that counts, of the same name and with another value, shows
that the user changes between the two by hand.
"""

import re
from collections.abc import Mapping, Sequence

import yaml

from earshot.yaml_document import yaml_nodes

_ENTRY = re.compile(
    r"^[ \t]*#[# \t]*(?:-[ \t]+)?[\"']?(?P<name>[A-Z][A-Z0-9_]{0,40}ADVERTISED_[A-Z_]{1,40})"
    r"[ \t]*[:=][ \t]*(?P<value>[^#\n]*)",
    re.ASCII | re.MULTILINE,
)
"""`# KAFKA_ADVERTISED_LISTENERS: …`, `# - KAFKA_ADVERTISED_LISTENERS=…`."""
_KEY = re.compile(r"[# \t]*(?:image|build|container_name)[ \t]*:", re.ASCII)
"""Only a whole service has it."""
Commented = Mapping[str, Sequence[str]]
"""The values in comments, by the name of their variable."""


def commented_values(text: str, shown: str) -> Mapping[str, Commented]:
    """By service, what its comments hold. Raises EarshotError for what is no YAML."""
    if not _ENTRY.search(text):
        return {}
    starts = _starts(text, shown)
    found: dict[str, dict[str, list[str]]] = {}
    service, is_anothers = "", False
    for number, line in enumerate(text.split("\n")):
        while starts and starts[0][0] <= number:
            service = starts.pop(0)[1]
        # lines after the keys of a commented-out service belong to that service
        is_anothers = line.lstrip().startswith("#") and (is_anothers or bool(_KEY.match(line)))
        match = _ENTRY.match(line)
        if match and service and not is_anothers:
            values = found.setdefault(service, {}).setdefault(match["name"], [])
            values.append(match["value"].strip().strip("\"'"))
    return found


def _starts(text: str, shown: str) -> list[tuple[int, str]]:
    """The line of each service with its name; lines outside the services have no name."""
    root = yaml_nodes(text, shown)
    found: list[tuple[int, str]] = []
    for key, value in _pairs(root):
        found.append((key.start_mark.line, ""))
        if key.value == "services":
            found += [(name.start_mark.line, str(name.value)) for name, _ in _pairs(value)]
    if not any(key.value == "services" for key, _ in _pairs(root)):
        found = [(key.start_mark.line, str(key.value)) for key, _ in _pairs(root)]
    return sorted(found, key=lambda item: item[0])


def _pairs(node: yaml.Node | None) -> list[tuple[yaml.Node, yaml.Node]]:
    return list(node.value) if isinstance(node, yaml.MappingNode) else []
