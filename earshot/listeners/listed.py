"""Many nodes, or many names, in one sentence; many things by what they have in common."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

MAX_SHOWN = 3
"""So many of what is alike are written out: texts, names of containers. Ids all are."""


def listed(items: Iterable[object]) -> str:
    """`1, 2, 3`: all of them."""
    return ", ".join(map(str, items))


def numbered(noun: str, ids: Iterable[int]) -> str:
    """`broker 1`, `brokers 1, 2`, `brokers 1 to 3, 7`: every one of them."""
    sorted_ids = sorted(set(ids))
    return f"{noun}{'s' if len(sorted_ids) > 1 else ''} {', '.join(_runs(sorted_ids))}"


def _runs(ids: Sequence[int]) -> list[str]:
    """`1 to 3`, `7`: each run of at least three as one."""
    texts: list[str] = []
    for _, numbered in groupby(enumerate(ids), key=lambda pair: pair[1] - pair[0]):
        run = [id for _, id in numbered]
        texts += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run)
    return texts


def several(noun: str, items: Sequence[str]) -> str:
    """`container a`, `containers a, b`, `containers a, b, c and 97 more`."""
    return f"{noun}{'s' if len(items) > 1 else ''} {shortened(items)}"


def shortened(items: Sequence[str]) -> str:
    """The first of ``items``, and how many more there are."""
    more = f" and {len(items) - MAX_SHOWN} more" if len(items) > MAX_SHOWN else ""
    return f"{', '.join(items[:MAX_SHOWN])}{more}"


def briefly(items: Sequence[str], most: int = 16) -> str:
    """All of at most ``most`` ``items``, and `shortened` for more."""
    return shortened(items) if len(items) > most else ", ".join(items)


def clipped(text: str, most: int) -> str:
    """``text`` in at most ``most`` characters (40 or more); of a longer one the first, and how many
    it has."""
    if len(text) <= most:
        return text
    count = f"... ({len(text):,} characters)"
    return text[: most - len(count)] + count


def by_key(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """The values of each key, in their order."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
