"""The commands of a shell script, with the variables that the script assigns replaced.

A value that only a running shell knows (an unset variable, a command's output) stays as `${NAME}`.
Scripts of `cmd` and PowerShell are read in POSIX form (`shell_syntax.py`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from earshot.sources.shell_prefixes import (
    ASSIGNMENT,
    BEFORE_COMMAND,
    SHELLS,
    script_argument,
    without_prefixes,
)
from earshot.sources.shell_syntax import Syntax, in_posix_form
from earshot.sources.values import COMPUTED

_DEPTH = 8
"""Maximum nesting of commands, of defaults, and of variables within values."""
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_BACKQUOTED = re.compile(r"(?:[^`\\]|\\.)*", re.DOTALL)
_ESCAPED = re.compile(r"\\([`\\$])")
"""A character that a backslash escapes between backticks."""
_BRACED = re.compile(r"([A-Za-z_]\w*|[0-9])(?:(:?[-=])(.*))?", re.ASCII | re.DOTALL)
_DECLARING = frozenset({"export", "readonly", "local", "declare", "typeset"})
_LOOPS = frozenset({"for", "while", "until", "select"})
_ENDS = "\n;|&()"
_BRACKETS = {
    "{": re.compile(r'\\.|"(?:\\.|[^"\\\n])*"|[{}]'),
    "(": re.compile(r"""\\.|(?<=\s)#[^\n]*|'[^'\n]*'|"(?:\\.|[^"\\\n])*"|[()]"""),
}
"""Brackets and, so that theirs do not count, quoted texts and comments of one line."""
_NO_VARIABLES: Mapping[str, str] = {}


@dataclass(frozen=True)
class Command:
    """One simple command: its words, and its first and last line (from 1)."""

    words: tuple[str, ...]
    line: int
    last_line: int
    is_repeated: bool = False
    """It is in a loop."""
    is_cut: bool = False
    """A comment line follows its last continued line, and ends it."""
    into: str = ""
    """The file into which its output is redirected."""
    appends: bool = False
    """Its output is added to the file."""

    @property
    def program(self) -> str:
        """The name of its program, without its folder."""
        return self.words[0].replace("\\", "/").rpartition("/")[2].removesuffix(".exe")


@dataclass(frozen=True)
class HereDocument:
    """The text that a script passes to a command or writes to a file; ``line`` is its first.

    The lines that several `echo` write to one file are as far apart as in the script.
    """

    text: str
    line: int


