"""Reads the login modules of `sasl.jaas.config` like Kafka's clients.

Sources: Kafka's `JaasConfig` for the grammar, `java.io.StreamTokenizer` for words, quotes, escapes
and comments. Messages never contain an option's value: it may be a password.
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
_ESCAPED_CHARACTERS: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}


@dataclass(frozen=True)
class LoginModule:
    """One login module: its class, and its options, which contain secrets."""

    name: str
    options: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class _Token:
    """A token. `text` is set for a word or quoted text, None for a number or a sign."""

    text: str | None
    sign: str = ""


def read_jaas(value: str) -> tuple[LoginModule, ...]:
    """The login modules in ``value``, at least one. Raises EarshotError.

    The last value of a repeated option counts.
    """
    tokens = _tokens(value)
    modules = []
    while (class_token := next(tokens, None)) is not None:
        modules.append(_module(class_token, tokens))
    if not modules:
        raise _invalid("has no login module")
    return tuple(modules)


def _module(class_token: _Token, tokens: Iterator[_Token]) -> LoginModule:
    name = class_token.text
    flag = next(tokens, _Token(None)).text
    if not name or flag is None or flag.lower() not in FLAGS:
        raise _invalid("begins with something other than a login module's class and `required`")
    options: dict[str, str] = {}
    while (token := next(tokens, None)) is not None:
        if token.sign == ";":
            return LoginModule(name, options)
        equals, option_value = next(tokens, _Token(None)), next(tokens, _Token(None))
        if equals.sign != "=" or option_value.text is None:
            raise _invalid("has something other than OPTION=VALUE before its semicolon")
        if token.text is not None:
            options[token.text] = option_value.text
    raise _invalid("does not end in a semicolon")


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
    return chr(int(octal, 8)) if octal else _ESCAPED_CHARACTERS.get(letter, letter)


def _invalid(observed: str) -> EarshotError:
    return EarshotError(
        "client property sasl.jaas.config",
        observed=observed,
        allowed='MODULE required OPTION="VALUE" ...;',
        remedy='write \\" for a quote and \\\\ for a backslash in a value, and in a properties '
        "file each backslash twice; end a line that continues on the next with a backslash",
    )
