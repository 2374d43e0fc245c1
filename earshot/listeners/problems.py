"""What pydantic found wrong with a document, in plain words: key, what was found, what is allowed.

Keys are written as `pulumi config set --path` takes them, but a listener is written by its name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from earshot.errors import EarshotError, SpecError
from earshot.listeners.secrets import without_secrets

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic.fields import FieldInfo

    M = TypeVar("M", bound=BaseModel)

T = TypeVar("T")
V = TypeVar("V")

_ALLOWED = {
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "greater_than": "more than {gt}",
    "less_than": "less than {lt}",
    "string_type": "text (put it in quotes)",
    "string_unicode": "text",
    "string_too_short": "{min_length} character or more",
    "tuple_type": "a list",
    "dict_type": "a map",
    "model_type": "a map of settings",
    "model_attributes_type": "a map of settings",
    "greater_than_equal": "{ge} or more",
    "less_than_equal": "{le} or less",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "too_short": "at least one",
    "too_long": "{max_length} at most",
}
MAX_PROBLEMS = 500
"""Problems of a document that are looked at: a hostile one has millions."""
_LOOKED_AT = 5_000
"""Characters of a value that `shown` searches for secrets: a password may begin in those shown."""
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]{1,60}", re.ASCII)


def read_model(model: type[M], document: object, source: str) -> M:
    """``document`` as a ``model``. Raises SpecError about ``source`` with every problem."""
    from pydantic import ValidationError  # slow to import, and ``model`` has imported it

    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise SpecError.of(source, describe(error, model, document)) from None


def describe(error: ValidationError, model: type[BaseModel], document: object) -> list[str]:
    """Each problem of ``document``, which was read as ``model``, as one line with its key.

    A validator of ours that raises ValueError speaks for itself, with one problem per line.
    """
    problems: list[str] = []
    items = error.errors(include_url=False)[:MAX_PROBLEMS]
    for item in items:
        location = item["loc"]
        if any(other["loc"][: len(location)] == location != other["loc"] for other in items):
            continue  # a consequence of a problem in one of its parts
        key = _key(item["loc"], document)
        for line in _message(item, model).splitlines():
            problems.append(f"{key}: {line}" if key else line)
    return problems


def refuse(problems: Iterable[str]) -> None:
    """Raise ValueError with one problem per line, as `describe` expects them, if there are any."""
    lines = list(problems)
    if lines:
        raise ValueError("\n".join(lines))


def repeated(values: Iterable[T]) -> Iterator[tuple[T, int]]:
    """The ``values`` that occur more than once, with their number."""
    return ((value, count) for value, count in Counter(values).items() if count > 1)


def reraised(check: Callable[[T], V], value: T) -> V:
    """What ``check`` makes of ``value``; its EarshotError becomes a ValueError, as one line."""
    try:
        return check(value)
    except EarshotError as error:
        raise ValueError(error.line) from None


def shown(value: object) -> str:
    """``value`` for a message: short, on one line, printable, without secrets."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if type(value).__repr__ is object.__repr__:  # its text is an address in memory
        return f"an object of type {type(value).__name__}"
    try:
        text = without_secrets(ascii(value)[:_LOOKED_AT])
    except ValueError:  # Python writes no number of more than 4,300 digits
        return "a number that is too long to be shown"
    return text if len(text) <= 60 else f"{text[:57]}..."


def unknown_key(key: str, known: Sequence[str]) -> str:
    """The problem of ``key``, which is not among the keys ``known``."""
    import difflib  # slow to import, and rarely needed

    near = difflib.get_close_matches(key, known, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"is no key that earshot knows{hint}; allowed: {', '.join(known)}"


def _message(item: Any, model: type[BaseModel]) -> str:
    kind, context = item["type"], item.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "missing":
        return "is missing"
    if kind in ("extra_forbidden", "invalid_key"):
        known = _fields(model, item["loc"][:-1])
        return unknown_key(str(item["loc"][-1]), list(known))
    allowed = _ALLOWED[kind].format(**context).replace("'", "") if kind in _ALLOWED else item["msg"]
    value = item["input"]
    observed = _kind(value) if "users" in item["loc"] else shown(value)
    return f"found {observed}; allowed: {allowed}"


def _kind(value: object) -> str:
    """A text or map of a user without its content, which may be a password; else as in `shown`."""
    if isinstance(value, str):
        return "a text"
    return "a map" if isinstance(value, Mapping) else shown(value)


def _key(location: tuple[int | str, ...], document: object) -> str:
    text, value = "", document
    for part in location:
        value = _child(value, part)
        name = value.get("name") if isinstance(part, int) and isinstance(value, Mapping) else None
        if isinstance(name, str) and _PLAIN_KEY.fullmatch(name):
            text += f".{name}"
        elif isinstance(part, int):
            text += f"[{part}]"
        elif part != "[key]":
            text += f".{part}" if _PLAIN_KEY.fullmatch(part) else f"[{shown(part)}]"
    return text.removeprefix(".")


def _child(value: object, part: int | str) -> object:
    if isinstance(value, Mapping):
        return value.get(part)
    if isinstance(value, (list, tuple)) and isinstance(part, int) and part < len(value):
        return value[part]
    return None


def _fields(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """The keys of the model at ``location`` below ``model``."""
    for part in location:
        field = _by_key(model).get(part) if isinstance(part, str) else None
        if field is not None:  # else it is the index or key of a list or map of models
            model = _model_in(field.annotation) or model
    return list(_by_key(model))


def _by_key(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of ``model`` by what a document calls them."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _model_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and hasattr(annotation, "model_fields"):
        return annotation
    models = (_model_in(argument) for argument in get_args(annotation))
    return next((item for item in models if item is not None), None)
