"""What every resource type of the double says of itself, and the errors it ends with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import docker

from tests.doubles.docker.values import Plain, is_unknown

Shape = Mapping[str, "Shape | None"]
"""Names of inputs, camelCase; below a name those of its parts (also of a list's items)."""


class EngineError(Exception):
    """What the engine, or the double in its place, has to say in one line."""


class PartlyCreated(EngineError):
    """It exists and is not as it should be: the state keeps it together with this error."""

    def __init__(self, message: str, id: str, state: Plain) -> None:
        super().__init__(message)
        self.id = id
        self.state = state


class Kind(Protocol):
    """One resource type over a real engine. States and inputs are plain values."""

    shape: Shape
    defaults: Plain
    in_place: frozenset[str]
    """Inputs whose change needs no replacement."""

    def create(self, client: docker.DockerClient, inputs: Plain) -> tuple[str, Plain]:
        """Id and state; the state repeats the inputs."""

    def read(self, client: docker.DockerClient, id: str, state: Plain) -> Plain | None:
        """The state as it is now, or None where it exists no more."""

    def update(
        self, client: docker.DockerClient, id: str, state: Plain, inputs: Plain
    ) -> Plain: ...

    def delete(self, client: docker.DockerClient, id: str, state: Plain) -> None:
        """What is gone already counts as deleted."""


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


def changed(kind: Kind, state: Plain, inputs: Plain) -> list[str]:
    """The inputs in which ``inputs`` differ from ``state``, defaults filled in."""

    def of(values: Plain, name: str) -> Any:
        value = values.get(name, kind.defaults.get(name))
        return value if value not in ([], {}, "") else None

    return [name for name in kind.shape if not _same(of(state, name), of(inputs, name))]


def _same(old: Any, new: Any) -> bool:
    """Equal; in lists of objects, a part that is not asked for may be whatever it has become."""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return all(_same(*pair) for pair in zip(old, new, strict=True))
    if isinstance(old, dict) and isinstance(new, dict):
        return new.keys() <= old.keys() and all(_same(old[name], new[name]) for name in new)
    return bool(old == new)
