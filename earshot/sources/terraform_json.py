"""Blocks of a Terraform file in JSON (`*.tf.json`), as CDK for Terraform writes it.

Source: https://developer.hashicorp.com/terraform/language/syntax/json.
"""

import json
from collections.abc import Iterator, Mapping

from earshot.sources.hcl import Block, Expression
from earshot.sources.values import as_map

_LABELS = {"resource": 2, "data": 2, "variable": 1, "module": 1, "locals": 0}
_ATTRIBUTES_ALONE = ("variable", "locals")


def read_json_blocks(text: str) -> Block:
    """The body of a file; empty if it is not JSON. Each block has the lines of the whole file."""
    root = Block("")
    document = _document(text)
    last_line = text.count("\n") + 1
    for kind, count in _LABELS.items():
        for labels, body in _labelled(document.get(kind), count):
            root.blocks.append(_block(kind, labels, body, last_line))
    return root


def read_json_values(text: str) -> Block:
    """The values of variables in a `*.tfvars.json`, as attributes."""
    return _block("variable", (), _document(text), 1)


def _document(text: str) -> Mapping[str, object]:
    try:
        return as_map(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _labelled(
    value: object, count: int, labels: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], object]]:
    for entry in value if isinstance(value, list) else [value]:
        if not count and isinstance(entry, dict):
            yield labels, entry
        elif count:
            for name, inner in as_map(entry).items():
                yield from _labelled(inner, count - 1, (*labels, str(name)))


def _block(kind: str, labels: tuple[str, ...], body: object, last_line: int) -> Block:
    block = Block(kind, labels, 1, last_line)
    for name, value in as_map(body).items():
        entries = value if isinstance(value, list) else [value]
        is_block = bool(entries) and all(isinstance(entry, dict) for entry in entries)
        if name == "dynamic":
            block.blocks += [Block(name, (inner,)) for entry in entries for inner in as_map(entry)]
        elif is_block and kind not in _ATTRIBUTES_ALONE:
            block.blocks += [_block(name, (), entry, last_line) for entry in entries]
        else:
            block.attributes[name] = Expression(json.dumps(value, ensure_ascii=False), 1)
    return block
