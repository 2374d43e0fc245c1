"""The JSON Schema of a stack file, for editors, generated from the models that read it.

It accepts every file that earshot accepts; only earshot checks rules over several keys.
"""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from earshot.config.document import EXTENDS
from earshot.json_object import JsonObject
from earshot.placement_registry import PLACEMENTS

Schema = JsonObject
PREFIX = "#/$defs/"
_EXTENDED = {
    "type": "string",
    "description": "The stack whose file, beside this one, has the keys that this file leaves out. "
    "Maps are merged, lists and other values replaced; null removes a key.",
}
_PASSWORDS = {
    "type": "object",
    "description": "By user, a password as a secret, set by "
    "`pulumi config set --secret --path earshot:passwords.USER`.",
}


def stack_file_schema() -> Schema:
    """The schema of `stacks/Pulumi.STACK.yaml`, with a description for every key."""
    models = {
        name: placement.module("earshot.config").MODEL for name, placement in PLACEMENTS.items()
    }
    _, schema = models_json_schema(
        [(model, "validation") for model in models.values()], ref_template=PREFIX + "{model}"
    )
    definitions: dict[str, Schema] = schema["$defs"]
    for definition in definitions.values():
        _without_titles(definition)
    for model in models.values():
        for model_part in parts(model):
            _describe(definitions[model_part.__name__], model_part)
    cluster: Schema = {
        "description": "The Kafka cluster of this stack.",
        "type": "object",
        "properties": {
            "placement": {
                "enum": list(models),
                "description": "Where brokers run.",
            }
        },
        "anyOf": [{"required": ["placement"]}, {"required": [EXTENDS]}],
        "allOf": [
            model_part
            for name, model in models.items()
            for model_part in _of_placement(name, model)
        ],
    }
    references = [{"$ref": PREFIX + model.__name__} for model in models.values()]
    cluster["allOf"] += [
        {"if": {"not": {"required": ["placement"]}}, "then": {"anyOf": references}}
    ]
    for model in models.values():
        own_definition = definitions[model.__name__]
        own_definition["properties"] = {EXTENDS: _EXTENDED, **own_definition["properties"]}
        for model_part in _maps(model):
            definitions[model_part.__name__].pop("required", None)  # `_of_placement` has it
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A stack file of earshot",
        "type": "object",
        "required": ["config"],
        "properties": {
            "config": {
                "description": "Pulumi's configuration of the stack.",
                "type": "object",
                "required": ["earshot:cluster"],
                "properties": {"earshot:cluster": cluster, "earshot:passwords": _PASSWORDS},
            }
        },
        "$defs": definitions,
    }


def parts(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """``model`` and every model below it."""
    seen_models = {model}
    waiting = [model]
    while waiting:
        yield (nested_model := waiting.pop())
        for field in nested_model.model_fields.values():
            inputs = (
                getattr(annotation, "json_schema_input_type", None) for annotation in field.metadata
            )
            fresh = {
                found_model
                for annotation in (field.annotation, *inputs)
                for found_model in _models(annotation)
            } - seen_models
            seen_models |= fresh
            waiting += fresh


@cache
def descriptions(model: type[BaseModel]) -> Mapping[str, str]:
    """The docstring of each field, by name; a subclass's takes precedence."""
    texts: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if issubclass(cls, BaseModel) and cls.__module__.startswith("earshot."):
            body = _classes(cls.__module__)[cls.__name__].body
            for field, text in pairwise(body):
                if (
                    isinstance(field, ast.AnnAssign)
                    and isinstance(field.target, ast.Name)
                    and isinstance(text, ast.Expr)
                    and isinstance(text.value, ast.Constant)
                ):
                    texts[field.target.id] = " ".join(str(text.value.value).split())
    return texts


@cache
def _classes(module: str) -> Mapping[str, ast.ClassDef]:
    """The classes in the source of ``module``, by name."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _describe(definition: Schema, model: type[BaseModel]) -> None:
    texts = descriptions(model)
    for name, field in model.model_fields.items():
        definition["properties"][field.alias or name]["description"] = texts[name]


def _of_placement(name: str, model: type[BaseModel]) -> Iterator[Schema]:
    """The schema's condition for a cluster of placement ``name``."""
    same_placement = {"required": ["placement"], "properties": {"placement": {"const": name}}}
    yield {"if": same_placement, "then": {"$ref": PREFIX + model.__name__}}
    # a file that extends another one may omit required keys
    condition = {"allOf": [same_placement, {"not": {"required": [EXTENDS]}}]}
    yield {"if": condition, "then": _required(model)}


def _required(model: type[BaseModel]) -> Schema:
    """The keys that ``model``, and each map below it, must have."""
    required: Schema = {}
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    if names := [name for name, field in fields.items() if field.is_required()]:
        required["required"] = names
    below = {
        name: required_keys
        for name, field in fields.items()
        if (map_model := _map_of(field.annotation)) is not None
        and (required_keys := _required(map_model))
    }
    if below:
        required["properties"] = below
    return required


def _maps(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """``model`` and the models of the maps below it, outside of lists."""
    yield model
    for field in model.model_fields.values():
        if (map_model := _map_of(field.annotation)) is not None:
            yield from _maps(map_model)


def _map_of(annotation: object) -> type[BaseModel] | None:
    """The model that describes the map at a key; lists of maps have none."""
    if get_origin(annotation) in (tuple, dict):
        return None
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_map_of, get_args(annotation))), None)


def _without_titles(schema: Any) -> None:
    """Removes pydantic's titles, which repeat the keys."""
    if isinstance(schema, dict):
        if isinstance(schema.get("title"), str):
            del schema["title"]
        for value in schema.values():
            _without_titles(value)
    elif isinstance(schema, list):
        for value in schema:
            _without_titles(value)


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)
