"""Defaults as the official plugin fills them into inputs: each object lists those it got."""

from collections.abc import Mapping
from typing import Any

from tests.doubles.plugin.kind import Shape
from tests.doubles.plugin.values import Plain

FILLED_IN = "__defaults"
"""In an object of inputs: the names of those that the plugin filled in."""
BELOW: Mapping[str, Plain] = {
    "healthcheck": {"startInterval": "0s"},
    "ports": {"ip": "0.0.0.0", "protocol": "tcp"},
}
"""Defaults of the objects below an input."""


def filled(values: Plain, defaults: Plain, shape: Shape) -> Plain:
    """``values`` with ``defaults`` where they say nothing, and the same for the objects in them."""
    found = dict(values)
    for name, parts in shape.items():
        if parts is not None and name in values:
            found[name] = _below(values[name], BELOW.get(name, {}), parts)
    missing = {name: value for name, value in defaults.items() if name not in values}
    return found | missing | {FILLED_IN: sorted(missing)}


def _below(value: Any, defaults: Plain, parts: Shape) -> Any:
    if isinstance(value, list):
        return [_below(item, defaults, parts) for item in value]
    return filled(value, defaults, parts) if isinstance(value, dict) else value


def without_names(values: Any) -> Any:
    """``values`` without the names of what was filled in, which are no inputs."""
    if isinstance(values, list):
        return [without_names(item) for item in values]
    if not isinstance(values, dict):
        return values
    return {name: without_names(it) for name, it in values.items() if name != FILLED_IN}
