"""What a Compose file has switched off: variables of a service that stand in comments.

An entry in a comment beside the one that counts, of the same name and with another value, shows
that somebody changes between the two by hand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import yaml

from earshot.yaml_document import yaml_nodes

_ENTRY = re.compile(
    r"^[ \t]*#[# \t]*(?:-[ \t]+)?[\"']?(?P<name>[A-Z][A-Z0-9_]*ADVERTISED_[A-Z_]+)"
    r"(?:[ \t]*[:=])[ \t]*(?P<value>[^#\n]*)",
    re.ASCII | re.MULTILINE,
)
"""`# KAFKA_ADVERTISED_LISTENERS: …`, `# - KAFKA_ADVERTISED_LISTENERS=…`."""
_IMAGE = re.compile(r"[# \t]*(?:image|build|container_name)[ \t]*:", re.ASCII)
Commented = Mapping[str, tuple[str, ...]]
"""The values in comments, by the name of their variable."""


def commented_out(text: str, shown: str) -> Mapping[str, Commented]:
    """By service, what its comments hold. Raises EarshotError for what is no YAML."""
    matches = list(_ENTRY.finditer(text))
    if not matches:
        return {}
    starts = _starts(text, shown)
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for match in matches:
        if _is_of_a_service_in_comments(text, match.start()):
            continue
        line = text.count("\n", 0, match.start())
        own = [(start, name) for start, name in starts if start <= line]
        if own and own[-1][1]:
            values = found.setdefault(own[-1][1], {})
            value = match["value"].strip().strip("\"'")
            values[match["name"]] = (*values.get(match["name"], ()), value)
    return found


def _is_of_a_service_in_comments(text: str, start: int) -> bool:
    """Whether the comments right above begin with a service's own keys."""
    for above in reversed(text[:start].splitlines()):
        if not above.lstrip().startswith("#"):
            return False
        if _IMAGE.match(above):
            return True
    return False


def _starts(text: str, shown: str) -> list[tuple[int, str]]:
    """The line of each service with its name, and of what stands beside the services with none."""
    root = yaml_nodes(text, shown)
    found: list[tuple[int, str]] = []
    for key, value in _pairs(root):
        found.append((key.start_mark.line, ""))
        if key.value == "services":
            found += [(name.start_mark.line, str(name.value)) for name, _ in _pairs(value)]
    if not any(key.value == "services" for key, _ in _pairs(root)):
        found = [(key.start_mark.line, str(key.value)) for key, _ in _pairs(root)]
    return sorted(found)


def _pairs(node: yaml.Node | None) -> list[tuple[yaml.Node, yaml.Node]]:
    return list(node.value) if isinstance(node, yaml.MappingNode) else []
