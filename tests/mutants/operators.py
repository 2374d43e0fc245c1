"""Single mistakes in a source: a span of its text, and the replacement.

Left alone is what no test of behaviour could notice: annotations, docstrings and other strings,
f-strings (their parts have no reliable place before Python 3.12), `__all__`, what makes values
frozen, and how many seconds something waits.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.mutants.reach import first_line

SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OTHER_FUNCTION = {"any": "all", "all": "any", "min": "max", "max": "min"}
FROZEN = frozenset({"frozen", "slots", "kw_only", "strict", "repr", "eq", "daemon", "indent"})
"""Keywords that guard against mistakes of the code itself, or against what Python does at exit, or
lay a text out."""
GENERIC = frozenset({"dict", "frozenset", "list", "set", "tuple", "type"})
LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True)
class Mutant:
    """One mistake: the text of ``path`` with ``start:end`` (bytes) replaced by ``text``."""

    path: str
    operator: str
    line: int
    start: int
    end: int
    text: str
    function: tuple[int, int] | None
    """First and last line of the innermost function around it; None: runs at import."""

    def applied(self, source: str) -> str:
        encoded = source.encode()
        return (encoded[: self.start] + self.text.encode() + encoded[self.end :]).decode()

    def change(self, source: str) -> str:
        """``was -> is``, each on one line, shortened: how a list of equivalents names it.

        A short span is shown with its line.
        """
        encoded = source.encode()
        old_text, new_text = encoded[self.start : self.end].decode(), self.text
        if len(old_text) < 20:
            begin = encoded.rfind(b"\n", 0, self.start) + 1
            end = encoded.find(b"\n", self.end) % (len(encoded) + 1)
            text_before, text_after = (
                encoded[begin : self.start].decode(),
                encoded[self.end : end].decode(),
            )
            old_text, new_text = (
                f"{text_before}{old_text}{text_after}",
                f"{text_before}{new_text}{text_after}",
            )
        return f"{_short(old_text)} -> {_short(new_text)}"


def mutants(path: str, source: str) -> list[Mutant]:
    """All mistakes of ``source`` that still compile, in the order of the text, each text once."""
    compiling_mutants = []
    for mutant in possible_mutants(path, source):
        try:
            compile(mutant.applied(source), path, "exec", dont_inherit=True)
        except SyntaxError:
            continue
        compiling_mutants.append(mutant)
    return compiling_mutants


def possible_mutants(path: str, source: str) -> list[Mutant]:
    """Like `mutants`, including those that do not compile."""
    mutant_by_change: dict[tuple[int, int, str], Mutant] = {}
    encoded = source.encode()
    for mutant in _Finder(path, source).all():
        if encoded[mutant.start : mutant.end].decode() != mutant.text:
            mutant_by_change.setdefault((mutant.start, mutant.end, mutant.text), mutant)
    return sorted(
        mutant_by_change.values(), key=lambda mutant: (mutant.start, mutant.end, mutant.text)
    )


class _Finder:
    def __init__(self, path: str, source: str) -> None:
        self.path, self.source = path, source
        self.tree = ast.parse(source)
        self.starts = [0]
        for line in source.encode().splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def all(self) -> Iterator[Mutant]:
        yield from self._inside(self.tree, None)

    def _inside(self, node: ast.AST, function: tuple[int, int] | None) -> Iterator[Mutant]:
        for child in _children(node):
            inner = function
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                assert child.end_lineno is not None
                inner = (first_line(child), child.end_lineno)
            for operator, at, text in _mistakes(child):
                yield self._mutant(operator, at, text, inner)
            yield from self._inside(child, inner)

    def _mutant(
        self, operator: str, at: ast.AST, text: str, function: tuple[int, int] | None
    ) -> Mutant:
        assert isinstance(at, ast.expr | ast.stmt)
        assert at.end_lineno is not None and at.end_col_offset is not None
        start = self.starts[at.lineno - 1] + at.col_offset
        end = self.starts[at.end_lineno - 1] + at.end_col_offset
        return Mutant(self.path, operator, at.lineno, start, end, text, function)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """The children of ``node`` that may be mutated."""
    if isinstance(node, ast.Dict):
        waits = (isinstance(key, ast.Constant) and _is_a_wait(str(key.value)) for key in node.keys)
        yield from (value for value, wait in zip(node.values, waits, strict=True) if not wait)
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _left_alone(child):
                yield child


def _left_alone(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
        case ast.Call(func=ast.Attribute(attr="settimeout" | "sleep")):
            return True
        case ast.keyword(arg=str(name)):
            return name in FROZEN or _is_a_wait(name)
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name == "__all__" or _is_a_wait(name) or name.endswith("Type")
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Subscript(value=ast.Name(id=name)):  # a type, as in `Callable[[str], int]`
            return name in GENERIC or (name[0].isupper() and not name.isupper())
    return False


def _is_a_wait(name: str) -> bool:
    return name.lower().endswith(("seconds", "timeout", "_ms", ".ms"))


def _asks_the_clock(node: ast.AST) -> bool:
    """True for a sum or comparison with the clock: no test detects a small change of it."""
    return isinstance(node, ast.BinOp | ast.Compare) and any(
        isinstance(child, ast.Attribute) and child.attr == "monotonic" for child in ast.walk(node)
    )


def _mistakes(node: ast.AST) -> Iterator[tuple[str, ast.AST, str]]:
    match node:
        case _ if _asks_the_clock(node):
            return
        case ast.If() if not node.orelse and isinstance(node.body[-1], LEAVES):
            yield "guard dropped", node, "pass"
            yield from _negated(node.test)
        case ast.If() | ast.While():
            yield from _negated(node.test)
            if isinstance(node, ast.If):
                yield "condition always true", node.test, "True"
        case ast.IfExp():
            yield "one branch", node, f"({ast.unparse(node.body)})"
            yield "other branch", node, f"({ast.unparse(node.orelse)})"
        case ast.UnaryOp(op=ast.Not()):
            yield "not dropped", node, f"({ast.unparse(node.operand)})"
        case ast.BoolOp():
            for remaining_values in _each_dropped(node.values):
                yield "operand dropped", node, f"({_joined(node.op, remaining_values)})"
            other_operator = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "and, or", node, f"({_joined(other_operator, node.values)})"
        case ast.Compare():
            for index, op in enumerate(node.ops):
                changed = [*node.ops[:index], SWAPPED[type(op)](), *node.ops[index + 1 :]]
                new_comparison = ast.Compare(node.left, changed, node.comparators)
                yield "comparison", node, f"({ast.unparse(new_comparison)})"
        case ast.BinOp(op=ast.Add() | ast.Sub() as op):
            sign = ast.Sub() if isinstance(op, ast.Add) else ast.Add()
            new_sum = ast.BinOp(node.left, sign, node.right)
            yield "plus, minus", node, f"({ast.unparse(new_sum)})"
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            yield from _conditions_dropped(node)
        case ast.Constant(value=bool(value)):
            yield "constant", node, str(not value)
        case ast.Constant(value=int(number)):
            yield "constant", node, str(number + 1)
        case ast.Call(func=ast.Name(id=name) as function) if name in OTHER_FUNCTION:
            yield "any, all, min, max", function, OTHER_FUNCTION[name]
        case ast.Tuple() | ast.List() | ast.Set() if len(node.elts) > 1 and not isinstance(
            getattr(node, "ctx", None), ast.Store
        ):
            yield from _elements_dropped(node)
        case ast.Dict() if len(node.keys) > 1:
            for index in range(len(node.keys)):
                smaller_dict = ast.Dict(_without(node.keys, index), _without(node.values, index))
                yield "element dropped", node, ast.unparse(smaller_dict)
        case _:
            yield from _of_statements(node)


def _of_statements(node: ast.AST) -> Iterator[tuple[str, ast.AST, str]]:
    match node:
        case ast.Expr() | ast.Raise() | ast.AugAssign() | ast.Delete():
            yield "statement dropped", node, "pass"
        case ast.Return(value=ast.expr() as value) if not _is_falsy(value):
            yield "returns None", node, "return None"
        case ast.Break():
            yield "break, continue", node, "continue"
        case ast.Continue():
            yield "break, continue", node, "break"


def _negated(test: ast.expr) -> Iterator[tuple[str, ast.AST, str]]:
    """Left out if a swapped comparison or a dropped ``not`` has the same effect."""
    match test:
        case ast.Compare(ops=[_]) | ast.UnaryOp(op=ast.Not()):
            return
    yield "condition negated", test, f"(not ({ast.unparse(test)}))"


def _conditions_dropped(
    node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
) -> Iterator[tuple[str, ast.AST, str]]:
    """Each `if` of a comprehension made true; an `and` in it is another mistake."""
    for generator in node.generators:
        for condition in generator.ifs:
            yield "filter dropped", condition, "True"


def _elements_dropped(node: ast.Tuple | ast.List | ast.Set) -> Iterator[tuple[str, ast.AST, str]]:
    for remaining_elements in _each_dropped(node.elts):
        new_node: ast.expr
        match node:
            case ast.Tuple():
                new_node = ast.Tuple(remaining_elements, ast.Load())
            case ast.List():
                new_node = ast.List(remaining_elements, ast.Load())
            case _:
                new_node = ast.Set(remaining_elements)
        text = ast.unparse(new_node)
        yield "element dropped", node, f"({text})" if isinstance(node, ast.Tuple) else text


def _each_dropped(values: list[ast.expr]) -> Iterator[list[ast.expr]]:
    for index in range(len(values)):
        yield _without(values, index)


def _without(values: list[Any], index: int) -> list[Any]:
    return values[:index] + values[index + 1 :]


def _joined(op: ast.boolop, values: list[ast.expr]) -> str:
    return ast.unparse(values[0] if len(values) == 1 else ast.BoolOp(op, values))


def _is_falsy(value: ast.expr) -> bool:
    """True for None, and for values that callers treat like None."""
    match value:
        case ast.Constant(value=constant):
            return not constant
        case ast.Tuple(elts=[]) | ast.List(elts=[]) | ast.Dict(keys=[]):
            return True
    return False


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 160 else f"{text[:120]} ... {text[-35:]}"
