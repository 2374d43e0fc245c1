"""Makefiles and justfiles as shell scripts: each line of a recipe at its number in the file.

Sources: https://www.gnu.org/software/make/manual/html_node/Recipe-Syntax.html and
https://just.systems/man/en/.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from earshot.sources.values import COMPUTED

if TYPE_CHECKING:
    from earshot.sources.docker_run import StartedContainer

_MAKE_ASSIGNMENT = re.compile(
    r"(?:export[ \t]+|override[ \t]+)*([A-Za-z_]\w*)[ \t]*(?:::?:?|\?|(\+))?=[ \t]*(.*)", re.ASCII
)
_JUST_ASSIGNMENT = re.compile(r"(?:export[ \t]+)?([A-Za-z_][\w-]*)[ \t]*:=[ \t]*(.*)", re.ASCII)
_MAKE_VALUE = re.compile(r"\$\$|\$[({]([A-Za-z_]\w*)[)}]|\$\((?:[^()]|\([^()]*\))*\)|\$[@<^?*+%]")
_JUST_VALUE = re.compile(r"\{\{[ \t]*([A-Za-z_][\w-]*)[ \t]*\}\}|\{\{.*?\}\}")
_HEAD = re.compile(r"[^\s:#=][^:=]*:(?!:?=)")
"""The first line of a rule or recipe."""
_LITERAL = re.compile(r"\"([^\"\\]*)\"|'([^']*)'")
_PREFIX = re.compile(r"[ \t]*[@+-]*[ \t]*")


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


def with_alternatives(
    containers: Sequence[StartedContainer], text: str, name: str
) -> tuple[StartedContainer, ...]:
    """``containers`` of a file; those of two targets that need one port of the machine are not
    started together, and get the profiles of their targets."""
    if not is_recipe_file(name.lower()):
        return tuple(containers)
    heads = [number for number, line in enumerate(text.splitlines(), 1) if _HEAD.match(line)]
    targets = [bisect(heads, started.line) for started in containers]
    ports = [started.service.container.published for started in containers]
    pairs = list(zip(targets, ports, strict=True))
    return tuple(
        _of_target(started, target)
        if any(
            other != target and port.excludes(other_port)
            for other, other_ports in pairs
            for other_port in other_ports
            for port in published
        )
        else started
        for started, (target, published) in zip(containers, pairs, strict=True)
    )


def _of_target(started: StartedContainer, target: int) -> StartedContainer:
    container = replace(started.service.container, profiles=(f"target {target}",))
    return replace(started, service=replace(started.service, container=container))


def _of_makefile(lines: list[str]) -> Iterator[str]:
    """The lines of recipes and assignments; other lines are empty."""
    end = ""
    """Ends the value of an assignment over several lines."""
    is_continued = False
    for line in lines:
        goes_on = line.endswith("\\")
        body = _MAKE_VALUE.sub(_make_value, line)
        if is_continued:
            yield body if goes_on or not end else f"{body}{end}"
        elif line.startswith("\t"):
            yield _PREFIX.sub("", body, count=1)
        elif match := _MAKE_ASSIGNMENT.match(body):
            name, added, value = match.groups()
            end = '"'
            yield f'{name}{added or ""}="{value}{"" if goes_on else end}'
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
