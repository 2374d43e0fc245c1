"""The page of the stack file, generated: `python -m tests.config.page > docs/stack-file.md`."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from earshot.config.schema import parts, stack_file_schema
from earshot.placement_registry import PLACEMENTS

_HEAD = """\
<!-- generated: python -m tests.config.page -->
# The stack file

`stacks/Pulumi.NAME.yaml` describes the cluster of one stack under `config`, `earshot:cluster`. The
inputs of `LocalCluster`, `DockerCluster` and `AwsCluster` are the same keys without `placement`. An
unknown key, a value of the wrong type and keys that contradict each other are errors, all in one
message (exit code 2). `earshot schema` prints the JSON Schema that this page is made from.

A default of *computed* depends on other keys; the description says how.
"""
_MODELS = {name: it.module("earshot.config").MODEL for name, it in PLACEMENTS.items()}
_PLACEMENTS = {model.__name__: name for name, model in _MODELS.items()}
_REQUIRED = {
    (part.__name__, field.alias or name)
    for model in _MODELS.values()
    for part in parts(model)
    for name, field in part.model_fields.items()
    if field.is_required()
}
_ROW = "| `{key}` | {kind} | {default} | {description} |"
_TABLE = ["| key | type | default | meaning |", "|---|---|---|---|"]

Schema = Mapping[str, Any]


def page() -> str:
    """The page as Markdown."""
    models: dict[str, Schema] = stack_file_schema()["$defs"]
    return "\n".join([_HEAD, *_sections(models)])


def _sections(models: Mapping[str, Schema]) -> Iterator[str]:
    """The keys of every placement, then those of each, then one table for each nested map."""
    by_placement = {name: models[name]["properties"] for name in _PLACEMENTS}
    first = by_placement["LocalSpec"]
    shared = [
        key
        for key, schema in first.items()
        if all(keys.get(key) == schema for keys in by_placement.values())
    ]
    yield from _section("", "Every placement", "", {key: first[key] for key in shared})
    for name, placement in _PLACEMENTS.items():
        keys = {key: it for key, it in by_placement[name].items() if key not in shared}
        yield from _section(name, f"`placement: {placement}`", models[name]["description"], keys)
    for name, model in models.items():
        if name not in _PLACEMENTS and "properties" in model:
            yield from _section(name, name, model["description"], model["properties"])
        elif name not in _PLACEMENTS:
            yield from [f"## {name}", "", _text(model), "", _values(model), ""]


def _section(model: str, title: str, description: str, keys: Mapping[str, Schema]) -> Iterator[str]:
    yield from [f"## {title}", ""]
    if description:
        yield from [" ".join(description.split()), ""]
    yield from _TABLE
    for key, schema in sorted(keys.items(), key=lambda item: (model, item[0]) not in _REQUIRED):
        default = "required" if (model, key) in _REQUIRED else _default(schema)
        yield _ROW.format(key=key, kind=_kind(schema), default=default, description=_text(schema))
    yield ""


def _text(schema: Schema) -> str:
    return " ".join(schema.get("description", "").split()).replace("|", "\\|")


def _values(schema: Schema) -> str:
    return "Values: " + ", ".join(f"`{value}`" for value in schema["enum"]) + "."


def _kind(schema: Schema) -> str:
    """The type of a key in words, with a link to the table of a nested map."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        kinds = [_kind(it) for it in schema["anyOf"] if it.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "const" in schema or "enum" in schema:
        values = schema.get("enum", [schema.get("const")])
        return ", ".join(f"`{json.dumps(value).strip(chr(34))}`" for value in values)
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}" if schema.get("items") else "list"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"map of {_kind(values)}" if isinstance(values, Mapping) and values else "map"
    kind = {"string": "text", "integer": "integer", "number": "number", "boolean": "true, false"}
    limits = [f"{sign} {schema[key]}" for key, sign in _LIMITS if key in schema]
    return " ".join([kind[schema["type"]], *limits])


_LIMITS = (("minimum", "≥"), ("maximum", "≤"))


def _default(schema: Schema) -> str:
    default = schema.get("default")
    if default is None:
        text = _text(schema)
        computed = "Default:" in text and not re.search("Default: (none|not known)", text)
        return "computed" if computed else "none"
    if isinstance(default, dict | list):
        return "see the template" if default else "none"
    return f"`{json.dumps(default).strip(chr(34))}`" if default != "" else "none"


if __name__ == "__main__":
    sys.stdout.write(page())
