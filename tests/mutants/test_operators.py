"""Each kind of mistake, and the code that is not changed."""

from __future__ import annotations

import pytest

from tests.mutants.equivalent import FILE, equivalent
from tests.mutants.operators import mutants, possible_mutants
from toolchain.paths import ROOT


def changes(source: str) -> set[str]:
    return {mutant.applied(source) for mutant in mutants("m.py", source)}


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("x = not y", {"x = (y)"}),
        ("x = a and b", {"x = (a)", "x = (b)", "x = (a or b)"}),
        ("x = a < b", {"x = (a <= b)"}),
        ("x = a not in b", {"x = (a in b)"}),
        ("x = a is None", {"x = (a is not None)"}),
        ("x = 1", {"x = 2"}),
        ("x = True", {"x = False"}),
        ("x = a - b", {"x = a + b", "x = (a + b)"}),
        ("x = any(y)", {"x = all(y)"}),
        ("x = (a, b)", {"x = ((a,))", "x = ((b,))"}),
        ("x = {a, b}", {"x = {a}", "x = {b}"}),
        ("x = {a: 'b', c: 'd'}", {"x = {a: 'b'}", "x = {c: 'd'}"}),
        ("x = [a for a in b if a]", {"x = [a for a in b if True]"}),
        ("x = a if b else c", {"x = (a)", "x = (c)"}),
        ("x.append(y)", {"pass"}),
        ("while a:\n    break", {"while (not a):\n    break", "while a:\n    continue"}),
    ],
)
def test_mistakes_of_an_expression_or_a_statement(source: str, changed: set[str]) -> None:
    changed_sources = {text.replace("(not (a))", "(not a)") for text in changes(source)}
    assert changed_sources <= changed and changed_sources


def test_a_guard_is_dropped_or_turned_round() -> None:
    source = "def f(a):\n    if a:\n        return 'x'\n    return None\n"
    assert changes(source) == {
        "def f(a):\n    pass\n    return None\n",
        "def f(a):\n    if (not (a)):\n        return 'x'\n    return None\n",
        "def f(a):\n    if a:\n        return None\n    return None\n",
    }


@pytest.mark.parametrize(
    "source",
    [
        '"""Text."""',
        "x = 'text'",
        "x = f'{a or b}'",
        "x: Literal[1, 2]",
        "def f(a: Callable[[str, int], None]) -> tuple[str, int]: ...",
        "Tell = Callable[[str, int], None]",
        "WAIT_SECONDS = 5",
        "x = a.settimeout(max(0.1, 2))",
        "if __name__ == '__main__':\n    main()\n",
        "x = time.monotonic() - begun < limit",
        "x = f(timeout=5)",
        "x = {'retry.backoff.ms': 20}",
        "__all__ = ['a', 'b']",
        "if TYPE_CHECKING:\n    import a\n",
    ],
)
def test_what_no_behaviour_shows_is_left_alone(source: str) -> None:
    assert changes(source) == set()


def test_a_mutant_knows_its_function_decorators_included() -> None:
    source = "@d\ndef f():\n    return g()\nx = 1\n"
    assert {mutant.function for mutant in mutants("m.py", source)} == {(1, 3), None}


def test_places_are_counted_in_bytes() -> None:
    assert changes("x = 'ä', 1 < a") >= {"x = 'ä', (1 <= a)"}


def test_what_is_listed_as_equivalent_is_left_out_and_must_exist() -> None:
    path = "earshot/errors.py"
    all_mutants = mutants(path, (ROOT / path).read_text())
    change = all_mutants[0].change((ROOT / path).read_text())
    list_text = f"{path} | {change} | because"
    assert all_mutants[0] in equivalent(all_mutants, ROOT, list_text)
    with pytest.raises(ValueError, match="not in the code"):
        equivalent(all_mutants, ROOT, f"{path} | never | because")


def test_the_list_names_what_is_there() -> None:
    files = {line.split(" | ")[0] for line in FILE.read_text().splitlines() if " | " in line}
    files = {name for name in files if (ROOT / name).suffix == ".py"}
    all_mutants = [
        mutant for name in files for mutant in possible_mutants(name, (ROOT / name).read_text())
    ]
    equivalent(all_mutants, ROOT)


def test_a_short_change_is_named_by_its_line() -> None:
    source = "def f():\n    return [1,\n        2]"
    change_texts = [mutant.change(source) for mutant in mutants("m.py", source)]
    assert "return [1, -> return [2," in change_texts
    assert "2] -> 3]" in change_texts
