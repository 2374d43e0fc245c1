"""Reads `earshot:cluster` of a stack file into one frozen model.

Errors have the key, the value found, and the allowed values. A spec that `read_spec` accepts can be
planned.
"""

import json
from collections.abc import Mapping
from typing import Any, Protocol

from earshot.config.cluster import ClusterSpec
from earshot.errors import SpecError
from earshot.json_object import Document
from earshot.listeners.problems import read_model, shown
from earshot.placement_registry import PLACEMENTS

Spec = ClusterSpec
"""The spec of any placement."""
EXTENDS = "extends"
"""The key with the name of the stack whose file has the omitted keys."""


class StackFiles(Protocol):
    """The stack files that a cluster may extend."""

    @property
    def stacks(self) -> tuple[str, ...]:
        """The stacks that have a file."""

    def shown_file(self, stack: str) -> str:
        """The name of the file of ``stack`` in messages."""

    def cluster(self, stack: str) -> object:
        """The value of `earshot:cluster` in the file of ``stack``. Raises EarshotError."""


def read_spec_text(text: str | None, source: str, files: StackFiles | None = None) -> Spec:
    """Like `read_spec`, for JSON, as Pulumi passes values of a stack file; None for no value.

    A text that is not JSON is itself the value: `earshot:cluster: local`. Raises SpecError.
    """
    try:
        value = json.loads(text) if text is not None else None
    except (ValueError, RecursionError):
        value = text
    return read_spec(value, source, files)


def read_spec(value: object, source: str, files: StackFiles | None = None) -> Spec:
    """The cluster that ``value`` (parsed YAML or JSON) describes.

    ``source`` is its place in messages ("stacks/Pulumi.local.yaml, earshot:cluster"); ``files`` has
    the stacks that it may extend. Raises SpecError with every problem found, each with its key.
    """
    value, source = _extended(value, source, files)
    if not isinstance(value, Mapping):
        raise SpecError(
            source,
            observed=f"found {shown(value)}",
            allowed="a map of settings with at least `placement`",
            remedy="see the comments in stacks/Pulumi.local.yaml",
        )
    if value.keys() == {"secure"}:
        raise SpecError(
            source,
            observed="is a secret",
            allowed="settings in plain text; passwords are secrets of their own",
            remedy="see the comments in stacks/Pulumi.local.yaml, and docs/security.md",
        )
    placement = value.get("placement")
    if not isinstance(placement, str) or placement not in PLACEMENTS:
        raise SpecError(
            f"{source}: placement",
            observed=f"found {shown(placement)}" if "placement" in value else "is missing",
            allowed=", ".join(PLACEMENTS),
        )
    model: type[ClusterSpec] = PLACEMENTS[placement].module("earshot.config").MODEL
    try:
        return read_model(model, value, source)
    except UnicodeEncodeError as error:  # in a key; pydantic refuses such values itself
        problem = f"found the character {shown(error.object[error.start : error.end])}"
        raise SpecError(source, observed=problem, allowed="text that UTF-8 has") from None


def _extended(value: object, source: str, files: StackFiles | None) -> tuple[object, str]:
    """``value`` merged over the files that it extends, and a source with all their names."""
    layers: list[Document] = []
    names_seen: list[str] = []
    while isinstance(value, Mapping) and EXTENDS in value:
        layers.append({key: key_value for key, key_value in value.items() if key != EXTENDS})
        name = value[EXTENDS]
        if files is None:
            problem, allowed = f"found {shown(name)}", "only in a stack file"
            raise SpecError(f"{source}: {EXTENDS}", observed=problem, allowed=allowed)
        if name not in files.stacks:
            allowed = f"a stack with a file: {', '.join(files.stacks)}"
            raise SpecError(
                f"{source}: {EXTENDS}", observed=f"found {shown(name)}", allowed=allowed
            )
        if name in names_seen:
            chain = " -> ".join([*names_seen, name])
            allowed = "files that do not extend each other in a circle"
            raise SpecError(f"{source}: {EXTENDS}", observed=f"found {chain}", allowed=allowed)
        names_seen.append(name)
        value = files.cluster(name)
        source += f", which extends {files.shown_file(name)}"
    for layer in reversed(layers):
        if not isinstance(value, Mapping):
            break
        value = merged(value, layer)
    return value, source


def merged(base: Mapping[Any, Any], over: Mapping[Any, Any]) -> dict[Any, Any]:
    """``base`` with the keys of ``over``: maps are merged, lists and other values replaced, and a
    key that is null in ``over`` is removed (as in RFC 7396)."""
    result = dict(base)
    for key, over_value in over.items():
        # YAML has numbers for keys where JSON has text
        key = next((base_key for base_key in base if str(base_key) == str(key)), key)
        below = result.get(key)
        if over_value is None:
            result.pop(key, None)
        elif isinstance(over_value, Mapping):
            result[key] = merged(below if isinstance(below, Mapping) else {}, over_value)
        else:
            result[key] = over_value
    return result
