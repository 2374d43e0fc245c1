"""What a program hands to the engine, with its secrets opened, as a provider gets it."""

from typing import Any

from google.protobuf import json_format
from pulumi.runtime import rpc

SIGNATURE = "4dabf18193072939515e22adb298388d"
"""A key that a secret has on its way to the engine."""


def plain_inputs(request: Any, keep_unknowns: bool = False) -> dict[str, Any]:
    """The inputs of a registration."""
    found, _ = rpc.deserialize_properties_unwrap_secrets(request.object, keep_unknowns)
    return dict(found)


def secret_inputs(request: Any) -> set[str]:
    """The inputs of a registration that are secrets, or have one in them."""
    found = rpc.deserialize_properties(request.object, keep_unknowns=True)
    return {key for key, value in found.items() if rpc.is_rpc_secret(value)}


def visible(request: Any) -> str:
    """The inputs of a registration as whoever may read Pulumi's state or a preview sees them."""
    return repr(_hidden(json_format.MessageToDict(request.object)))


def _hidden(value: Any) -> Any:
    if isinstance(value, dict):
        if SIGNATURE in value:
            return "[secret]"
        return {key: _hidden(item) for key, item in value.items()}
    return [_hidden(item) for item in value] if isinstance(value, list) else value
