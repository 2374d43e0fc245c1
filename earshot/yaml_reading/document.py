"""Reads YAML of users within limits, so that no text hangs a command or ends in a trace.

With aliases and merge keys (`<<`) a few hundred bytes can have more values than fit into memory. So
a document is measured before its values are created. Errors are one EarshotError with the source
and, if known, the line.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import yaml
from yaml.composer import Composer

from earshot.errors import EarshotError
from earshot.yaml_reading.tags import (
    Keys,
    compose_tag,
    compose_tag_or_unknown,
    key_text,
    unknown_value,
)

MAX_CHARACTERS = 1 << 20
"""The maximum length of a document; a stack file of a thousand brokers has a tenth of it."""
MAX_DEPTH = 64
"""The maximum depth of nested maps and lists."""
MAX_VALUES = 100_000
"""The maximum number of values and keys, after replacing aliases and merge keys."""
MAX_NUMBER = 400
"""The maximum length of a scalar that is not text: long numbers take Python quadratic time."""
_MERGE = "tag:yaml.org,2002:merge"
_TEXT = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:binary")
_TOO_DEEP = f"is nested more than {MAX_DEPTH} levels deep"
_KEPT_IN_TEXTS = ("tag:yaml.org,2002:null", _MERGE)
T = TypeVar("T")


def read_yaml(text: str, source_name: str) -> object:
    """The values in ``text``, read like a stack file by Pulumi: a repeated key is an error.

    ``source_name`` names the source in messages. Raises EarshotError.
    """
    return _read(text, source_name, _VALUES, partial(_loaded, unique=True))


def read_yaml_texts(
    text: str, source_name: str, *, unique: bool = True, lenient: bool = False
) -> object:
    """Like `read_yaml`, with every scalar as text or None, as Compose reads a file.

    Compose's tags are `Reset` and `OverrideValue`. Other tags raise EarshotError, or are
    `UnknownValue` if ``lenient``.
    YAML 1.1 would read `0`, `1.10` or `22:22` as numbers, and Compose means the text. Unless keys
    must be ``unique``, the last one of a repeated key counts.
    """
    kinds = _LENIENT_TEXTS if lenient else _TEXTS
    return _read(text, source_name, kinds, partial(_loaded, unique=unique))


def read_yaml_documents(text: str, source_name: str, *, unique: bool = True) -> list[object]:
    """All documents in ``text``, read like by `read_yaml_texts`, with one limit for all.

    An empty document is None. A value with a custom tag (`!name`) is an `UnknownValue`.
    """
    return _read(text, source_name, _DOCUMENTS, partial(_all_loaded, unique=unique))


def read_cloud_config(text: str, source_name: str) -> object:
    """The values in ``text``, read like user data by cloud-init: of a repeated key, the last.

    Raises EarshotError.
    """
    return _read(text, source_name, (_Fast,), partial(_loaded, unique=False))


def yaml_nodes(text: str, source_name: str) -> yaml.Node | None:
    """The YAML nodes of ``text`` with their positions; an alias is the node that it refers to.

    None for an empty document. Raises EarshotError.
    """
    return _parsed(text, source_name, _VALUES, _single_node)


def yaml_nodes_of_documents(text: str, source_name: str) -> list[yaml.Node]:
    """Like `yaml_nodes`, for all documents in ``text``, in order. Raises EarshotError."""
    return _parsed(text, source_name, _VALUES, _every_node)


def repeated_keys(text: str, source_name: str) -> list[Keys]:
    """The paths of keys that occur twice in one map, without merge keys. Raises EarshotError."""
    root = yaml_nodes(text, source_name)
    return [] if root is None else [*_repeated(root, (), set())]


def _repeated(node: yaml.Node, path: Keys, seen_nodes: set[int]) -> Iterator[Keys]:
    if not isinstance(node, yaml.CollectionNode) or id(node) in seen_nodes:
        return
    seen_nodes.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, part in enumerate(node.value):
            yield from _repeated(part, (*path, str(index)), seen_nodes)
        return
    names: set[str] = set()
    for key, value in node.value:
        name = key_text(key) if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE else None
        if name in names:
            yield (*path, str(name))
        names |= {name} if name is not None else set()
        yield from _repeated(value, (*path, str(name)), seen_nodes)


def _parsed(
    text: str,
    source_name: str,
    kinds: tuple[type[Any], ...],
    load: Callable[[Any], T],
    remedy: str = "",
) -> T:
    """The result of ``load`` for ``text``, with the first loader in ``kinds`` that can read it."""
    kind, *later_kinds = kinds
    try:
        loader = kind(text)
        try:
            return load(loader)
        finally:
            loader.dispose()
    except _Refused as error:
        observed = f"{_where(error.mark)}{error.problem}"
        raise EarshotError(source_name, observed=observed, remedy=remedy) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        if later_kinds:
            return _parsed(text, source_name, tuple(later_kinds), load, remedy)
        raise _no_yaml(source_name, error) from None


def _single_node(loader: Any) -> yaml.Node | None:
    node: yaml.Node | None = loader.get_single_node()
    return node


def _every_node(loader: Any) -> list[yaml.Node]:
    nodes = []
    while loader.check_node():
        nodes.append(loader.get_node())
    return nodes


class _Bounded(Composer):
    """Stops parsing at `MAX_DEPTH` and `MAX_VALUES`, below Python's recursion limit."""

    depth = 0
    count = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.depth += 1
        self.count += 1
        mark = self.peek_event().start_mark  # type: ignore[attr-defined]
        if self.depth > MAX_DEPTH:
            raise _Refused(_TOO_DEEP, mark)
        if self.count > MAX_VALUES:
            raise _Refused(f"holds more than {MAX_VALUES:,} values", mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


_Libyaml: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Fast(_Bounded, _Libyaml):  # type: ignore[misc]
    """The loader of libyaml, which every wheel has: several times as fast."""

    def __init__(self, text: str) -> None:
        _Libyaml.__init__(self, text)
        Composer.__init__(self)  # libyaml's composer does not count


class _Python(_Bounded, yaml.SafeLoader):
    """PyYAML's loader, which has the same messages everywhere, and accepts `{E:, F:}`."""


class _LenientMerge:
    """Reads a merge key (`<<`) whose value has a custom tag as a plain key."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        for key, value in node.value:
            parts = value.value if isinstance(value, yaml.SequenceNode) else []
            if key.tag == _MERGE and any(part.tag.startswith("!") for part in (value, *parts)):
                key.tag = _TEXT[0]
        super().flatten_mapping(node)  # type: ignore[misc]  # of the loader that it is mixed into


def _of_texts(
    kind: type[Any], tagged: Callable[[Any, str, Any], object], prefix: str | None = None
) -> Any:
    """``kind`` with every scalar as text; ``tagged`` reads the values with tags of ``prefix``, or
    with any tag that PyYAML does not know."""
    resolvers = {
        first: [resolver for resolver in kind_resolvers if resolver[0] in _KEPT_IN_TEXTS]
        for first, kind_resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    bases = (kind,) if prefix else (_LenientMerge, kind)
    text_kind: Any = type(kind.__name__, bases, {"yaml_implicit_resolvers": resolvers})
    text_kind.add_multi_constructor(prefix, tagged)
    return text_kind


_VALUES = (_Fast, _Python)
_TEXTS = tuple(_of_texts(kind, compose_tag, "!") for kind in _VALUES)
_LENIENT_TEXTS = tuple(_of_texts(kind, compose_tag_or_unknown) for kind in _VALUES)
_DOCUMENTS = tuple(_of_texts(kind, unknown_value) for kind in _VALUES)


class _Refused(Exception):
    """The document exceeds a limit."""

    def __init__(self, problem: str, mark: Any) -> None:
        self.problem = problem
        self.mark = mark


def _read(text: str, source_name: str, kinds: tuple[type[Any], ...], load: Callable[[Any], T]) -> T:
    if len(text) > MAX_CHARACTERS:
        raise EarshotError(
            source_name,
            observed=f"holds {len(text):,} characters",
            allowed=f"YAML of at most {MAX_CHARACTERS:,} characters",
        )
    remedy = "write it with fewer aliases (*name) and levels, or in several files"
    return _parsed(text, source_name, kinds, load, remedy)


def _loaded(loader: Any, *, unique: bool) -> object:
    node = _single_node(loader)
    if node is None:
        return None
    _Measure(unique).node(node)
    return _made(loader, node)


def _all_loaded(loader: Any, *, unique: bool) -> list[object]:
    nodes, size = _every_node(loader), 0
    for node in nodes:
        size += _Measure(unique).node(node)[0]
        if size > MAX_VALUES:
            problem = f"with its aliases (*name) it holds more than {MAX_VALUES:,} values"
            raise _Refused(problem, node.start_mark)
    return [_made(loader, node) for node in nodes]


# what is named in quotes may be a password that is not quoted in the file
_NAMED = re.compile(
    r"^(?:found (undefined alias|duplicate anchor)|could not determine a constructor for the (tag)"
    r"|found undefined (tag) handle) .*"
)
_NO_NAME = r"found: \1\2\3; a text that begins with *, & or ! belongs in quotes"


def _no_yaml(source_name: str, error: Exception) -> EarshotError:
    if isinstance(error, yaml.MarkedYAMLError):
        where = _where(error.problem_mark or error.context_mark)
        problem = _NAMED.sub(_NO_NAME, error.problem or "")
        return EarshotError(
            source_name,
            observed=f"is no YAML; {where}{problem or error.context}",
            remedy="fix that line (indent with blanks, never with tabs)",
        )
    # a control character has no line of its own; a date such as 2024-99-99 is a ValueError
    message = str(error).splitlines()[0].partition(": '")[0]  # what is quoted may be a password
    return EarshotError(source_name, observed=f"is no YAML ({message})", allowed="a YAML file")


def _made(loader: Any, node: yaml.Node) -> object:
    try:
        made: object = loader.construct_document(node)
    except (LookupError, AttributeError, TypeError):  # PyYAML's own, as for `!!bool x`
        problem = "a tag (!!name) does not fit its value"
        raise yaml.constructor.ConstructorError(problem=problem) from None
    return made


class _Measure:
    """Measures a document by its nodes. Each node is visited once, even if aliases repeat it."""

    def __init__(self, unique: bool) -> None:
        self._unique = unique
        self._found: dict[int, tuple[int, int]] = {}
        self._within: set[int] = set()

    def node(self, node: yaml.Node) -> tuple[int, int]:
        """The number of values in ``node``, with those of aliases each time, and its depth.

        A merge key counts like an alias.
        """
        if isinstance(node, yaml.ScalarNode):
            if node.tag not in _TEXT and len(node.value) > MAX_NUMBER:
                raise _Refused(
                    f"a value of {len(node.value):,} characters is no text; "
                    "it belongs in quotes if it is meant as one",
                    node.start_mark,
                )
            return 1, 0
        if id(node) in self._within:
            raise _Refused("an alias (*name) is within the value that it repeats", node.start_mark)
        if id(node) not in self._found:
            self._within.add(id(node))
            below = [self.node(part) for part in self._parts(node)]
            self._within.discard(id(node))
            size = 1 + sum(size for size, _ in below)
            depth = 1 + max((depth for _, depth in below), default=0)
            if size > MAX_VALUES:
                problem = f"its aliases (*name) repeat more than {MAX_VALUES:,} values"
                raise _Refused(problem, node.start_mark)
            if depth > MAX_DEPTH:
                raise _Refused(_TOO_DEEP, node.start_mark)
            self._found[id(node)] = size, depth
        return self._found[id(node)]

    def _parts(self, node: yaml.Node) -> list[yaml.Node]:
        if isinstance(node, yaml.SequenceNode):
            return list(node.value)
        seen: set[str] = set()
        for key, _ in node.value if self._unique else ():
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        problem=f"the key {key.value!r} occurs twice", problem_mark=key.start_mark
                    )
                seen.add(key.value)
        return [part for pair in node.value for part in pair]


def _where(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
