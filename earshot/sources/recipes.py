"""Makefiles and justfiles as shell scripts: each line of a recipe at its number in the file.

Sources: https://www.gnu.org/software/make/manual/html_node/Recipe-Syntax.html and
https://just.systems/man/en/.
"""

import re
from bisect import bisect
from collections.abc import Iterator, Sequence

from earshot.sources.values import COMPUTED

_MAKE_ASSIGNMENT = re.compile(
    r"(?:export[ \t]+|override[ \t]+)*([A-Za-z_]\w*)[ \t]*(?:::?:?|\?|(\+))?=[ \t]*(.*)", re.ASCII
)
_JUST_ASSIGNMENT = re.compile(r"(?:export[ \t]+)?([A-Za-z_][\w-]*)[ \t]*:=[ \t]*(.*)", re.ASCII)
_MAKE_VALUE = re.compile(r"\$\$|\$[({]([A-Za-z_]\w*)[)}]|\$\((?:[^()]|\([^()]*\))*\)|\$[@<^?*+%]")
_JUST_VALUE = re.compile(r"\{\{[ \t]*([A-Za-z_][\w-]*)[ \t]*\}\}|\{\{.*?\}\}")
_HEAD = re.compile(r"[^\s:#=][^:=]*:(?!:?=)")
"""The first line of a rule or recipe."""
_LITERAL = re.compile(r"\"([^\"\\]*)\"|'([^']*)'")
_RECIPE_ON_HEAD = re.compile(r"[^\s:#=][^:=;#]*::?[^=;#]*;(.*)")
"""A rule with the first line of its recipe."""
_ENGINE = re.compile(r"[ \t@+-]*(?:docker|podman|nerdctl)[ \t]")
_PREFIX = re.compile(r"[ \t@+-]*")


def is_recipe_file(name: str) -> bool:
    """True for a Makefile or a justfile; ``name`` is in lower case."""
    return _is_makefile(name) or _is_justfile(name)


def _is_makefile(name: str) -> bool:
    return re.fullmatch(r"(?:gnu)?makefile(?:\..*)?|.*\.mk", name) is not None


def _is_justfile(name: str) -> bool:
    return re.fullmatch(r"\.?justfile|.*\.just", name) is not None


def in_shell_form(text: str, name: str) -> str:
    """``text`` as a shell script if ``name`` is a Makefile's or justfile's; unchanged otherwise."""
    lower = name.lower()
    if _is_makefile(lower):
        return "\n".join(_of_makefile(text.splitlines()))
    return "\n".join(_of_justfile(text.splitlines())) if _is_justfile(lower) else text


def targets(lines: Sequence[int], text: str, name: str) -> list[str]:
    """The target of each of these ``lines`` (from 1) of a Makefile or justfile; empty for those of
    other files."""
    if not is_recipe_file(name.lower()):
        return [""] * len(lines)
    heads = [number for number, line in enumerate(text.splitlines(), 1) if _HEAD.match(line)]
    return [f"target {bisect(heads, line)}" for line in lines]


def _of_makefile(lines: list[str]) -> Iterator[str]:
    """The lines of recipes and assignments; other lines are empty."""
    end = ""
    """Ends the value of an assignment over several lines."""
    is_continued = is_defined = False
    for line in lines:
        goes_on = line.endswith("\\")
        is_defined = line.startswith("define ") or (is_defined and line != "endef")
        body = _MAKE_VALUE.sub(_make_value, line)
        if is_continued:
            yield body if goes_on or not end else f"{body}{end}"
        elif line.startswith("\t") or (is_defined and _ENGINE.match(line)):
            yield _PREFIX.sub("", body, count=1)
        elif match := _MAKE_ASSIGNMENT.match(body):
            name, added, value = match.groups()
            end = '"'
            yield f'{name}{added or ""}="{value}{"" if goes_on else end}'
        elif match := _RECIPE_ON_HEAD.match(body):
            yield _PREFIX.sub("", match[1], count=1)
        else:
            yield ""
            goes_on = False
        is_continued = goes_on
        end = end if goes_on else ""


def _make_value(match: re.Match[str]) -> str:
    if match[0] == "$$":
        return "$"
    return f"${{{match[1]}}}" if match[1] else COMPUTED


def _of_justfile(lines: list[str]) -> Iterator[str]:
    is_continued = False
    for line in lines:
        if line[:1] in (" ", "\t"):
            body = _JUST_VALUE.sub(_just_value, line)
            yield body if is_continued else _PREFIX.sub("", body, count=1)
        elif (match := _JUST_ASSIGNMENT.match(line)) and (value := _LITERAL.match(match[2])):
            yield f"{_shell_name(match[1])}='{value[1] or value[2] or ''}'"
        else:
            yield ""
        is_continued = line.endswith("\\")


def _just_value(match: re.Match[str]) -> str:
    return f"${{{_shell_name(match[1])}}}" if match[1] else COMPUTED


def _shell_name(name: str) -> str:
    return name.replace("-", "_")
