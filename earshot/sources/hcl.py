"""Blocks and values of Terraform's language (HCL), as far as their text shows them.

A value that needs a function (other than `tostring` and `jsonencode`), a condition or arithmetic is
unknown (None). An unknown part of a text stays as `${NAME}`. Sources:
https://developer.hashicorp.com/terraform/language/syntax and
https://github.com/hashicorp/hcl/blob/main/hclsyntax/spec.md.
"""

import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from earshot.sources.values import COMPUTED

Value = str | list["Value"] | dict[str, "Value"] | None
Resolve = Callable[[tuple[str, ...]], Value]
"""Returns the value of a reference such as `var.port`, by its parts."""
_DEPTH = 16
"""Maximum nesting of blocks, brackets, texts and references."""
_MAX_LENGTH = 1 << 16
"""Maximum length of an expression; a longer one is unknown. User data have at most 16 KiB."""
_TOKEN = re.compile(
    r"#[^\n]*|//[^\n]*|/\*(?:.*?\*/|.*)|<<(?P<indented>-?)[ \t]*(?P<here>\w+)[ \t\r]*\n|\"|\n"
    r"|(?P<open>[\[({])|(?P<close>[\])}])|[^\"#/<\[\](){}\n,;]+|.",
    re.DOTALL,
)
_HEAD = re.compile(r"[ \t]*([A-Za-z_][\w-]*|\"[^\"\n]*\")[ \t]*", re.ASCII)
_PART = re.compile(r"\$\$\{|%%\{|[$%]\{|\\.|[^$%\\\"]+|.", re.DOTALL)
_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\r": "\r", '\\"': '"', "\\\\": "\\"}
_REFERENCE = re.compile(r"[A-Za-z_][\w-]*(?:\.(?:[\w-]+|\*)|\[(?:\d+|\*|\"[\w-]+\")\])*", re.ASCII)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_FOR = re.compile(
    r"for\s+(\w+)(?:\s*,\s*(\w+))?\s+in\s+([\w.\[\]\"-]+)\s*:\s*(?![^\"]*\bif\b)(.+)", re.DOTALL
)
_KEY = re.compile(r"\s*(?:\"([^\"]*)\"|([\w.-]+))\s*[=:](?!=)(.*)", re.DOTALL)


@dataclass(frozen=True)
class Expression:
    """An expression as written, and its first line (from 1)."""

    text: str
    line: int


@dataclass
class Block:
    """A block: its type, labels, attributes and inner blocks, and its first and last line."""

    type: str
    labels: tuple[str, ...] = ()
    line: int = 1
    last_line: int = 1
    attributes: dict[str, Expression] = field(default_factory=dict)
    blocks: list["Block"] = field(default_factory=list)

    def inner(self, kind: str) -> Iterator["Block"]:
        """The inner blocks of this type."""
        return (block for block in self.blocks if block.type == kind)


def read_blocks(text: str) -> Block:
    """The body of a file. What is not HCL is left out."""
    reader = _Reader(text.removeprefix("\ufeff"))  # Terraform skips a byte order mark
    root = Block("")
    reader.body(root, _DEPTH)
    return root


class _Reader:
    def __init__(self, text: str):
        self.text = text
        self.position = 0
        self.counted = (0, 1)

    def line(self) -> int:
        position, line = self.counted
        line += self.text.count("\n", position, self.position)
        self.counted = (self.position, line)
        return line

    def body(self, block: Block, depth: int) -> None:
        """Reads attributes and blocks up to the end of ``block``."""
        while self.position < len(self.text):
            if head := _HEAD.match(self.text, self.position):
                self.entry(block, head, depth)
                continue
            token = _token(self.text, self.position)
            self.position = token.end
            if token.kind == "close":
                return

    def entry(self, block: Block, head: re.Match[str], depth: int) -> None:
        line = self.line()
        self.position = head.end()
        labels: list[str] = []
        while label := _HEAD.match(self.text, self.position):
            labels.append(label[1].strip('"'))
            self.position = label.end()
        following = self.text[self.position : self.position + 2]
        if following.startswith("=") and following != "==" and not labels:
            self.position += 1
            block.attributes[head[1].strip('"')] = self.expression()
        elif following.startswith("{") and depth:
            self.position += 1
            inner = Block(head[1], tuple(labels), line)
            self.body(inner, depth - 1)
            inner.last_line = self.line()
            block.blocks.append(inner)
        elif following:
            self.position = _token(self.text, self.position).end

    def expression(self) -> Expression:
        """The text up to the end of the line or of the block, outside brackets."""
        start, line = self.position, self.line()
        nesting = 0
        while self.position < len(self.text):
            token = _token(self.text, self.position)
            nesting += (token.kind == "open") - (token.kind == "close")
            if nesting < 0 or (not nesting and token.text == "\n"):
                break
            self.position = token.end
            if token.kind == "here" and not nesting:
                break
        return Expression(self.text[start : self.position].strip(), line)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    end: int


def _token(text: str, position: int, depth: int = _DEPTH) -> _Token:
    """The next token: a whole string, here-document or comment, a bracket, or other text."""
    match = _TOKEN.match(text, position)
    assert match is not None  # the last alternative matches any character
    if match["here"]:
        end = re.compile(rf"^[ \t]*{match['here']}[ \t\r]*$", re.MULTILINE).search(
            text, match.end()
        )
        stop = len(text) if end is None else end.end()
        return _Token("here", text[position:stop], stop)
    if match[0] == '"':
        stop = _end_of_string(text, match.end(), depth)
        return _Token("string", text[position:stop], stop)
    kind = "open" if match["open"] else "close" if match["close"] else ""
    kind = "comment" if match[0][:1] == "#" or match[0][:2] in ("//", "/*") else kind
    return _Token(kind, match[0], match.end())


