"""Docstrings: what they quote twice is a name of the code that they describe."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
ROOTS = ("earshot", "components", "policies", "toolchain", "language_host", "bench", "tests")
QUOTED = re.compile(r"``([a-z_][a-z_0-9]*)``")
Described = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def missing_names(source: str) -> Iterator[tuple[int, str]]:
    """(line, name) of each name in double quotes that the described class or function lacks."""
    for described in ast.walk(ast.parse(source)):
        if not isinstance(described, Described):
            continue
        names = dict.fromkeys(QUOTED.findall(ast.get_docstring(described) or ""))
        if names:
            del described.body[0]
            code = ast.unparse(ast.Module([described], []))
            yield from (
                (described.lineno, name) for name in names if not re.search(rf"\b{name}\b", code)
            )


def test_a_renamed_parameter_is_noticed() -> None:
    source = 'def f(new):\n    """The text of ``old``, and ``new``."""\n    return new\n'
    assert [*missing_names(source)] == [(1, "old")]


def test_docstrings_quote_names_that_exist() -> None:
    paths = [path for root in ROOTS for path in sorted((REPOSITORY / root).rglob("*.py"))]
    assert len(paths) > 500
    assert not [
        f"{path.relative_to(REPOSITORY)}:{line}: {name}"
        for path in paths
        for line, name in missing_names(path.read_text())
    ]
