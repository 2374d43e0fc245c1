"""What precedes a command of a shell script, and the scripts that commands get as an argument."""

import itertools
import re
from collections.abc import Sequence

ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.ASCII | re.DOTALL)
BEFORE_COMMAND = frozenset(
    {"if", "then", "elif", "else", "do", "while", "until", "!", "{", "}", "time", "fi", "done",
     "coproc"}
)  # fmt: skip
SHELLS = frozenset({"sh", "bash", "dash", "ksh", "zsh", "su", "newgrp"})
"""Programs that run a script from a here-document or after `-c`; that of `ssh` runs on another
machine."""
_WRAPPERS = {
    "sudo": "CDRTUghprtu", "doas": "Cu", "exec": "a", "command": "", "nohup": "", "winpty": "",
    "env": "CSu", "setsid": "", "nice": "n", "ionice": "cn", "stdbuf": "eio", "timeout": "ks",
    "flock": "Ew",
}  # fmt: skip
"""Programs that run the command that follows, and the letters of their options with a value."""
_LONG = frozenset({"--user", "--group", "--adjustment", "--class", "--signal", "--kill-after"})
"""Long options of theirs with a value."""
_OPERANDS = frozenset({"timeout", "flock"})
"""Those with one argument before the command."""
_SCRIPT_FOLLOWS = re.compile(r"-[a-z]*c")


def without_prefixes(words: Sequence[str]) -> tuple[str, ...]:
    """The words of a command from its program on."""
    at = 0
    while at < len(words):
        if words[at] in _WRAPPERS:
            at = _after_wrapper(words, at)
        elif words[at] in BEFORE_COMMAND or ASSIGNMENT.fullmatch(words[at]):
            at += 1
        else:
            break
    return tuple(words[at:])


def _after_wrapper(words: Sequence[str], at: int) -> int:
    """The index after the wrapper at index ``at``, its options and its operand."""
    wrapper = words[at]
    at += 1
    while at < len(words) and words[at].startswith("-"):
        option = words[at]
        at += 1
        if option == "--":
            break
        at += option in _LONG or (len(option) == 2 and option[1] in _WRAPPERS[wrapper])
    return at + (wrapper in _OPERANDS)


def script_argument(words: Sequence[str]) -> str:
    """The script that `eval` or `bash -c` runs; an empty text for other commands."""
    program, *arguments = without_prefixes(words) or ("",)
    if program == "eval":
        return " ".join(arguments)
    if program.rpartition("/")[2] in SHELLS:
        for option, script in itertools.pairwise(arguments):
            if _SCRIPT_FOLLOWS.fullmatch(option):
                return script
    return ""
