"""The position of a stack in its change, from its stored memory."""

from pathlib import Path
from typing import Any

import pytest

from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan
from earshot.transition import memory
from earshot.transition.change import Change
from tests.raised import raised
from tests.transition.test_steps import BEFORE, EXTERNAL, INTERNAL, RENAMED, REPL, plan

LINES = (
    "step 1 of 3: REPL added next to INTERNAL",
    "step 2 of 3: brokers reach each other through REPL",
    "step 3 of 3: INTERNAL removed",
)


def test_of_a_stack_of_which_nothing_is_remembered_the_wanted_plan_is_next(tmp_path: Path) -> None:
    change = Change.of(tmp_path, RENAMED)
    assert (change.plan, change.lines, change.note, change.done_after) == (RENAMED, (), "", 0)
    assert change.leaving == frozenset()


def test_step_by_step_until_the_wanted_plan_runs(tmp_path: Path) -> None:
    memory.complete(tmp_path, BEFORE, 0)
    notes, leaving = [], []
    for number in range(3):
        change = Change.of(tmp_path, RENAMED)
        assert change.lines == LINES[number:]
        notes.append(change.note)
        leaving.append(sorted(change.leaving))
        memory.begin(tmp_path, change.plan)
        assert Change.of(tmp_path, RENAMED) == change, "an interrupted step is made again"
        memory.complete(tmp_path, change.plan, change.done_after)
    assert notes == [f"{LINES[0]}; run again", f"{LINES[1]}; run again", LINES[2]]
    assert leaving == [["INTERNAL"], ["INTERNAL"], []]
    assert Change.of(tmp_path, RENAMED) == Change(RENAMED)


def test_a_change_of_one_step_is_not_counted(tmp_path: Path) -> None:
    memory.complete(tmp_path, BEFORE, 0)
    change = Change.of(tmp_path, plan(INTERNAL, EXTERNAL | {"port": 9492}))
    assert len(change.steps) == 1
    assert (change.lines, change.note, change.done_after) == ((), "", 0)


def test_the_old_plan_again_counts_what_was_done(tmp_path: Path) -> None:
    memory.complete(tmp_path, BEFORE, 0)
    first = Change.of(tmp_path, RENAMED)
    memory.complete(tmp_path, first.plan, first.done_after)
    assert Change.of(tmp_path, BEFORE).note == "step 2 of 2: REPL removed"


def test_hosts_that_only_an_update_knows_are_those_that_run(tmp_path: Path) -> None:
    """The hosts of Docker hosts that the stack makes."""

    def on(name: str, *listeners: dict[str, Any]) -> ClusterPlan:
        document = plan(*listeners).model_dump()
        for node in document["nodes"]:
            for listener in node["listeners"]:
                listener["host"] = f"{node['id']}.{name}"
        return ClusterPlan.model_validate(document)

    running = on("compute.internal", INTERNAL, EXTERNAL)
    memory.complete(tmp_path, running, 0)
    same = Change.of(tmp_path, on("not-known-yet.invalid", INTERNAL, EXTERNAL))
    assert (same.plan, same.lines) == (running, ())
    renamed = Change.of(tmp_path, on("not-known-yet.invalid", REPL, EXTERNAL))
    assert renamed.lines == LINES
    with pytest.raises(EarshotError, match="controllers would move"):
        Change.of(tmp_path, on("example.com", INTERNAL, EXTERNAL))


def test_a_step_that_was_begun_is_remembered_until_it_is_complete(tmp_path: Path) -> None:
    memory.begin(tmp_path, BEFORE)
    assert memory.recall(tmp_path) == memory.ChangeMemory(begun=(BEFORE,))
    memory.complete(tmp_path, BEFORE, 1)
    assert (tmp_path / memory.FILE).stat().st_mode & 0o777 == 0o600
    memory.begin(tmp_path, BEFORE)
    assert memory.recall(tmp_path) == memory.ChangeMemory(complete=BEFORE, done=1)
    memory.begin(tmp_path, RENAMED)
    both = memory.ChangeMemory(complete=BEFORE, begun=(RENAMED,), done=1)
    assert memory.recall(tmp_path) == both
    for repeated in (RENAMED, BEFORE):
        memory.begin(tmp_path, repeated)
        assert memory.recall(tmp_path) == both, "some node may run it still"
    third = plan(INTERNAL)
    memory.begin(tmp_path, third)
    assert memory.recall(tmp_path).begun == (RENAMED, third)
    memory.forget(tmp_path)
    memory.forget(tmp_path)
    assert memory.recall(tmp_path) == memory.ChangeMemory()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"complete": 3}', '{"complete": {"nodes": []}}'])
def test_a_memory_that_is_not_whole_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / memory.FILE).write_text(text)
    assert memory.recall(tmp_path) == memory.ChangeMemory()


def test_a_memory_that_cannot_be_read_or_written_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / memory.FILE
    path.mkdir()
    error = raised(EarshotError, memory.recall, tmp_path)
    assert str(error) == f"{path}: cannot be read (Is a directory)"
    error = raised(EarshotError, memory.complete, tmp_path, BEFORE, 0)
    assert str(error) == f"{path}: cannot be written (Is a directory)"
