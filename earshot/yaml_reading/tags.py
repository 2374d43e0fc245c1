"""Values with custom tags (`!name`) in YAML: the tags of Compose, and values that are not known."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

Keys = tuple[str, ...]
"""The path of keys to a value in a document."""
_STANDARD = "tag:yaml.org,2002:"
"""The prefix of YAML's own tags, written `!!`."""
_NOT_OF_WORDS = re.compile(r"\W+", re.ASCII)


@dataclass(frozen=True)
class Reset:
    """`!reset` of Compose: removes the value of the base file; the tag's own value is ignored.

    Source, also of `OverrideValue`: https://docs.docker.com/reference/compose-file/merge/
    """


@dataclass(frozen=True)
class OverrideValue:
    """`!override` of Compose: ``value`` replaces the whole value of the base file."""

    value: object


class UnknownValue(str):
    """The text `${name}` for a value with the custom tag `!name`, which another tool replaces."""

    @property
    def name(self) -> str:
        """The tag's name without marks."""
        return self[2:-1]


def compose_tag(loader: Any, suffix: str, node: yaml.Node) -> object:
    """The value of a node with the tag `!suffix` of Compose. Refuses other tags."""
    if suffix == "reset":
        return Reset()
    if suffix == "override":
        if isinstance(node, yaml.MappingNode):
            return OverrideValue(loader.construct_mapping(node, deep=True))
        if isinstance(node, yaml.SequenceNode):
            return OverrideValue(loader.construct_sequence(node, deep=True))
        return OverrideValue(loader.construct_scalar(node) or None)
    raise yaml.constructor.ConstructorError(  # it may be a password without quotes
        problem="a tag (!name) is not read; adopt what `docker compose config` prints",
        problem_mark=node.start_mark,
    )


def unknown_value(_loader: object, tag: str, _node: yaml.Node) -> UnknownValue:
    """The value of a node with any custom tag."""
    name = tag.removeprefix(_STANDARD).lstrip("!")
    return UnknownValue(f"${{{re.sub(_NOT_OF_WORDS, '_', name)}}}")


def key_text(key: yaml.Node) -> str:
    """The text of a map's ``key``, which a custom tag replaces."""
    return unknown_value(None, key.tag, key) if key.tag.startswith("!") else str(key.value)


def compose_tag_or_unknown(loader: Any, tag: str, node: yaml.Node) -> object:
    """The value of a node with a tag of Compose, or with any other custom tag."""
    if tag in ("!reset", "!override"):
        return compose_tag(loader, tag.removeprefix("!"), node)
    return unknown_value(loader, tag, node)


def tagged(value: object, path: Keys = ()) -> Iterator[Keys]:
    """The path of each tag in ``value``."""
    if isinstance(value, (Reset, OverrideValue)):
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from tagged(item, (*path, str(key)))


def untagged(value: object) -> object:
    """``value`` with the tags applied: without reset values, and with overriding ones."""
    if isinstance(value, OverrideValue):
        return untagged(value.value)
    if isinstance(value, dict):
        return {k: untagged(item) for k, item in value.items() if not isinstance(item, Reset)}
    if isinstance(value, list):
        return [untagged(item) for item in value if not isinstance(item, Reset)]
    return None if isinstance(value, Reset) else value


def without(value: Mapping[str, object], paths: Collection[Keys]) -> dict[str, object]:
    """``value`` without the values at ``paths``; an empty path removes all of it."""
    found = dict(value)
    for first, *rest in filter(None, paths):
        below = found.get(first)
        if not rest:
            found.pop(first, None)
        elif isinstance(below, Mapping):
            found[first] = without(below, [tuple(rest)])
    return {} if () in paths else found
