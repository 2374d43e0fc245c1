"""The interface of the resource types of a double, and their errors."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from tests.doubles.plugin.assets import ASSET
from tests.doubles.plugin.values import Plain, is_unknown

Shape = Mapping[str, "Shape | None"]
"""Names of inputs in camelCase, each with the names of its parts (of a list's items, too)."""
Client = TypeVar("Client")


class ProviderError(Exception):
    """The error of the system behind the provider, or of the double, in one line."""


class PartlyCreated(ProviderError):
    """The resource exists, but is incomplete: the state keeps it together with this error."""

    def __init__(self, message: str, id: str, state: Plain) -> None:
        super().__init__(message)
        self.id = id
        self.state = state


class Kind(ABC, Generic[Client]):
    """One resource type over a real system. States and inputs are plain values."""

    shape: Shape
    defaults: Mapping[str, Any] = MappingProxyType({})
    in_place: frozenset[str] = frozenset()
    """Inputs whose change needs no replacement."""
    computed_later: frozenset[str] = frozenset()
    """Inputs that may have any value if the program does not set them."""
    unordered: frozenset[str] = frozenset()
    """Lists whose order does not matter."""
    name_input: str | None = None
    """The input with the name, which is generated if the program does not set it."""

    @abstractmethod
    def create(self, client: Client, inputs: Plain) -> tuple[str, Plain]:
        """Creates the resource. Returns its id and its state, which repeats the inputs."""

    @abstractmethod
    def read(self, client: Client, id: str, state: Plain) -> Plain | None:
        """The current state, or None if the resource does not exist any more."""

    @abstractmethod
    def update(self, client: Client, id: str, state: Plain, inputs: Plain) -> Plain:
        """Changes the resource. Returns the new state, which repeats the inputs."""

    @abstractmethod
    def delete(self, client: Client, id: str, state: Plain) -> None:
        """Deletes the resource. A missing resource counts as deleted."""

    def deletes_first(self, state: Plain, inputs: Plain) -> bool:
        """True if the old resource must be deleted before its replacement is created."""
        return self.name_input is not None and state.get(self.name_input) == inputs.get(
            self.name_input
        )

    def needs_replacement(self, name: str, state: Plain, inputs: Plain) -> bool:
        """True if a change of the input ``name`` needs a new resource."""
        return name not in self.in_place

    def planned(self, state: Plain, inputs: Plain) -> Plain:
        """The predicted state of a change in place: computed values stay the same."""
        unchanged = {
            name: value
            for name, value in state.items()
            if name not in self.shape or name in self.computed_later
        }
        return unchanged | inputs

    def compared(self) -> Iterable[str]:
        """The computed values: those of a state that are not inputs."""
        return self.shape

    def objections(self, inputs: Plain) -> Iterable[tuple[str, str]]:
        """Inputs with a value that is not implemented, and the reason."""
        return ()


def not_implemented(inputs: Mapping[str, Any], shape: Shape, path: str = "") -> Iterator[str]:
    """The paths of inputs that are not in ``shape``."""
    for name, value in inputs.items():
        input_path = f"{path}{name}"
        if name not in shape:
            yield input_path
            continue
        parts = shape[name]
        if parts is None or is_unknown(value):
            continue
        for element in value if isinstance(value, list) else [value]:
            if isinstance(element, Mapping):
                yield from not_implemented(element, parts, f"{input_path}.")


def changed_inputs(kind: Kind[Any], state: Plain, inputs: Plain) -> list[str]:
    """The inputs that differ from ``state``, with defaults for missing ones."""

    def of(values: Plain, name: str) -> Any:
        value = values.get(name, kind.defaults.get(name))
        if name in kind.unordered and isinstance(value, list):
            value = sorted(value, key=lambda element: json.dumps(element, sort_keys=True))
        return value if value not in ([], {}, "") else None

    return [
        name
        for name in kind.compared()
        if not (name in kind.computed_later and name not in inputs)
        and not _same(of(state, name), of(inputs, name))
    ]


def _same(old_value: Any, new_value: Any) -> bool:
    """True for equal values; in lists of objects, a part without input may have any value."""
    if (
        isinstance(old_value, list)
        and isinstance(new_value, list)
        and len(old_value) == len(new_value)
    ):
        return all(_same(*pair) for pair in zip(old_value, new_value, strict=True))
    if isinstance(old_value, dict) and isinstance(new_value, dict):
        if ASSET in old_value and ASSET in new_value:
            return bool(old_value["hash"] == new_value["hash"])
        return new_value.keys() <= old_value.keys() and all(
            _same(old_value[name], new_value[name]) for name in new_value
        )
    return bool(old_value == new_value)
