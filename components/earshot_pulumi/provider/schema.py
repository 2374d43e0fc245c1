"""The schema of the provider, from which SDKs of other languages are generated."""

import inspect
import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from earshot.config.aws_sections import NetworkSpec
from earshot.config.listener import ListenerSpec
from earshot.config.schema import descriptions, parts
from earshot.placement_registry import PLACEMENTS
from earshot_pulumi.provider.kind import Kind
from earshot_pulumi.provider.resource import EarshotResource, camel_case, type_token

ABOUT = {
    "description": "Kafka listeners that are computed, checked before a broker changes, and proved",
    "keywords": ["kafka", "listeners", "category/infrastructure", "kind/component"],
    "license": "Apache-2.0",
}

PACKAGE_NAMES = {"nodejs": "@pulumi/earshot", "python": "pulumi_earshot"}
"""Names of generated SDKs; the default contains the owner of the git repository."""


def names_of_models() -> Mapping[type[BaseModel], str]:
    """The names of components and types of the schema, by the model that has the same keys."""
    names: dict[type[BaseModel], str] = {}
    for placement, entry in PLACEMENTS.items():
        model = entry.module("earshot.config").MODEL
        names |= {part: part.__name__.removesuffix("Spec") for part in parts(model)}
        names[model] = f"{placement.title()}Cluster"
    # the component `Listeners` has another `Listener`
    return names | {ListenerSpec: "ClusterListener", NetworkSpec: "AwsNetwork"}


def completed(
    inferred: str,
    kinds: Mapping[type[EarshotResource], Kind],
    inherited: Mapping[str, Mapping[str, str]],
) -> str:
    """The schema that Pulumi's SDK ``inferred`` from classes, completed.

    ``inherited`` are descriptions by type token and property name. ``kinds`` are custom resources,
    which the SDK describes as components.
    """
    # generators add "Args" to a type's name themselves
    schema = json.loads(re.sub(r'(earshot:index:\w+?)Args"', r'\1"', inferred))
    resources, types = schema["resources"], schema["types"]
    for model, name in names_of_models().items():
        definition = resources.get(type_token(name)) or types.get(type_token(name)) or {}
        inputs = definition.get("inputProperties") or definition.get("properties", {})
        for key, text in descriptions(model).items():
            if (input := inputs.get(camel_case(key))) is not None:
                default = _default(model, key) if "inputProperties" in definition else ""
                input["description"] = text + default
    for token, texts in inherited.items():
        definition = resources[token]
        for group in (definition["properties"], definition["inputProperties"]):
            for name in texts.keys() & group.keys():
                group[name].setdefault("description", texts[name])
    for resource, kind in kinds.items():
        definition = resources[type_token(resource.__name__)]
        definition["isComponent"] = False
        definition["properties"].pop("id", None)
        for group in ("inputProperties", "properties"):
            for name in definition[group].keys() & set(kind.secrets):
                definition[group][name]["secret"] = True
    for language, name in PACKAGE_NAMES.items():
        schema["language"][language]["packageName"] = name
    _unwrap(schema)
    return json.dumps({**schema, **ABOUT})


def _default(model: type[BaseModel], key: str) -> str:
    """The end of a description; empty if the key has no default that is one value."""
    default = model.model_fields[key].default
    if (not default and default is not False) or not isinstance(default, str | int):
        return ""
    return f" Default: {str(default).lower() if isinstance(default, bool) else default}."


def _unwrap(node: Any) -> None:
    """Joins the lines of each paragraph in all descriptions below ``node`` of the schema."""
    for value in node.values() if isinstance(node, dict) else node:
        if isinstance(value, dict | list):
            _unwrap(value)
    if isinstance(node, dict) and isinstance(text := node.get("description"), str):
        node["description"] = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(text))
