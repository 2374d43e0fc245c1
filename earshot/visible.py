"""Makes text safe to print."""

import json
import re
import unicodedata

_COLOUR = "<{%"
"""The beginning of a colour in Pulumi's messages. Its CLI panics at a colour that it lacks."""
_COMMAND_ANYWHERE = re.compile(r"##(?=\w*\[)")
"""A command to the runner of a CI job, anywhere in a line: `##[...]`, `##vso[...]`."""
_COMMAND_AT_START = re.compile(r"(?<!\S)::(?=[\w-]*[g-zG-Z-])")
"""A command of GitHub at the beginning of a line, where wrapping may move any word. Not `::1`."""


def visible(text: str) -> str:
    """``text`` with control characters and commands to the runner of a CI job spelled out, so that
    a broker's answer cannot steer a terminal or a runner, hide text in a log, or break an XML
    file."""
    spelled = "".join(map(_visible, text)).replace(_COLOUR, "\\u003c{%")
    return _COMMAND_AT_START.sub(r":\\u003a", _COMMAND_ANYWHERE.sub(r"#\\u0023", spelled))


def one_line(text: str) -> str:
    """Like `visible`, on one line: text from a broker or a file must not begin a line."""
    return visible(" ".join(text.split()))


def json_text(document: object) -> str:
    """``document`` as JSON in lines, in ASCII, so that a text in it cannot reverse a line, hide a
    part of it, or be a command to the runner of a CI job."""
    return json.dumps(document, indent=2).replace("##", r"#\u0023") + "\n"


def _visible(char: str) -> str:
    # Cc: control, Cf: direction marks and the like, Cs: lone surrogates, which XML does not allow;
    # nor does it allow U+FFFE and U+FFFF
    hidden = unicodedata.category(char) in ("Cc", "Cf", "Cs") or char in "\ufffe\uffff"
    return f"\\u{ord(char):04x}" if hidden and char not in "\n\t" else char
