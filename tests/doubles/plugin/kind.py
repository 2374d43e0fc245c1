"""What every resource type of a double says of itself, and the errors it ends with."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from tests.doubles.plugin.assets import ASSET
from tests.doubles.plugin.values import Plain, is_unknown

Shape = Mapping[str, "Shape | None"]
"""Names of inputs, camelCase; below a name those of its parts (also of a list's items)."""
Client = TypeVar("Client")


class ProviderError(Exception):
    """What the system behind the provider, or the double in its place, has to say in one line."""


class PartlyCreated(ProviderError):
    """It exists and is not as it should be: the state keeps it together with this error."""

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
    settled_later: frozenset[str] = frozenset()
    """Inputs that, where they are not given, are whatever they have become."""
    unordered: frozenset[str] = frozenset()
    """Lists whose order means nothing."""
    named: str | None = None
    """The input that gets a made-up name where it is not given."""

    @abstractmethod
    def create(self, client: Client, inputs: Plain) -> tuple[str, Plain]:
        """Id and state; the state repeats the inputs."""

    @abstractmethod
    def read(self, client: Client, id: str, state: Plain) -> Plain | None:
        """The state as it is now, or None where it exists no more."""

    @abstractmethod
    def update(self, client: Client, id: str, state: Plain, inputs: Plain) -> Plain:
        """The state after the change; it repeats the inputs."""

    @abstractmethod
    def delete(self, client: Client, id: str, state: Plain) -> None:
        """What is gone already counts as deleted."""

    def goes_first(self, state: Plain, inputs: Plain) -> bool:
        """Whether the old one has to be deleted before its replacement is created."""
        return self.named is not None and state.get(self.named) == inputs.get(self.named)

    def needs_replacement(self, name: str, state: Plain, inputs: Plain) -> bool:
        """Whether a change of the input ``name`` takes a new resource."""
        return name not in self.in_place

    def planned(self, state: Plain, inputs: Plain) -> Plain:
        """What a preview may say of a change in place: computed values stay as they are."""
        kept = {
            name: value
            for name, value in state.items()
            if name not in self.shape or name in self.settled_later
        }
        return kept | inputs

    def compared(self) -> Iterable[str]:
        """What tells a state from inputs."""
        return self.shape

    def objections(self, inputs: Plain) -> Iterable[tuple[str, str]]:
        """Inputs with a value that is not implemented, and what is wrong with it."""
        return ()


def not_implemented(inputs: Mapping[str, Any], shape: Shape, path: str = "") -> Iterator[str]:
    """The paths of inputs that ``shape`` does not name."""
    for name, value in inputs.items():
        here = f"{path}{name}"
        if name not in shape:
            yield here
            continue
        parts = shape[name]
        if parts is None or is_unknown(value):
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Mapping):
                yield from not_implemented(item, parts, f"{here}.")


def changed(kind: Kind[Any], state: Plain, inputs: Plain) -> list[str]:
    """The inputs in which ``inputs`` differ from ``state``, defaults filled in."""

    def of(values: Plain, name: str) -> Any:
        value = values.get(name, kind.defaults.get(name))
        if name in kind.unordered and isinstance(value, list):
            value = sorted(value, key=lambda it: json.dumps(it, sort_keys=True))
        return value if value not in ([], {}, "") else None

    return [
        name
        for name in kind.compared()
        if not (name in kind.settled_later and name not in inputs)
        and not _same(of(state, name), of(inputs, name))
    ]


def _same(old: Any, new: Any) -> bool:
    """Equal; in lists of objects, a part that is not asked for may be whatever it has become."""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return all(_same(*pair) for pair in zip(old, new, strict=True))
    if isinstance(old, dict) and isinstance(new, dict):
        if ASSET in old and ASSET in new:
            return bool(old["hash"] == new["hash"])
        return new.keys() <= old.keys() and all(_same(old[name], new[name]) for name in new)
    return bool(old == new)
