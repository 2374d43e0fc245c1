"""Kafka's cluster ids: checks and creates them, and derives those of earlier releases."""

import base64
import itertools
import re
import uuid
from collections.abc import Iterable
from typing import Annotated, Final

from pydantic import AfterValidator

from earshot.listeners.problems import shown

ALLOWED: Final = "a UUID as 22 characters of URL-safe base64 that begin with no hyphen"
_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", re.ASCII)
_NAMESPACE: Final = uuid.UUID("0bd8a5c6-6f0b-5c52-9b0e-5a1f6c1f7d55")


def check_cluster_id(value: str) -> str:
    """``value``, if Kafka's tools accept it. Raises ValueError otherwise."""
    if not _ID.fullmatch(value):
        raise ValueError(f"found {shown(value)}; allowed: {ALLOWED}")
    return value


ClusterId = Annotated[str, AfterValidator(check_cluster_id)]


def new_cluster_id() -> str:
    """A random id, like that of Kafka's `random-uuid`."""
    return _first(uuid.uuid4() for _ in itertools.count())


def of_stack_name(stack: str) -> str:
    """The cluster id of stacks called ``stack`` in earlier releases, on docker and aws.

    Running clusters keep it, and their data has no other trace of it.
    """
    return _first(uuid.uuid5(_NAMESPACE, f"{stack}/{turn}") for turn in itertools.count())


def _first(values: Iterable[uuid.UUID]) -> str:
    """The first id without a hyphen at its start, which Kafka's tools would read as an option."""
    texts = (base64.urlsafe_b64encode(id.bytes).decode().rstrip("=") for id in values)
    return next(text for text in texts if not text.startswith("-"))
