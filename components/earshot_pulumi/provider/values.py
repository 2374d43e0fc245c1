"""Plain data from the engine's messages, and messages from plain data."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from google.protobuf import struct_pb2
from pulumi.provider.experimental.property_value import Computed, PropertyValue
from pulumi.runtime import rpc

from earshot.errors import EarshotError
from earshot_pulumi.provider.kind import UNKNOWN, Properties

_NOT_SECRET = PropertyValue(None)


def plain(value: PropertyValue, path: str) -> Any:
    """``value`` as plain data: whole numbers are int, unknown values are `UNKNOWN`.

    Keys of maps whose value is null are left out, as in states of Pulumi's dynamic providers.
    Raises EarshotError, with the ``path`` of the value, for assets, archives and resources.
    """
    inner = value.value
    if isinstance(inner, Computed) or inner == rpc.UNKNOWN:
        return UNKNOWN
    if isinstance(inner, bool) or inner is None or isinstance(inner, str):
        return inner
    if isinstance(inner, float):
        return int(inner) if inner.is_integer() else inner
    if isinstance(inner, Mapping):
        return {
            key: plain(entry, f"{path}.{key}")
            for key, entry in inner.items()
            if entry.value is not None
        }
    if isinstance(inner, Sequence):
        return [plain(element, path) for element in inner if isinstance(element, PropertyValue)]
    observed = f"found a {type(inner).__name__}"
    raise EarshotError(path, observed=observed, allowed="text, numbers, lists and maps")


def plain_properties(struct: struct_pb2.Struct) -> Properties:
    """The properties of a message."""
    return {key: plain(value, key) for key, value in PropertyValue.unmarshal_map(struct).items()}


def message(
    properties: Properties,
    request_inputs: struct_pb2.Struct | None = None,
    secrets: Collection[str] = (),
) -> struct_pb2.Struct:
    """``properties`` for the engine, which encrypts secrets in the state.

    A property is secret if ``secrets`` has its name, or if it is a secret in ``request_inputs``. In
    an unchanged map, only the values that are secrets there are secret.
    """
    request_values = (
        PropertyValue.unmarshal_map(request_inputs) if request_inputs is not None else {}
    )
    return PropertyValue.marshal_map(
        {
            key: _marked(value, request_values.get(key), key in secrets)
            for key, value in properties.items()
            if value is not None
        }
    )


def _marked(value: Any, request_value: PropertyValue | None, secret: bool) -> PropertyValue:
    if secret or request_value is None or not request_value.contains_secret():
        return _wrapped(value).with_secret(secret)
    if plain(request_value, "") == value:
        return _wrapped(value, request_value)
    return _wrapped(value).with_secret(True)


def _wrapped(value: Any, like: PropertyValue = _NOT_SECRET) -> PropertyValue:
    """``value``, with the same parts secret as in ``like``, which has the same data."""
    inner = like.value
    wrapped: PropertyValue
    if value is UNKNOWN:
        wrapped = PropertyValue(rpc.UNKNOWN)  # the SDK marshals no `Computed`
    elif value is None or isinstance(value, bool | str):
        wrapped = PropertyValue(value)
    elif isinstance(value, int | float):
        wrapped = PropertyValue(float(value))
    elif isinstance(value, Mapping):
        like_entries = inner if isinstance(inner, Mapping) else {}
        wrapped = PropertyValue(
            {
                key: _wrapped(entry, like_entries.get(key, _NOT_SECRET))
                for key, entry in value.items()
            }
        )
    else:
        # ``like`` has no elements if it is not a list
        like_elements = inner if isinstance(inner, list | tuple) else [_NOT_SECRET] * len(value)
        wrapped = PropertyValue(
            [_wrapped(*pair) for pair in zip(value, like_elements, strict=True)]
        )
    return wrapped.with_secret(like.is_secret)
