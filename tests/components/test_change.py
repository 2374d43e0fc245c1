"""When a stack's change counts as complete."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.change_memory import CompleteChangeKind

from earshot.transition import memory
from tests.components.called import Called
from tests.transition.test_steps import BEFORE, RENAMED


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: earshot\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".earshot" / "stacks" / "local"


def props(state: Path, **more: Any) -> dict[str, Any]:
    """As a state holds them: every number is a float."""
    plan = BEFORE.model_dump(mode="json")
    return {"plan": plan, "done": 0.0, "state_dir": str(state), **more}


def test_the_plan_is_remembered_once_it_was_proved_and_no_longer_than_the_nodes(
    state: Path,
) -> None:
    provider = Called(CompleteChangeKind())
    made = provider.create(props(state))
    assert (made.id, made.outs) == ("complete", props(state))
    assert memory.recall(state) == memory.ChangeMemory(complete=BEFORE)
    news = props(state, plan=RENAMED.model_dump(mode="json"), done=1.0)
    provider.update(props(state), news)
    assert memory.recall(state) == memory.ChangeMemory(complete=RENAMED, done=1)
    assert provider.read(news)
    provider.delete(news)
    assert memory.recall(state) == memory.ChangeMemory()
    assert provider.read(news) is None, "the next update writes it again"


def test_another_plan_or_another_step_is_a_change(state: Path) -> None:
    provider, olds = Called(CompleteChangeKind()), props(state)
    assert not provider.differs(olds, props(state))
    assert provider.differs(olds, props(state, done=1.0))
    other = props(state, plan=RENAMED.model_dump(mode="json"))
    assert provider.differs(olds, other)
    assert not provider.differs(olds, props(state / "moved"))


def test_a_step_that_was_taken_back_is_over(state: Path) -> None:
    provider, olds = Called(CompleteChangeKind()), props(state)
    provider.create(olds)
    memory.begin(state, RENAMED)
    assert provider.differs(olds, olds)
    provider.update(olds, olds)
    assert memory.recall(state) == memory.ChangeMemory(complete=BEFORE)
    assert not provider.differs(olds, olds)


def test_a_memory_of_another_plan_than_the_state_s_is_written_anew(state: Path) -> None:
    """The state was put back from a copy that is older than the file beside it."""
    provider, olds = Called(CompleteChangeKind()), props(state)
    memory.complete(state, RENAMED, 0)
    assert provider.differs(olds, olds)
    provider.update(olds, olds)
    assert memory.recall(state) == memory.ChangeMemory(complete=BEFORE)
    memory.complete(state, BEFORE, 1)
    assert provider.differs(olds, olds)


def test_a_moved_checkout_remembers_where_it_is(state: Path, tmp_path: Path) -> None:
    elsewhere = Path("/elsewhere/.earshot/stacks/local")
    Called(CompleteChangeKind()).create(props(elsewhere))
    assert memory.recall(state).complete == BEFORE
