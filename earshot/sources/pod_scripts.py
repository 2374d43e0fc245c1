"""Variables that a pod's command assigns in the shell: node ids from ordinals, addresses from pod
names.

In scripts with branches, loops or other control flow, assigned variables have unknown values.
"""

import re
from collections.abc import Collection, Mapping

_COMMENT = re.compile(r"(?:^|(?<=\s))#.*$", re.ASCII | re.MULTILINE)
_EXITS = re.compile(r"\|\|\s*(?:exit|return)(?:\s+[0-9]+)?\b", re.ASCII)
_MATCHED = re.compile(
    r"\[\[\s+\"?(?:\$HOSTNAME|\$\{HOSTNAME\}|`hostname`|\$\(hostname\))\"?\s+=~\s+"
    r"-\(\[0-9\]\+\)\$\s+\]\]",
    re.ASCII,
)
_MATCH = "${BASH_REMATCH[1]}"
_CONTROL = re.compile(
    r"\b(?:if|case|for|while|until|function|eval|source|trap|read)\b|\|\||<<|`|^\s*\.\s",
    re.ASCII | re.MULTILINE,
)
_VALUE = r"(?:\"[^\"]*\"|'[^']*'|\$\(\([^()]*\)\)|\$\([^()]*\)|\$\{[^{}]*\}|[^\s\"';&|()`])*"
_ASSIGNMENT = re.compile(rf"(?:^|(?<=[\s;&]))(?:export\s+)?([A-Za-z_]\w*)=({_VALUE})", re.ASCII)
_PART = re.compile(
    r"'(?P<literal>[^']*)'|\$\(\((?P<sum>[^()]*)\)\)|\$\((?P<command>[^()]*)\)"
    r"|\$\{(?P<variable>\w+)(?P<last>##\*-)?\}|\$(?P<plain>[A-Za-z_]\w*)|(?P<other>\$)|\"",
    re.ASCII,
)
_SUM = re.compile(r"\s*([0-9]{1,9})\s*(?:([+*-])\s*([0-9]{1,9})\s*)?", re.ASCII)
_NAME_IN_SUM = re.compile(r"\$?\b([A-Za-z_]\w*)\b(?![^{]*\})", re.ASCII)
_LAST_OF_NAME = re.compile(
    r"(?:hostname(?: -s)?|echo\s+\"?\$\{?(?:HOSTNAME|(?P<variable>\w+))\}?\"?)\s*\|\s*(?:"
    r"awk\s+-F\s*['\"]?-['\"]?\s+'\{\s*print\s+\$NF\s*\}'"
    r"|rev\s*\|\s*cut\s+-d\s*['\"]?-['\"]?\s+-f\s*1\s*\|\s*rev"
    r"|sed\s+['\"]s/\.\*-//['\"]"
    r"|grep\s+-E?o\s+['\"]\[0-9\][*+]\$['\"](?:\s*\|\s*tail\s+-1)?)",
    re.ASCII,
)


def assignments(script: str, env: Mapping[str, str]) -> Mapping[str, str | None]:
    """The variables that ``script`` assigns, in its order; None is an unknown value.

    ``env`` are those of the container, with the pod's name as HOSTNAME.
    """
    if _MATCHED.search(script):
        script = _MATCHED.sub(":", script).replace(_MATCH, "${HOSTNAME##*-}")
    assigned: dict[str, str | None] = {}
    is_plain = not has_control_flow(script)
    for match in _ASSIGNMENT.finditer(_COMMENT.sub("", script)):
        values = {**env, **assigned}
        assigned[match[1]] = _evaluated(match[2], values) if is_plain else None
    return assigned


def has_control_flow(script: str) -> bool:
    """Whether parts of ``script`` are conditional, or use syntax that is not read."""
    return _CONTROL.search(_EXITS.sub("", _COMMENT.sub("", script))) is not None


def without_assignments(script: str, names: Collection[str]) -> str:
    """``script`` without its assignments to ``names``."""
    return _ASSIGNMENT.sub(lambda match: "" if match[1] in names else match[0], script)


def _evaluated(text: str, values: Mapping[str, str | None]) -> str | None:
    """``text`` as the shell expands it, or None."""
    parts: list[str] = []
    end = 0
    for match in _PART.finditer(text):
        parts.append(text[end : match.start()])
        end = match.end()
        value = _one(match, values)
        if value is None:
            return None
        parts.append(value)
    return "".join((*parts, text[end:]))


def _one(match: re.Match[str], values: Mapping[str, str | None]) -> str | None:
    kind = match.lastgroup
    if kind is None:
        return ""  # a quotation mark
    if kind == "literal":
        return match["literal"]
    if kind == "sum":
        return _sum(match["sum"], values)
    if kind == "command":
        return _command(match["command"].strip(), values)
    if kind == "other":
        return None
    value = values.get(match["plain"] or match["variable"])
    return value.rpartition("-")[2] if value is not None and match["last"] else value


def _sum(text: str, values: Mapping[str, str | None]) -> str | None:
    """The result of `$((text))` with one or two numbers, or None."""
    plain = _NAME_IN_SUM.sub(lambda match: values.get(match[1]) or match[0], text)
    result = _evaluated(plain, values)
    numbers = _SUM.fullmatch(result) if result is not None else None
    if numbers is None:
        return None
    first, second = int(numbers[1]), int(numbers[3] or 0)
    results = {"*": first * second, "-": first - second}
    return str(results.get(numbers[2], first + second))


def _command(text: str, values: Mapping[str, str | None]) -> str | None:
    name = values.get("HOSTNAME")
    if text in ("hostname", "hostname -s"):
        return name
    if match := _LAST_OF_NAME.fullmatch(text):
        value = values.get(match["variable"]) if match["variable"] else name
        return value.rpartition("-")[2] if value is not None else None
    if match := re.fullmatch(r"echo\s+(\S+)", text, re.ASCII):
        return _evaluated(match[1], values)
    return None
