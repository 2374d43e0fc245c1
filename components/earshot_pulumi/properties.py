"""Converts properties of resources to typed values and paths."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from earshot.project import Project

T = TypeVar("T")
_adapter: Callable[[Any], TypeAdapter[Any]] = functools.cache(TypeAdapter)


def read(kind: type[T], props: Any) -> T:
    """``props`` of a resource as a ``kind``, without keys that it does not have."""
    value: T = _adapter(kind).validate_python(props)
    return value


def write(value: Any) -> Any:
    """The props that `read` reads as ``value``."""
    return _adapter(type(value)).dump_python(value, mode="json", by_alias=True)


def here(path: str) -> Path:
    """``path`` in this checkout, whichever checkout wrote it into the state."""
    return Project.of_program().here(Path(path))
