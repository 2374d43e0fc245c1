"""Writes fixes into a Compose file without changing comments and formatting.

Values are replaced, and variables are added below others, by their position in the text. Uncertain
places are not changed: a value with variables, on several lines, behind an anchor, shared by an
alias, or from a merge key (`<<`) or another file.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml

from earshot.errors import EarshotError
from earshot.lint.model import FileReport, Mistake
from earshot.lint.source_lines import masked
from earshot.rules.rule import Finding, LineToWrite
from earshot.sources.compose_ports import read_port
from earshot.yaml_reading.document import read_yaml_texts, yaml_nodes

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./:@,\[\]-]*", re.ASCII)
_QUOTED = re.compile(r"[^\"'\\\n\r]*")
_UNUSUAL_BREAKS = re.compile(r"\r(?!\n)|[\x85\u2028\u2029\ufeff]")
_EDITED_KEYS = ("environment", "ports", "command", "entrypoint")
Edit = tuple[int, int, str]
"""The start and end of the replaced characters, and the new text."""
MAX_FIXED = 50
"""The maximum number of fixes per file. Each is checked separately."""


@dataclass(frozen=True)
class FixedFile:
    """A file's new text, and the mistakes that it fixes."""

    text: str
    fixed_mistakes: tuple[Mistake, ...]


class _NotCertainError(Exception):
    """A line has no place, or more than one."""


def fix_text(text: str, file_name: str, check: Callable[[str], FileReport]) -> FixedFile:
    """``text`` without the mistakes that have a single remedy, if the place of its lines is
    certain.

    ``check`` returns the report of a changed text. A fix is kept only if its mistake is gone and no
    new one is added.
    """
    report = check(text)
    fixed_mistakes: list[Mistake] = []
    tried_findings: set[Finding] = set()
    while len(fixed_mistakes) < MAX_FIXED:
        for mistake in report.mistakes:
            finding = mistake.finding
            if mistake.ignored or not finding.is_only_way or finding in tried_findings:
                continue
            tried_findings.add(finding)
            new_text = with_lines(text, file_name, finding.lines)
            new_report = check(new_text) if new_text is not None else None
            if (
                new_text is None
                or new_report is None
                or not _is_better(report, new_report, mistake)
            ):
                continue
            fixed_mistakes.append(mistake)
            text, report = new_text, new_report
            break
        else:
            break
    return FixedFile(text, tuple(fixed_mistakes))


def _is_better(old_report: FileReport, new_report: FileReport, fixed_mistake: Mistake) -> bool:
    keys = [
        {
            (
                mistake.finding.rule,
                mistake.finding.subject,
                mistake.finding.observed,
                bool(mistake.ignored),
            )
            for mistake in report.mistakes
            if mistake is not fixed_mistake
        }
        for report in (old_report, new_report)
    ]
    return keys[1] <= keys[0]


def with_lines(text: str, file_name: str, lines: Sequence[LineToWrite]) -> str | None:
    """``text`` with ``lines``, or None if the place of one of them is uncertain."""
    if _UNUSUAL_BREAKS.search(text):
        return None  # YAML counts lines differently
    try:
        source = _Source(text, file_name)
        edits = sorted(source.edit(line) for line in lines)
        new_text = source.with_edits(edits)
        return new_text if _changes_nothing_else(text, new_text, lines) else None
    except (_NotCertainError, EarshotError):
        return None


def difference(old_text: str, new_text: str, file_name: str) -> str:
    """A unified diff without context lines, which might contain secrets. Possible secrets in
    changed lines are shown as `***`."""
    import difflib  # slow to import, and rarely needed

    lines = difflib.unified_diff(
        _masked_lines(old_text), _masked_lines(new_text), file_name, f"{file_name} (fixed)", n=0
    )
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _masked_lines(text: str) -> list[str]:
    lines = text.split("\n")
    return [masked(lines, number) for number in range(1, len(lines) + 1)]


