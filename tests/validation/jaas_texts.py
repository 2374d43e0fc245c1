"""Login modules, and every way in which one may be written down; apart from what reads them."""

from collections.abc import Mapping
from typing import Final

from hypothesis import strategies as st

_LETTERS: Final = {7: "a", 8: "b", 12: "f", 10: "n", 13: "r", 9: "t", 11: "v"}
_NAMES: Final = st.from_regex(r"[A-Za-z_$][A-Za-z0-9_.$-]{0,12}", fullmatch=True)
_VALUES: Final = st.text(st.characters(codec="utf-8"), max_size=12) | st.text(
    st.sampled_from("\"'\\;= /*#\n\tab07"), max_size=12
)
_GAPS: Final = st.sampled_from([" ", "\n", "\t ", " // a note; x='y\"\n", " /* a * / note; */ "])

modules: Final = st.lists(
    st.tuples(_NAMES, st.dictionaries(_NAMES, _VALUES, max_size=4)), min_size=1, max_size=3
)


@st.composite
def written(draw: st.DrawFn, name: str, options: Mapping[str, str]) -> str:
    """One entry: gaps, comments, quotes and escapes are drawn."""
    flag = draw(st.sampled_from(["required", "Optional", "SUFFICIENT", "requisite"]))
    words = [name, flag]
    for key, value in options.items():
        equals = draw(st.sampled_from(["=", " = ", "\n="]))
        words.append(f"{key}{equals}{draw(_quoted(value))}")
    gaps = [draw(_GAPS) for _ in words]
    return "".join(word + gap for word, gap in zip(words, gaps, strict=True)) + ";"


@st.composite
def _quoted(draw: st.DrawFn, value: str) -> str:
    quote = draw(st.sampled_from("\"'"))
    return quote + "".join(draw(_character(char, quote)) for char in value) + quote


@st.composite
def _character(draw: st.DrawFn, char: str, quote: str) -> str:
    code = ord(char)
    ways = [f"\\{code:03o}"] if code <= 0o377 else []
    if code in _LETTERS:
        ways.append("\\" + _LETTERS[code])
    if char not in "01234567abfnrtv":
        ways.append("\\" + char)
    if char not in (quote, "\\", "\n", "\r"):
        ways.append(char)
    return draw(st.sampled_from(ways))