@dataclass(frozen=True)
class Script:
    """The commands of a script in their order, and its here-documents."""

    commands: tuple[Command, ...]
    documents: tuple[HereDocument, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    """The variables that it assigns one value."""


def read_script(
    text: str, syntax: Syntax = Syntax.POSIX, environment: Mapping[str, str] = _NO_VARIABLES
) -> Script:
    """The commands of ``text``. A variable that is assigned two different values is unknown.

    ``environment`` has the variables that are set before.
    """
    text = in_posix_form(text, syntax)
    assigned: dict[str, str | None] = dict(environment)
    for command in _Lexer(text, {}).read():
        for word in _assignments(command.words):
            match = ASSIGNMENT.fullmatch(word)
            if match:
                name, value = match.groups()
                is_other = "+=" in word[: match.start(2)] or assigned.get(name, value) != value
                assigned[name] = None if is_other else value
    known = {name: value for name, value in assigned.items() if value is not None}
    resolved = {name: _resolved(value, known, _DEPTH) for name, value in known.items()}
    values = {name: value for name, value in resolved.items() if COMPUTED not in value}
    lexer = _Lexer(text, values)
    bare = (replace(c, words=without_prefixes(c.words)) for c in lexer.read())
    commands = tuple(command for command in bare if command.words)
    return Script(commands, (*lexer.documents, *_echoed(commands)), values)


def _echoed(commands: Iterable[Command]) -> Iterator[HereDocument]:
    """The files that `echo` writes, a line or several at a time; `>` begins another one."""
    parts_by_file: dict[str, list[str]] = {}
    ends: dict[str, tuple[int, int]] = {}
    for command in commands:
        if command.into and command.words[0] == "echo":
            if not command.appends and (parts := parts_by_file.pop(command.into, None)):
                yield HereDocument("\n".join(parts), ends.pop(command.into)[0])
            text = " ".join(command.words[1:])
            first, end = ends.get(command.into, (command.line, command.line - 1))
            gap = "\n" * max(0, command.line - end - 1)
            parts_by_file.setdefault(command.into, []).append(f"{gap}{text}")
            ends[command.into] = first, max(end + 1, command.line) + text.count("\n")
    for file, parts in parts_by_file.items():
        yield HereDocument("\n".join(parts), ends[file][0])


def _assignments(words: tuple[str, ...]) -> Iterator[str]:
    """The assignments of a command that does nothing else."""
    rest = [word for word in words if word not in BEFORE_COMMAND]
    if rest and rest[0] in _DECLARING:
        rest = [word for word in rest[1:] if not word.startswith("-")]
    if all(ASSIGNMENT.fullmatch(word) for word in rest):
        yield from rest


def _resolved(value: str, known: Mapping[str, str], depth: int) -> str:
    """``value`` with its variables replaced by values of ``known``."""

    def replaced(match: re.Match[str]) -> str:
        name = match[1]
        is_computed = depth == 0 or name not in known
        return match[0] if is_computed else _resolved(known[name], known, depth - 1)

    return re.sub(r"\$\{([A-Za-z_]\w*)\}", replaced, value)


class _Lexer:
    """Splits a script into commands."""

    def __init__(self, text: str, values: Mapping[str, str], line: int = 1, depth: int = _DEPTH):
        self.text = text
        self.values = values
        self.position = 0
        self.counted = (0, line)
        self.depth = depth
        self.documents: list[HereDocument] = []
        self.inner: list[Command] = []
        self.into, self.appends = "", False
        self.ends_of_documents: list[tuple[str, bool, Sequence[str]]] = []

    def read(self) -> Iterator[Command]:
        words: list[str] = []
        start, loops, is_cut = self._line(), 0, False
        while True:
            character = self._peek()
            if self.text.startswith("((", self.position):  # arithmetic
                self._balanced("(")
            elif character in ("", *_ENDS):
                if words:
                    loops += sum(word in _LOOPS for word in words[:2]) - (words[0] == "done")
                    lines = (start, self._line())
                    output = (self.into, self.appends)
                    yield Command(tuple(words), *lines, loops > 0, is_cut, *output)
                    script = script_argument(words)
                    self._commands_within(script, self._line() - script.count("\n"))
                is_cut, self.into = False, ""
                yield from self.inner
                self.inner.clear()
                words = []
                if not character:
                    return
                self.position += 1
                if character == "\n":
                    self._skip_documents()
            elif character in " \t\r":
                self.position += 1
            elif character == "#":
                is_cut = bool(words) and self._is_after_continued_line()
                self._skip_line()
            elif character in "<>":
                self._redirection(words)
            else:
                start = start if words else self._line()
                read = self._word()
                if not (len(read) == 1 and read[0].isdigit() and self._peek() in ("<", ">")):
                    words += read

    def _is_after_continued_line(self) -> bool:
        """Whether its line has only blanks before the current position, and the line before it
        goes on."""
        before = self.text.rfind("\n", 0, self.position)
        is_continued = self.text.endswith("\\", 0, max(before, 0))
        return is_continued and not self.text[before : self.position].strip()

    def _line(self) -> int:
        """The line of the current position, counted from that of the last call."""
        position, line = self.counted
        line += self.text.count("\n", position, self.position)
        self.counted = (self.position, line)
        return line

    def _peek(self) -> str:
        """The next character; empty at the end."""
        return self.text[self.position : self.position + 1]

    def _skip_line(self) -> None:
        end = self.text.find("\n", self.position)
        self.position = len(self.text) if end < 0 else end

    def _redirection(self, command: Sequence[str]) -> None:
        """Skips an operator and its target; notes the end of a here-document of ``command``."""
        start = self.position
        while self._peek() and self._peek() in "<>&|":
            self.position += 1
        operator = self.text[start : self.position]
        is_indented = operator == "<<" and self._peek() == "-"
        self.position += is_indented
        while self._peek() and self._peek() in " \t":
            self.position += 1
        if self._peek() not in ("", *_ENDS):
            words = self._word()
            if operator == "<<" and words:
                self.ends_of_documents.append((words[0], is_indented, command))
            elif operator in (">", ">>"):
                self.into, self.appends = words[0] if words else "", operator == ">>"

    def _skip_documents(self) -> None:
        for end, is_indented, command in self.ends_of_documents:
            first_line, lines = self._line(), []
            while self.position < len(self.text):
                start = self.position
                self._skip_line()
                line = self.text[start : self.position]
                self.position += 1
                if (line.lstrip("\t") if is_indented else line).rstrip("\r") == end:
                    break
                lines.append(line)
            document = HereDocument("\n".join(lines), first_line)
            self.documents.append(document)
            if self.depth and (words := without_prefixes(command)) and words[0] in (*SHELLS, "ssh"):
                within = _Lexer(document.text, self.values, first_line, self.depth - 1)
                commands = list(within.read())
                self.inner += commands if words[0] in SHELLS else ()
                self.documents += within.documents
        self.ends_of_documents.clear()

    def _word(self) -> list[str]:
        """The next word; several if an unquoted variable contains spaces."""
        splits: list[list[str]] = [[]]  # parts, because joining each at once is quadratic
        is_quoted = False
        while (character := self._peek()) not in ("", *_ENDS, *" \t\r<>"):
            self.position += 1
            if character == "\\":
                if self._peek() == "\n":
                    self.position += 1
                    if not (any(splits[-1]) or len(splits) > 1 or is_quoted):
                        return []
                    continue
                splits[-1].append(self._peek())
                self.position += 1
            elif character == "'":
                splits[-1].append(self._until("'"))
                is_quoted = True
            elif character == '"':
                splits[-1].append(self._quoted())
                is_quoted = True
            elif character == "$" and self._peek() in ("'", '"'):
                continue
            elif character in "$`":
                first, *others = re.split(r"\s+", self._expansion(character))
                splits[-1].append(first)
                splits += [[other] for other in others]
            else:
                splits[-1].append(character)
                if character == "=" and self._peek() == "(":  # an array
                    self._until(")")
                    splits[-1].append(COMPUTED)
        words = [word for parts in splits if (word := "".join(parts))]
        return words or ([""] if is_quoted else [])

    def _until(self, end: str) -> str:
        """The text up to ``end``, which is skipped."""
        start = self.position
        position = self.text.find(end, start)
        self.position = len(self.text) if position < 0 else position + 1
        return self.text[start:position] if position >= 0 else self.text[start:]

    def _backquoted(self) -> str:
        """The command up to the next backtick, whose escaped ones belong to a command within."""
        match = _BACKQUOTED.match(self.text, self.position)
        assert match is not None  # it may be empty
        self.position = min(match.end() + 1, len(self.text))
        return _ESCAPED.sub(r"\1", match[0])

    def _quoted(self) -> str:
        """The text of a double-quoted part."""
        parts: list[str] = []
        while (character := self._peek()) not in ("", '"'):
            self.position += 1
            if character == "\\" and self._peek() in ("$", "`", '"', "\\", "\n"):
                parts.append("" if self._peek() == "\n" else self._peek())
                self.position += 1
            elif character in "$`":
                parts.append(self._expansion(character))
            else:
                parts.append(character)
        self.position += 1
        return "".join(parts)

    def _expansion(self, character: str) -> str:
        """The value of what ``character`` (`$` or a backtick) begins."""
        line = self._line()
        if character == "`":
            self._commands_within(self._backquoted(), line)
            return COMPUTED
        following = self._peek()
        if following == "(":
            within = self._balanced("(")
            self._commands_within(within, line)
            return COMPUTED
        if following == "{":
            return self._braced(self._balanced("{"))
        if match := _NAME.match(self.text, self.position):
            self.position = match.end()
            return self.values.get(match[0], f"${{{match[0]}}}")
        if following and following in "0123456789@*#?$!-":
            self.position += 1
            return COMPUTED
        return "$"

    def _braced(self, expression: str) -> str:
        match = _BRACED.fullmatch(expression)
        if match is None:
            return COMPUTED
        name, operator, default = match.groups()
        value = self.values.get(name)
        own = f"${{{name}}}"
        if operator and (value is None or own in value):
            if not self.depth:
                return COMPUTED
            words = _Lexer(f'"{default}"', self.values, depth=self.depth - 1).read()
            return next((" ".join(command.words) for command in words), "")
        return own if value is None else value

    def _balanced(self, opening: str) -> str:
        """The text within a pair of brackets, at whose first one it begins."""
        start, open_brackets = self.position + 1, 0
        for bracket in _BRACKETS[opening].finditer(self.text, self.position):
            if len(bracket[0]) > 1 or bracket[0] == "#":
                continue
            open_brackets += 1 if bracket[0] == opening else -1
            if open_brackets == 0:
                self.position = bracket.end()
                return self.text[start : bracket.start()]
        self.position = len(self.text)
        return self.text[start:]

    def _commands_within(self, text: str, line: int) -> None:
        if self.depth and text.strip():
            lexer = _Lexer(text, self.values, line, self.depth - 1)
            self.inner += lexer.read()
