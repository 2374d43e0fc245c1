"""Defaults that the official plugin adds to inputs. Each object lists its added names."""

from collections.abc import Mapping
from typing import Any

from tests.doubles.plugin.kind import Shape
from tests.doubles.plugin.values import Plain

FILLED_IN = "__defaults"
"""The key in an object of inputs whose value lists the names that the plugin added."""
BELOW: Mapping[str, Plain] = {
    "healthcheck": {"startInterval": "0s"},
    "ports": {"ip": "0.0.0.0", "protocol": "tcp"},
}
"""Defaults of the objects below an input."""


def with_defaults(values: Plain, defaults: Plain, shape: Shape) -> Plain:
    """``values`` with ``defaults`` for missing ones, and the same for the objects in them."""
    filled_values = dict(values)
    for name, parts in shape.items():
        if parts is not None and name in values:
            filled_values[name] = _below(values[name], BELOW.get(name, {}), parts)
    missing_inputs = {name: value for name, value in defaults.items() if name not in values}
    return filled_values | missing_inputs | {FILLED_IN: sorted(missing_inputs)}


def _below(value: Any, defaults: Plain, parts: Shape) -> Any:
    if isinstance(value, list):
        return [_below(element, defaults, parts) for element in value]
    return with_defaults(value, defaults, parts) if isinstance(value, dict) else value


def without_names(values: Any) -> Any:
    """``values`` without the lists of added names, which are not inputs."""
    if isinstance(values, list):
        return [without_names(value) for value in values]
    if not isinstance(values, dict):
        return values
    return {name: without_names(value) for name, value in values.items() if name != FILLED_IN}
