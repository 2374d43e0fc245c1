"""The schema of the provider, from which SDKs of other languages are generated."""

import inspect
import json
import re
from collections.abc import Mapping
from typing import Any

from earshot_pulumi.provider.kind import Kind
from earshot_pulumi.provider.resource import EarshotResource, type_token

ABOUT = {
    "description": "Kafka listeners that are computed, checked before a broker changes, and proved",
    "keywords": ["kafka", "listeners", "category/infrastructure", "kind/component"],
    "license": "Apache-2.0",
}

PACKAGE_NAMES = {"nodejs": "@pulumi/earshot", "python": "pulumi_earshot"}
"""Names of generated SDKs; the default contains the owner of the git repository."""


def completed(
    inferred: str,
    kinds: Mapping[type[EarshotResource], Kind],
    descriptions: Mapping[str, Mapping[str, str]],
) -> str:
    """The schema that Pulumi's SDK ``inferred`` from classes, completed.

    ``descriptions`` are inherited ones, by type token and property name. ``kinds`` are custom
    resources, which the SDK describes as components.
    """
    # generators add "Args" to a type's name themselves
    schema = json.loads(re.sub(r'(earshot:index:\w+?)Args"', r'\1"', inferred))
    for token, texts in descriptions.items():
        definition = schema["resources"].get(token) or schema["types"][token]
        for group in (definition["properties"], definition.get("inputProperties", {})):
            for name in texts.keys() & group.keys():
                group[name].setdefault("description", texts[name])
    for resource, kind in kinds.items():
        definition = schema["resources"][type_token(resource.__name__)]
        definition["isComponent"] = False
        definition["properties"].pop("id", None)
        for group in ("inputProperties", "properties"):
            for name in definition[group].keys() & set(kind.secrets):
                definition[group][name]["secret"] = True
    for language, name in PACKAGE_NAMES.items():
        schema["language"][language]["packageName"] = name
    _unwrap(schema)
    return json.dumps({**schema, **ABOUT})


def _unwrap(node: Any) -> None:
    """Joins the lines of each paragraph in all descriptions below ``node`` of the schema."""
    for value in node.values() if isinstance(node, dict) else node:
        if isinstance(value, dict | list):
            _unwrap(value)
    if isinstance(node, dict) and isinstance(text := node.get("description"), str):
        node["description"] = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(text))
