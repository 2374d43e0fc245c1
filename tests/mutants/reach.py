"""Records which test runs which function of the product, and its time: once, in a copy.

Every function of the copy begins by noting that it ran. `Reach`, a pytest plugin, notes for which
test. Processes that a test starts tell too: `sitecustomize`, in a directory of ``PYTHONPATH``,
writes what they ran when they end. What runs while tests are collected counts for none of them.
"""

import ast
import builtins
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

DIRECTORY = "EARSHOT_MUTANTS_REACH"
"""Environment variable: where processes that tests start write what they ran."""
SESSION = "session.json"
RAN = "_earshot_ran_"
SITE = f"""\
import atexit, builtins, json, os, uuid
test, directory = os.environ.get("PYTEST_CURRENT_TEST"), os.environ.get("{DIRECTORY}")
if test and directory:
    builtins.{RAN} = set()
    def write():
        try:
            with open(f"{{directory}}/child-{{uuid.uuid4()}}.json", "w") as file:
                json.dump({{"test": test.rpartition(" ")[0], "runs": sorted(builtins.{RAN})}}, file)
        except OSError:  # of another user, or in a place of its own
            pass
    atexit.register(write)
"""


def noting(path: str, source: str) -> str:
    """``source`` with every function noting ``path:line`` of its definition when it runs."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            place = f"{path}:{first_line(node)}"
            note = f'__import__("builtins").__dict__.setdefault("{RAN}", set()).add({place!r})'
            at = 1 if ast.get_docstring(node) is not None else 0
            node.body[at:at] = ast.parse(note).body
    return ast.unparse(tree)


def first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


class Reach:
    """Writes its findings to ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._runs: dict[str, set[str]] = defaultdict(set)
        self._seconds: dict[str, float] = defaultdict(float)
        self._failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        run_functions: set[str] = builtins.__dict__.setdefault(RAN, set())
        run_functions.clear()
        try:
            return (yield)
        finally:
            self._runs[item.nodeid] |= run_functions

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        if not report.passed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        tests = {
            test: {"seconds": self._seconds[test], "runs": sorted(runs)}
            for test, runs in self._runs.items()
            if test not in self._failed
        }
        document = {"tests": tests, "failed": sorted(self._failed), "modules": sorted(sys.modules)}
        (self._directory / SESSION).write_text(json.dumps(document))


def read(directory: Path) -> tuple[dict[str, dict[str, Any]], list[str], list[str]]:
    """Tests (seconds; ``path:line`` of each function they run), those that did not pass, and the
    modules that were loaded."""
    document = json.loads((directory / SESSION).read_text())
    tests = document["tests"]
    for file in directory.glob("child-*.json"):
        child = json.loads(file.read_text())
        if child["test"] in tests:
            runs = tests[child["test"]]["runs"]
            tests[child["test"]]["runs"] = sorted({*runs, *child["runs"]})
    return tests, document["failed"], document["modules"]
