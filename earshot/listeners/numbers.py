"""Numbers of models: `true` is none, though Python, and pydantic with it, take it for 1."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import CoreSchema, core_schema

from earshot.json_object import Document
from earshot.listeners.problems import shown

_NUMBERS = ("int", "float")
_NO_SCHEMA = ("metadata", "serialization")
"""Keys of a schema that hold no schema for validation."""


def refuse_truth_value(value: Any) -> Any:
    """``value``, unless it is a truth value: that raises ValueError."""
    if isinstance(value, bool):
        raise ValueError(f"found {shown(value)}; allowed: a number")
    return value


def without_truth_values(schema: CoreSchema) -> CoreSchema:
    """``schema``, in which no number is read from a truth value: also not in lists, and not as a
    key."""
    changed: CoreSchema = _changed(schema)
    return changed


def _changed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_changed(item) for item in schema]
    if isinstance(schema, tuple):
        return tuple(_changed(item) for item in schema)
    if not isinstance(schema, Mapping) or _is_changed(schema):
        return schema
    found = {key: it if key in _NO_SCHEMA else _changed(it) for key, it in schema.items()}
    if found.get("type") not in _NUMBERS and not _is_literal_number(found):
        return found
    number: Any = found
    return core_schema.no_info_before_validator_function(refuse_truth_value, number)


def _is_literal_number(schema: Document) -> bool:
    """Whether it is of a `Literal` with numbers, to which pydantic compares values with `==`."""
    return schema.get("type") == "literal" and any(
        isinstance(value, int) and not isinstance(value, bool) for value in schema["expected"]
    )


def _is_changed(schema: Document) -> bool:
    """Whether it is of a model within this one, which has been changed by itself."""
    function = schema.get("function")
    return isinstance(function, Mapping) and function.get("function") is refuse_truth_value
