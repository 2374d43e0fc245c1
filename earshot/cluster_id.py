"""Kafka's id of a cluster: what one looks like, a new one, and those of earlier releases."""

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
    """``value`` where Kafka's tools take it; raises ValueError."""
    if not _ID.fullmatch(value):
        raise ValueError(f"found {shown(value)}; allowed: {ALLOWED}")
    return value


ClusterId = Annotated[str, AfterValidator(check_cluster_id)]


def new_cluster_id() -> str:
    """A random one, as Kafka's own `random-uuid` prints."""
    return _first(uuid.uuid4() for _ in itertools.count())


def of_stack_name(stack: str) -> str:
    """What earlier releases gave every stack called ``stack``, on docker and aws.

    Their data carries no other mark of it, and the clusters that run keep it.
    """
    return _first(uuid.uuid5(_NAMESPACE, f"{stack}/{turn}") for turn in itertools.count())


def _first(values: Iterable[uuid.UUID]) -> str:
    """Of the first that begins with no hyphen: Kafka's tools would take it for an option."""
    texts = (base64.urlsafe_b64encode(it.bytes).decode().rstrip("=") for it in values)
    return next(text for text in texts if not text.startswith("-"))
