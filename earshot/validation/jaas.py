"""`sasl.jaas.config`: the login modules in it, read as Kafka's own clients read them. Pure.

Sources: Kafka's `JaasConfig` for the grammar, `java.io.StreamTokenizer` for words, quotes, escapes
and comments. No message repeats an option's value: it may be a password.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from earshot.errors import EarshotError

FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
_TOKENS: Final = re.compile(
    r"""
      (?P<blank> [\x00-\x20]+ | //[^\r\n]* | /\*.*?(?:\*/|\Z) | /.?[^\r\n]* )
    | (?P<number> -?(?=[.0-9])[0-9]*\.?[0-9]* )
    | (?P<word> [A-Za-z_$\xA0-\U0010FFFF][-.0-9A-Za-z_$\xA0-\U0010FFFF]* )
    | "(?P<double> (?:\\.|[^"\\\r\n])* ) (?:"|(?=[\r\n])|\Z)
    | '(?P<single> (?:\\.|[^'\\\r\n])* ) (?:'|(?=[\r\n])|\Z)
    | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(?:([0-3][0-7]{0,2}|[4-7][0-7]?)|(.))", re.DOTALL)
_NAMED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True)
class LoginModule:
    """One entry: the class of the module, and its options, which hold secrets."""

    name: str
    options: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class _Token:
    """A word or quoted text has a `text`; a number or a sign is none of them."""

    text: str | None
    sign: str = ""


def read_jaas(value: str) -> tuple[LoginModule, ...]:
    """The login modules in ``value``, at least one; raises EarshotError.

    Of a repeated option the last one counts.
    """
    tokens = _tokens(value)
    modules = []
    while (first := next(tokens, None)) is not None:
        modules.append(_module(first, tokens))
    if not modules:
        raise _refused("names no login module")
    return tuple(modules)


def _module(first: _Token, tokens: Iterator[_Token]) -> LoginModule:
    name = first.text
    flag = next(tokens, _Token(None)).text
    if not name or flag is None or flag.lower() not in FLAGS:
        raise _refused("begins with something other than a login module's class and `required`")
    options: dict[str, str] = {}
    while (token := next(tokens, None)) is not None:
        if token.sign == ";":
            return LoginModule(name, options)
        equals, given = next(tokens, _Token(None)), next(tokens, _Token(None))
        if equals.sign != "=" or given.text is None:
            raise _refused("has something other than OPTION=VALUE before its semicolon")
        if token.text is not None:
            options[token.text] = given.text
    raise _refused("does not end in a semicolon")


def _tokens(value: str) -> Iterator[_Token]:
    for match in _TOKENS.finditer(value):
        kind = match.lastgroup
        text = match[kind] if kind else ""
        if kind in ("double", "single"):
            yield _Token(_ESCAPE.sub(_character, text))
        elif kind == "word":
            yield _Token(text)
        elif kind != "blank":
            yield _Token(None, text)


def _character(match: re.Match[str]) -> str:
    octal, letter = match.groups()
    return chr(int(octal, 8)) if octal else _NAMED.get(letter, letter)


def _refused(observed: str) -> EarshotError:
    return EarshotError(
        "client property sasl.jaas.config",
        observed=observed,
        allowed='MODULE required OPTION="VALUE" ...;',
        remedy='write \\" for a quote and \\\\ for a backslash in a value, and in a properties '
        "file each backslash twice; a line that goes on in the next ends in a backslash",
    )