def _end_of_string(text: str, position: int, depth: int) -> int:
    while position < len(text) and text[position] not in '"\n':
        match = _PART.match(text, position)
        assert match is not None
        position = match.end()
        if match[0] in ("${", "%{") and depth:
            position = _end_of_interpolation(text, position, depth - 1)
    return min(position + 1, len(text))


def _end_of_interpolation(text: str, position: int, depth: int) -> int:
    """The position after the bracket that closes an interpolation."""
    nesting = 1
    while position < len(text) and nesting:
        token = _token(text, position, depth)
        nesting += (token.kind == "open") - (token.kind == "close")
        position = token.end
    return position


def evaluate(text: str, resolve: Resolve, depth: int = _DEPTH) -> Value:
    """The value of an expression, or None."""
    if not depth or len(text) > _MAX_LENGTH:
        return None
    text = _without_comments(text).strip()
    if not text:
        return None
    first = _token(text, 0)
    if first.kind in ("string", "here") and first.end == len(text):
        is_string = first.kind == "string"
        body = text[1:-1] if is_string else _document(text)
        return _template(body, resolve, depth - 1, escapes=is_string)
    if text[0] in "[{" and _end_of_interpolation(text, 1, _DEPTH) == len(text):
        return _collection(text, resolve, depth - 1)
    if _NUMBER.fullmatch(text) or text in ("true", "false"):
        return text
    if text.startswith("tostring(") and text.endswith(")"):
        return evaluate(text[9:-1], resolve, depth - 1)
    if text.startswith("jsonencode(") and text.endswith(")"):
        value = evaluate(text[11:-1], resolve, depth - 1)
        return None if value is None else json.dumps(value)
    if text != "null" and _REFERENCE.fullmatch(text):
        return resolve(tuple(re.findall(r"[\w*-]+", text)))
    return None


def shown(text: str, resolve: Resolve) -> str:
    """The text of an expression, with `${NAME}` for what is not known."""
    value = evaluate(text, resolve)
    return value if isinstance(value, str) else _placeholder(text.strip())


def _placeholder(text: str) -> str:
    return f"${{{re.sub(r'[^A-Za-z0-9]+', '_', text)}}}" if _REFERENCE.fullmatch(text) else COMPUTED


def _collection(text: str, resolve: Resolve, depth: int) -> Value:
    body = text[1:-1]
    if text[0] == "[":
        if match := _FOR.fullmatch(body.strip()):
            return _comprehension(match, resolve, depth)
        if body.lstrip().startswith("for "):
            return None
        return [evaluate(item, resolve, depth) for item in _items(body, ",")]
    if body.lstrip().startswith("for "):
        return None
    entries = (_KEY.fullmatch(item) for item in _items(body, ",\n"))
    return {
        match[1] or match[2]: evaluate(match[3], resolve, depth)
        for match in entries
        if match is not None
    }


def _comprehension(match: re.Match[str], resolve: Resolve, depth: int) -> Value:
    first, second, source, body = match.groups()
    values = evaluate(source, resolve, depth)
    if isinstance(values, dict):
        pairs: list[tuple[Value, Value]] = [*values.items()]
    elif isinstance(values, list):
        pairs = [(str(i), value) for i, value in enumerate(values)]
    else:
        return None
    names = (first, second) if second else ("", first)

    def within(pair: Sequence[Value]) -> Resolve:
        scope: Mapping[str, Value] = dict(zip(names, pair, strict=True))
        return lambda path: scope[path[0]] if path[0] in scope else resolve(path)

    return [evaluate(body, within(pair), depth) for pair in pairs]


def _items(text: str, separators: str) -> Iterator[str]:
    start = position = nesting = 0
    while position < len(text):
        token = _token(text, position)
        nesting += (token.kind == "open") - (token.kind == "close")
        if not nesting and token.text in separators:
            if text[start:position].strip():
                yield text[start:position]
            start = token.end
        position = token.end
    if text[start:].strip():
        yield text[start:]


def _without_comments(text: str) -> str:
    parts, position = [], 0
    while position < len(text):
        token = _token(text, position)
        parts.append("" if token.kind == "comment" else token.text)
        position = token.end
    return "".join(parts)


def _document(text: str) -> str:
    """The text of a here-document, without its indentation if it begins with `<<-`."""
    body = "".join(text.splitlines(keepends=True)[1:-1])
    return textwrap.dedent(body) if text.startswith("<<-") else body


def _template(text: str, resolve: Resolve, depth: int, *, escapes: bool) -> str:
    parts, position, size = [], 0, 0
    while position < len(text):
        match = _PART.match(text, position)
        assert match is not None
        position = match.end()
        if match[0] in ("${", "%{"):
            end = _end_of_interpolation(text, position, _DEPTH)
            inner = text[position : end - 1].strip("~ \n")
            is_known = match[0] == "${" and depth
            value = evaluate(inner, resolve, depth) if is_known else None
            parts.append(value if isinstance(value, str) else _placeholder(inner))
            size += len(parts[-1])
            if size > _MAX_LENGTH:
                return COMPUTED
            position = end
        elif match[0] in ("$${", "%%{"):
            parts.append(match[0][1:])
        else:
            parts.append(_ESCAPES.get(match[0], match[0]) if escapes else match[0])
    return "".join(parts)
