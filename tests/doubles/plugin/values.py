"""Property values of the provider protocol as plain Python, and back."""

from collections.abc import Mapping, Sequence
from typing import Any

from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.runtime.rpc import UNKNOWN

Plain = dict[str, Any]


def plain(values: Mapping[str, PropertyValue]) -> Plain:
    """Nested dicts and lists. Whole numbers, which arrive as floats, become ints."""
    return {name: _plain(value) for name, value in values.items() if value.value is not None}


def wrapped(values: Mapping[str, Any]) -> dict[str, PropertyValue]:
    return {name: _wrapped(value) for name, value in values.items() if value is not None}


def is_unknown(value: object) -> bool:
    """True for the protocol's marker of a value that a preview does not know yet."""
    return value == UNKNOWN


def contains_unknown(value: Any) -> bool:
    """True if the value, or a part of it, is not known yet."""
    if isinstance(value, Mapping):
        return any(map(contains_unknown, value.values()))
    if isinstance(value, list):
        return any(map(contains_unknown, value))
    return is_unknown(value)


def _plain(value: PropertyValue) -> Any:
    inner = value.value
    if isinstance(inner, float):
        return int(inner) if inner.is_integer() else inner
    if isinstance(inner, Mapping):
        return plain(inner)
    if isinstance(inner, Sequence) and not isinstance(inner, str):
        return [_plain(element) for element in inner]
    return inner


def _wrapped(value: Any) -> PropertyValue:
    if isinstance(value, Mapping):
        return PropertyValue(wrapped(value))
    if isinstance(value, (list, tuple)):
        return PropertyValue([_wrapped(element) for element in value])
    if isinstance(value, int) and not isinstance(value, bool):
        return PropertyValue(float(value))
    return PropertyValue(value)
