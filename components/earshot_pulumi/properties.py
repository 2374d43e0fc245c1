"""Properties of resources as typed values, and paths in them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from earshot.project import Project

T = TypeVar("T")
_adapter: Callable[[Any], TypeAdapter[Any]] = functools.cache(TypeAdapter)


def read(kind: type[T], props: Any) -> T:
    """``props`` of a resource as a ``kind``; keys that ``kind`` does not have are left out."""
    found: T = _adapter(kind).validate_python(props)
    return found


def write(value: Any) -> Any:
    """The props that `read` reads as ``value``."""
    return _adapter(type(value)).dump_python(value, mode="json")


def here(path: str) -> Path:
    """``path`` in this checkout, whichever checkout wrote it into the state."""
    return Project.find().here(Path(path))
