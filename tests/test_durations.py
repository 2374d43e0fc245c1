"""What is printed of the time that tests take, and the table of it."""

from tests.durations import SET_UP, from_logs, makespan, seconds, slowest, updated

LOG = """
============================= slowest durations ==============================
61.50s setup    tests/e2e/test_local_stack.py::test_up
3.25s call     tests/e2e/test_local_stack.py::test_up
2.50s teardown tests/e2e/test_local_stack.py::test_bad[name ::1]
0.04s call     tests/e2e/test_local_stack.py::test_bad[name ::1]
7.00s call     tests/jvm/test_jars.py::test_long
0.30s call     tests/jvm/test_jars.py::test_short
0.30s call     tests/names/test_kinds.py::test_quick
"""


def test_the_table_has_fixtures_by_file_and_short_tests_where_parts_are_real() -> None:
    assert from_logs([LOG]) == {
        "tests/e2e/test_local_stack.py": {SET_UP: 64.0, "test_up": 3.2, "test_bad[name ::1]": 0.0},
        "tests/jvm/test_jars.py": {"test_long": 7.0},
    }


def test_a_part_of_a_file_pays_for_its_fixtures() -> None:
    table = from_logs([LOG])
    assert seconds("tests/e2e/test_local_stack.py", ["test_bad[name ::1]"], table) == 64
    assert seconds("tests/e2e/test_local_stack.py", ["test_up", "test_new"], table) == 64 + 3.2 + 10
    assert seconds("tests/e2e/test_new.py", ["test_new"], table) == 10
    assert seconds("tests/names/test_kinds.py", ["test_quick"], table) == 0.05


def test_the_longest_come_first_where_two_share_the_work() -> None:
    assert makespan([2, 3, 4, 5]) == 7
    assert makespan([9, 1]) == 9
    assert makespan([]) == 0


def test_a_test_counts_with_its_fixtures_and_a_file_with_its_tests() -> None:
    spent = [("a.py::one", 1.0), ("a.py::one", 5.0), ("a.py::two", 2.0), ("b.py::one", 7.0)]
    assert list(slowest(spent)) == [
        "slowest tests, with their fixtures:",
        "     7.0 s  b.py::one",
        "     6.0 s  a.py::one",
        "     2.0 s  a.py::two",
        "slowest files:",
        "     8.0 s  a.py",
        "     7.0 s  b.py",
    ]


def test_a_test_that_did_not_run_keeps_its_figure() -> None:
    known = {"a.py": {"set-up": 2.0, "one": 1.0, "two": 3.0}, "b.py": {"three": 4.0}}
    measured = {"a.py": {"set-up": 5.0, "one": 1.5}, "c.py": {"four": 6.0}}
    assert updated(known, measured) == {
        "a.py": {"set-up": 5.0, "one": 1.5, "two": 3.0},
        "b.py": {"three": 4.0},
        "c.py": {"four": 6.0},
    }
