"""Scripts of `cmd` and PowerShell in POSIX form, as far as their commands have the same form."""

import re
from enum import Enum

_CMD_VARIABLE = re.compile(r"%([A-Za-z_]\w*)%", re.ASCII)
_CMD_SET = re.compile(
    r"^([ \t]*)set[ \t]+\"?([A-Za-z_]\w*)=([^\"\n]*)\"?[ \t]*$", re.IGNORECASE | re.M
)
_POWERSHELL_SET = re.compile(r"^([ \t]*)\$(?:env:)?([A-Za-z_]\w*)[ \t]*=[ \t]*", re.MULTILINE)


class Syntax(Enum):
    """How a script continues a command on the next line."""

    POSIX = "\\"
    CMD = "^"
    POWERSHELL = "`"


def syntax_of(file_name: str) -> Syntax:
    """The syntax of a script by its name."""
    ending = file_name.lower().rpartition(".")[2]
    by_ending = {"bat": Syntax.CMD, "cmd": Syntax.CMD, "ps1": Syntax.POWERSHELL}
    return by_ending.get(ending, Syntax.POSIX)


def in_posix_form(text: str, syntax: Syntax) -> str:
    """``text`` with POSIX forms in place of those of cmd or PowerShell, line by line."""
    if syntax is Syntax.POSIX:
        return text
    mark = re.escape(syntax.value)
    text = text.removeprefix("\ufeff").replace("\\", "/")  # PowerShell's usual mark
    text = re.sub(rf"{mark}[ \t]*\n", r"\\\n", text)
    if syntax is Syntax.CMD:
        text = re.sub(r"^[ \t]*(?:@?rem\b|::)", "#", text, flags=re.IGNORECASE | re.MULTILINE)
        text = _CMD_SET.sub(r"\1\2='\3'", text)
        return _CMD_VARIABLE.sub(r"${\1}", text)
    text = re.sub(r"\$env:(\w+)(?![ \t]*=)", r"${\1}", text, flags=re.IGNORECASE)
    return _POWERSHELL_SET.sub(r"\1\2=", text)
