"""Lines written into a Compose file at their places; comments and formatting stay as they are.

A value is replaced, and a variable is put below another, by its position in the text. Where a place
is not certain nothing is written: a value with variables, over several lines, behind an anchor, or
shared by an alias, and what a merge key (`<<`) or another file brings.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml

from earshot.errors import EarshotError
from earshot.lint.model import FileReport, Mistake
from earshot.lint.source_lines import masked
from earshot.rules.registry import Finding, LineToWrite
from earshot.sources.compose_ports import read_port
from earshot.yaml_document import read_yaml_texts, yaml_nodes

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./:@,\[\]-]*", re.ASCII)
_QUOTED = re.compile(r"[^\"'\\\n\r]*")
_OTHER_BREAKS = re.compile(r"\r(?!\n)|[\x85\u2028\u2029\ufeff]")
_WRITTEN = ("environment", "ports", "command", "entrypoint")
Edit = tuple[int, int, str]
"""From and to which character of the text, and what comes there."""


MAX_FIXED = 50
"""Mistakes of one file; each is checked by itself."""


@dataclass(frozen=True)
class FixedFile:
    """A file's text with lines written into it, and the mistakes that these cure."""

    text: str
    cured: tuple[Mistake, ...]


class _NotCertainError(Exception):
    """A line has no place, or more than one."""


def fixed(text: str, file_name: str, checked: Callable[[str], FileReport]) -> FixedFile:
    """``text`` without the mistakes that have one remedy alone, as far as its lines have a place.

    ``checked`` checks a text of it: what is written has to cure its mistake, and to make none.
    """
    linted = checked(text)
    cured: list[Mistake] = []
    tried: set[Finding] = set()
    while len(cured) < MAX_FIXED:
        for mistake in linted.mistakes:
            finding = mistake.finding
            if mistake.ignored or not finding.is_only_way or finding in tried:
                continue
            tried.add(finding)
            new = with_lines(text, file_name, finding.lines)
            after = checked(new) if new is not None else None
            if new is None or after is None or not _is_better(linted, after, mistake):
                continue
            cured.append(mistake)
            text, linted = new, after
            break
        else:
            break
    return FixedFile(text, tuple(cured))


def _is_better(before: FileReport, after: FileReport, cured: Mistake) -> bool:
    kinds = [
        {
            (
                mistake.finding.rule,
                mistake.finding.subject,
                mistake.finding.observed,
                bool(mistake.ignored),
            )
            for mistake in linted.mistakes
            if mistake is not cured
        }
        for linted in (before, after)
    ]
    return kinds[1] <= kinds[0]


def with_lines(text: str, file_name: str, lines: Sequence[LineToWrite]) -> str | None:
    """``text`` with ``lines``, or None where the place of one of them is not certain."""
    if _OTHER_BREAKS.search(text):
        return None  # lines would be counted in another way than by YAML
    try:
        source = _Source(text, file_name)
        edits = sorted(source.edit(line) for line in lines)
        new = source.with_edits(edits)
        return new if _is_the_same_elsewhere(text, new, lines) else None
    except (_NotCertainError, EarshotError):
        return None


def difference(before: str, after: str, file_name: str) -> str:
    """The change of ``before`` as a unified diff; possible secrets are shown as `***`.

    The lines around it are left out: which of them hold a secret is not certain.
    """
    import difflib  # slow to import, and rarely needed

    lines = difflib.unified_diff(
        _shown(before), _shown(after), file_name, f"{file_name} (fixed)", n=0
    )
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _shown(text: str) -> list[str]:
    lines = text.split("\n")
    return [masked(lines, number) for number in range(1, len(lines) + 1)]