class _Source:
    """The YAML nodes of a file with their positions."""

    def __init__(self, text: str, file_name: str) -> None:
        self.text = text
        self.lines = text.split("\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        root = yaml_nodes(text, file_name)
        self.uses = Counter(_ids(root))
        top_level = _entries(root)
        self.services = _entries(top_level["services"][1] if "services" in top_level else root)

    def edit(self, line: LineToWrite) -> Edit:
        """The edit that writes ``line``. Raises _NotCertainError."""
        if line.service not in self.services:
            raise _NotCertainError
        service = _entries(self._unshared(self.services[line.service][1]))
        if line.setting == "ports":
            return self._port(self._unshared(_value(service, "ports")), line)
        if line.setting == "command":
            keys = (key for key in ("command", "entrypoint") if key in service)
            return self._part_of_value([self._unshared(service[key][1]) for key in keys], line)
        environment = self._unshared(_value(service, "environment"))
        if isinstance(environment, yaml.MappingNode):
            return self._variable(environment, line)
        if isinstance(environment, yaml.SequenceNode):
            return self._list_entry(environment, line)
        raise _NotCertainError

    def with_edits(self, edits: Sequence[Edit]) -> str:
        """The text with ``edits``, which are sorted. Raises _NotCertainError if they overlap."""
        chunks, position = [], 0
        for start, end, new_text in edits:
            if start < position:
                raise _NotCertainError
            chunks += [self.text[position:start], new_text]
            position = end
        return "".join([*chunks, self.text[position:]])

    def _unshared(self, node: yaml.Node) -> yaml.Node:
        """``node``, if no alias in the file refers to it. Raises _NotCertainError otherwise."""
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
            indent = self.lines[row][: key.start_mark.column]
            if not indent.strip() and value.end_mark.line == row and not line.replaces:
                new_line = f"{indent}{line.setting}: {_scalar_text(line.value, '', False)}"
                return self._insert_below(row, new_line)
        raise _NotCertainError

    def _list_entry(self, environment: yaml.SequenceNode, line: LineToWrite) -> Edit:
        matching_entries = [
            entry
            for entry in environment.value
            if str(entry.value).partition("=")[0] == line.setting
        ]
        if len(matching_entries) == 1:
            is_flow = bool(environment.flow_style)
            return self._scalar(matching_entries[0], line, f"{line.setting}=", is_flow=is_flow)
        for entry in environment.value:
            row = entry.start_mark.line
            indent = self.lines[row][: entry.start_mark.column]
            is_line = re.fullmatch(r"\s*-\s+", indent) and entry.end_mark.line == row
            if not matching_entries and is_line and not line.replaces:
                new_entry = _scalar_text(f"{line.setting}={line.value}", entry.style, False)
                return self._insert_below(row, f"{indent}{new_entry}")
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
        new_port = LineToWrite(line.service, line.setting, line.value)
        return self._scalar(nodes[0], new_port, quotes='"', is_flow=bool(ports.flow_style))

    def _scalar(
        self,
        node: yaml.Node,
        line: LineToWrite,
        prefix: str = "",
        quotes: str = "",
        *,
        is_flow: bool,
    ) -> Edit:
        """The edit of a scalar on one line."""
        start, end = self._range(self._unshared(node))
        raw = self.text[start:end]
        if not isinstance(node, yaml.ScalarNode) or "\n" in raw or raw[:1] in ("&", "!", "*", ""):
            raise _NotCertainError
        if line.replaces:
            return self._part_of_value([node], line)
        if "$" in node.value:
            raise _NotCertainError
        return start, end, _scalar_text(f"{prefix}{line.value}", node.style or quotes, is_flow)

    def _part_of_value(self, nodes: Iterable[yaml.Node], line: LineToWrite) -> Edit:
        """The edit of the only occurrence of the replaced text in ``nodes``."""
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

    def _insert_below(self, row: int, new_line: str) -> Edit:
        position = self.starts[row + 1]
        line_end = "\r\n" if self.lines[row].endswith("\r") else "\n"
        if position > len(self.text):  # the last line has no end
            return len(self.text), len(self.text), f"{line_end}{new_line}"
        return position, position, f"{new_line}{line_end}"

    def _range(self, node: yaml.Node) -> tuple[int, int]:
        marks = node.start_mark, node.end_mark
        start, end = (self.starts[mark.line] + mark.column for mark in marks)
        return start, end


def _scalar_text(value: str, quotes: str | None, is_flow: bool) -> str:
    """``value`` as a YAML scalar: in ``quotes`` if given, plain if that is safe, else quoted."""
    if quotes in ('"', "'"):
        if not _QUOTED.fullmatch(value):
            raise _NotCertainError
        return f"{quotes}{value}{quotes}"
    if quotes:
        raise _NotCertainError  # a block
    is_plain = _PLAIN.fullmatch(value.replace("=", "")) and not value.isdigit()
    if is_plain and not (is_flow and set(",[]") & set(value)):
        return value
    return _scalar_text(value, '"', is_flow)


def _ids(node: yaml.Node | None) -> Iterator[int]:
    """The `id` of every node, once per occurrence in the document."""
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
    """The own entries of a map, without merge keys and repeated keys."""
    if not isinstance(node, yaml.MappingNode):
        return {}
    keys = Counter(str(key.value) for key, _ in node.value)
    return {
        str(key.value): (key, value)
        for key, value in node.value
        if keys[str(key.value)] == 1 and key.value != "<<"
    }


def _value(entries: Mapping[str, tuple[yaml.Node, yaml.Node]], key: str) -> yaml.Node:
    if key not in entries:
        raise _NotCertainError
    return entries[key][1]


def _port_of(node: yaml.ScalarNode) -> object:
    try:
        return read_port(node.value, "ports")
    except EarshotError:
        return None


def _changes_nothing_else(old_text: str, new_text: str, lines: Sequence[LineToWrite]) -> bool:
    """True if ``new_text`` differs only in the edited keys of the services of ``lines``."""
    services_changed = {line.service for line in lines}
    documents = []
    for text in (old_text, new_text):
        document = read_yaml_texts(text, "", unique=False, lenient=True)
        services = document.get("services", document) if isinstance(document, dict) else {}
        for name in services_changed:
            section = services.get(name)
            if not isinstance(section, dict):
                return False
            services[name] = {key: section[key] for key in section if key not in _EDITED_KEYS}
        documents.append(document)
    return documents[0] == documents[1]
