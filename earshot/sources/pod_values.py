"""Values of `env` in a manifest that are not text, for which Kubernetes refuses the resource.

`kubectl` reads YAML as YAML 1.1 (sigs.k8s.io/yaml), so that `value: 1`, `value: true` and
`value: yes` without quotes are a number and booleans. The API server answers "cannot unmarshal
number into Go struct field EnvVar.value of type string".
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml

from earshot.sources.pod_variables import Keys
from earshot.yaml_reading.document import yaml_nodes_of_documents

_TAG = "tag:yaml.org,2002:"
_NUMBER = re.compile(
    r"[-+]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+"
    r"|(?:\.[0-9][0-9_]*|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?)",
    re.ASCII,
)
"""Unlike YAML 1.1, kubectl does not read `22:22` as a number."""
_BOOLEAN = re.compile(
    r"y|Y|n|N|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF|true|True|TRUE|false|False|FALSE"
)


@dataclass(frozen=True)
class ValueNotText:
    """A variable of a container, the kind of its value, and the value's place in the file."""

    variable: str
    kind: str
    path: Keys


def values_not_text(
    text: str, file_name: str, containers: Iterable[Keys]
) -> Mapping[Keys, Sequence[ValueNotText]]:
    """The values that are not text, by container, for each of ``containers`` with such a value.

    Containers without an image, as in a patch, are left out. Raises EarshotError.
    """
    if "{{" in text:
        return {}  # a template may add quotes
    documents = yaml_nodes_of_documents(text, file_name)
    values = {path: tuple(_values(text, documents, path)) for path in containers}
    return {path: entries for path, entries in values.items() if entries}


def _values(text: str, documents: Sequence[yaml.Node], path: Keys) -> Iterator[ValueNotText]:
    index, *keys = path
    node: yaml.Node | None = documents[index] if isinstance(index, int) else None
    for key in keys:
        node = _child(node, key)
    env = _child(node, "env")
    if not isinstance(env, yaml.SequenceNode) or _child(node, "image") is None:
        return
    for i, entry in enumerate(env.value):
        name, value = _child(entry, "name"), _child(entry, "value")
        if isinstance(name, yaml.ScalarNode) and value is not None and (kind := _kind(value, text)):
            yield ValueNotText(str(name.value), kind, (*path, "env", i, "value"))


def _child(node: yaml.Node | None, key: int | str) -> yaml.Node | None:
    if isinstance(key, int):
        items = node.value if isinstance(node, yaml.SequenceNode) else []
        return items[key] if key < len(items) else None
    entries = node.value if isinstance(node, yaml.MappingNode) else []
    # of a key that occurs twice the last one counts
    return next((value for name, value in reversed(entries) if name.value == key), None)


def _kind(node: yaml.Node, text: str) -> str:
    """`number`, `bool`, `list` or `map`; empty for text, null, and placeholders."""
    if isinstance(node, yaml.CollectionNode):
        kind = {f"{_TAG}seq": "list", f"{_TAG}map": "map"}.get(node.tag, "")
        return "" if _is_placeholder(node) else kind
    is_plain = isinstance(node, yaml.ScalarNode) and node.style not in ("'", '"', "|", ">")
    if not is_plain or "!" in text[node.start_mark.index : node.end_mark.index]:
        return ""
    if _BOOLEAN.fullmatch(node.value):
        return "bool"
    return "number" if _NUMBER.fullmatch(node.value) else ""


def _is_placeholder(node: yaml.CollectionNode) -> bool:
    """Whether another tool may replace the value, as in `[[ .port ]]` or `{port}`."""
    if isinstance(node, yaml.MappingNode):
        return any(value.tag == f"{_TAG}null" for _, value in node.value)
    return any(isinstance(entry, yaml.CollectionNode) for entry in node.value)
