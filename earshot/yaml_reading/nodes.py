"""Nodes of parsed YAML, which know their places in the text."""

from collections.abc import Iterator, Sequence

import yaml

from earshot.yaml_reading.tags import key_text


def pairs(node: yaml.Node | None) -> Iterator[tuple[str, tuple[yaml.Node, yaml.Node]]]:
    """The entries of a map: first those of merge keys (`<<`), then its own, which win."""
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        if key.value == "<<":
            merged_nodes = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for merged_node in reversed(merged_nodes):  # of several the first counts
                yield from pairs(merged_node)
    for key, value in node.value:
        yield key_text(key), (key, value)


def entry_at(
    documents: Sequence[yaml.Node], path: Sequence[str | int]
) -> tuple[yaml.Node, yaml.Node] | None:
    """The key and the value at ``path``, whose first step is the number of the document; or None.

    An item of a list is its own key.
    """
    number, *steps = path
    if not isinstance(number, int):
        return None
    key = value = documents[number]
    for step in steps:
        if isinstance(step, int):
            items = value.value if isinstance(value, yaml.SequenceNode) else []
            if step >= len(items):
                return None
            key = value = items[step]
        elif entry := dict(pairs(value)).get(step):
            key, value = entry
        else:
            return None
    return key, value