class _Source:
    """The nodes of a file and their places in it."""

    def __init__(self, text: str, file_name: str) -> None:
        self.text = text
        self.lines = text.split("\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        root = yaml_nodes(text, file_name)
        self.uses = Counter(_ids(root))
        top = _entries(root)
        self.services = _entries(top["services"][1] if "services" in top else root)

    def edit(self, line: LineToWrite) -> Edit:
        """Where ``line`` comes, and how it is written there. Raises _NotCertainError."""
        if line.service not in self.services:
            raise _NotCertainError
        parts = _entries(self._own(self.services[line.service][1]))
        if line.setting == "ports":
            return self._port(self._own(_value(parts, "ports")), line)
        if line.setting == "command":
            keys = (key for key in ("command", "entrypoint") if key in parts)
            return self._within([self._own(parts[key][1]) for key in keys], line)
        environment = self._own(_value(parts, "environment"))
        if isinstance(environment, yaml.MappingNode):
            return self._variable(environment, line)
        if isinstance(environment, yaml.SequenceNode):
            return self._item(environment, line)
        raise _NotCertainError

    def with_edits(self, edits: Sequence[Edit]) -> str:
        """The text with ``edits``, which are in order. Raises _NotCertainError where they meet."""
        parts, at = [], 0
        for start, end, new in edits:
            if start < at:
                raise _NotCertainError
            parts += [self.text[at:start], new]
            at = end
        return "".join([*parts, self.text[at:]])

    def _own(self, node: yaml.Node) -> yaml.Node:
        """``node``, if no other value in the file repeats it."""
        if self.uses[id(node)] != 1:
            raise _NotCertainError
        return node

    def _variable(self, environment: yaml.MappingNode, line: LineToWrite) -> Edit:
        entries = _entries(environment)
        if line.setting in entries:
            is_flow = bool(environment.flow_style)
            return self._scalar(entries[line.setting][1], line, is_flow=is_flow)
        for key, value in entries.values():
            row = key.start_mark.line
            before = self.lines[row][: key.start_mark.column]
            if not before.strip() and value.end_mark.line == row and not line.replaces:
                new = f"{before}{line.setting}: {_written(line.value, '', False)}"
                return self._below(row, new)
        raise _NotCertainError

    def _item(self, environment: yaml.SequenceNode, line: LineToWrite) -> Edit:
        named = [
            entry
            for entry in environment.value
            if str(entry.value).partition("=")[0] == line.setting
        ]
        if len(named) == 1:
            is_flow = bool(environment.flow_style)
            return self._scalar(named[0], line, f"{line.setting}=", is_flow=is_flow)
        for entry in environment.value:
            row = entry.start_mark.line
            before = self.lines[row][: entry.start_mark.column]
            is_line = re.fullmatch(r"\s*-\s+", before) and entry.end_mark.line == row
            if not named and is_line and not line.replaces:
                new = _written(f"{line.setting}={line.value}", entry.style, False)
                return self._below(row, f"{before}{new}")
        raise _NotCertainError

    def _port(self, ports: yaml.Node, line: LineToWrite) -> Edit:
        if not isinstance(ports, yaml.SequenceNode):
            raise _NotCertainError
        line_port = read_port(line.replaces, "ports")
        nodes = [
            entry
            for entry in ports.value
            if isinstance(entry, yaml.ScalarNode) and _port_of(entry) == line_port
        ]
        if len(nodes) != 1:
            raise _NotCertainError
        whole = LineToWrite(line.service, line.setting, line.value)
        return self._scalar(nodes[0], whole, quotes='"', is_flow=bool(ports.flow_style))

    def _scalar(
        self,
        node: yaml.Node,
        line: LineToWrite,
        ahead: str = "",
        quotes: str = "",
        *,
        is_flow: bool,
    ) -> Edit:
        """A scalar on one line, whose value is written out in full."""
        start, end = self._range(self._own(node))
        raw = self.text[start:end]
        if not isinstance(node, yaml.ScalarNode) or "\n" in raw or raw[:1] in ("&", "!", "*", ""):
            raise _NotCertainError
        if line.replaces:
            return self._within([node], line)
        if "$" in node.value:
            raise _NotCertainError
        return start, end, _written(f"{ahead}{line.value}", node.style or quotes, is_flow)

    def _within(self, nodes: Iterable[yaml.Node], line: LineToWrite) -> Edit:
        """The only node in ``nodes`` that contains the replaced text."""
        matches = []
        for node in nodes:
            start, end = self._range(node)
            pattern = rf"(?<![\w.-]){re.escape(line.replaces)}(?![\w.-])"
            matches += [
                (start + match.start(), start + match.end())
                for match in re.finditer(pattern, self.text[start:end])
            ]
        if len(matches) != 1:
            raise _NotCertainError
        return *matches[0], line.value

    def _below(self, row: int, new: str) -> Edit:
        at = self.starts[row + 1]
        end = "\r\n" if self.lines[row].endswith("\r") else "\n"
        if at > len(self.text):  # the last line has no end
            return len(self.text), len(self.text), f"{end}{new}"
        return at, at, f"{new}{end}"

    def _range(self, node: yaml.Node) -> tuple[int, int]:
        marks = node.start_mark, node.end_mark
        start, end = (self.starts[mark.line] + mark.column for mark in marks)
        return start, end


def _written(value: str, quotes: str | None, is_flow: bool) -> str:
    """``value`` as a scalar: plain where it is safe, in ``quotes`` where there are some."""
    if quotes in ('"', "'"):
        if not _QUOTED.fullmatch(value):
            raise _NotCertainError
        return f"{quotes}{value}{quotes}"
    if quotes:
        raise _NotCertainError  # a block
    is_plain = _PLAIN.fullmatch(value.replace("=", "")) and not value.isdigit()
    if is_plain and not (is_flow and set(",[]") & set(value)):
        return value
    return _written(value, '"', is_flow)


def _ids(node: yaml.Node | None) -> Iterator[int]:
    """The id of every node, once for each time it appears in the document."""
    if node is None:
        return
    yield id(node)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _ids(key)
            yield from _ids(value)
    elif isinstance(node, yaml.SequenceNode):
        for node_below in node.value:
            yield from _ids(node_below)


def _entries(node: yaml.Node | None) -> dict[str, tuple[yaml.Node, yaml.Node]]:
    """What a map itself says: no merge keys, and no key that occurs twice."""
    if not isinstance(node, yaml.MappingNode):
        return {}
    keys = Counter(str(key.value) for key, _ in node.value)
    return {
        str(key.value): (key, value)
        for key, value in node.value
        if keys[str(key.value)] == 1 and key.value != "<<"
    }


def _value(parts: Mapping[str, tuple[yaml.Node, yaml.Node]], key: str) -> yaml.Node:
    if key not in parts:
        raise _NotCertainError
    return parts[key][1]


def _port_of(node: yaml.ScalarNode) -> object:
    try:
        return read_port(node.value, "ports")
    except EarshotError:
        return None


def _is_the_same_elsewhere(before: str, after: str, lines: Sequence[LineToWrite]) -> bool:
    """Whether only what ``lines`` are about says something else in ``after``."""
    touched = {line.service for line in lines}
    rest = []
    for text in (before, after):
        document = read_yaml_texts(text, "", unique=False)
        services = document.get("services", document) if isinstance(document, dict) else {}
        for name in touched:
            section = services.get(name)
            if not isinstance(section, dict):
                return False
            services[name] = {key: section[key] for key in section if key not in _WRITTEN}
        rest.append(document)
    return rest[0] == rest[1]
