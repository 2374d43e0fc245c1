"""Compose's own tags in a file that is laid over another: what they take away from that one.

Source: https://docs.docker.com/reference/compose-file/merge/ (`!reset` removes what is below, and
what stands behind it is ignored; `!override` takes its place as a whole).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from earshot.yaml_document import Overriding, Reset

Keys = tuple[str, ...]


def tagged(value: object, path: Keys = ()) -> Iterator[Keys]:
    """The keys that lead to each tag in ``value``."""
    if isinstance(value, (Reset, Overriding)):
        yield path
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from tagged(item, (*path, str(key)))


def untagged(value: object) -> object:
    """``value`` without what is reset, and with what overrides in its place."""
    if isinstance(value, Overriding):
        return untagged(value.value)
    if isinstance(value, Mapping):
        return {k: untagged(item) for k, item in value.items() if not isinstance(item, Reset)}
    if isinstance(value, list):
        return [untagged(item) for item in value if not isinstance(item, Reset)]
    return None if isinstance(value, Reset) else value


def without(value: Mapping[str, object], paths: Collection[Keys]) -> dict[str, object]:
    """``value`` without what ``paths`` lead to; an empty path leads to all of it."""
    found = dict(value)
    for first, *rest in filter(None, paths):
        below = found.get(first)
        if not rest:
            found.pop(first, None)
        elif isinstance(below, Mapping):
            found[first] = without(below, [tuple(rest)])
    return {} if () in paths else found
