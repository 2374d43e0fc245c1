"""When a stack's change counts as complete."""

from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.change_memory import ProvedChangeKind

from earshot.listeners.model import ClusterPlan
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
    return {"begun": begun(BEFORE), "done": 0.0, "state_dir": str(state), **more}


def begun(plan: ClusterPlan) -> list[dict[str, Any]]:
    return [{"plan": plan.model_dump(mode="json"), "own": {}}]


def test_the_plan_is_remembered_once_it_was_proved_and_no_longer_than_the_nodes(
    state: Path,
) -> None:
    provider = Called(ProvedChangeKind())
    made = provider.create(props(state))
    assert (made.id, made.outs) == ("proved", props(state))
    assert memory.recall(state) == memory.ChangeMemory(complete=BEFORE)
    news = props(state, begun=begun(RENAMED), done=1.0)
    provider.update(props(state), news)
    assert memory.recall(state) == memory.ChangeMemory(complete=RENAMED, done=1)
    provider.delete(news)
    assert memory.recall(state) == memory.ChangeMemory()


def test_another_plan_or_another_step_is_a_change(state: Path) -> None:
    provider, olds = Called(ProvedChangeKind()), props(state)
    assert provider.differs(olds, props(state)), "what was remembered is lost"
    memory.complete(state, BEFORE, 0)
    assert not provider.differs(olds, props(state))
    assert provider.differs(olds, props(state, done=1.0))
    other = props(state, begun=begun(RENAMED))
    assert provider.differs(olds, other)


def test_a_step_that_was_taken_back_is_over(state: Path) -> None:
    provider, olds = Called(ProvedChangeKind()), props(state)
    provider.create(olds)
    memory.begin(state, RENAMED)
    assert provider.differs(olds, olds)
    provider.update(olds, olds)
    assert memory.recall(state) == memory.ChangeMemory(complete=BEFORE)
    assert not provider.differs(olds, olds)


def test_a_memory_of_another_plan_than_the_state_s_is_written_anew(state: Path) -> None:
    """The state was put back from a copy that is older than the file beside it."""
    provider, olds = Called(ProvedChangeKind()), props(state)
    memory.complete(state, RENAMED, 0)
    assert provider.differs(olds, olds)
    provider.update(olds, olds)
    assert memory.recall(state) == memory.ChangeMemory(complete=BEFORE)
    memory.complete(state, BEFORE, 1)
    assert provider.differs(olds, olds)


def test_a_moved_checkout_remembers_where_it_is(state: Path, tmp_path: Path) -> None:
    elsewhere = Path("/elsewhere/.earshot/stacks/local")
    Called(ProvedChangeKind()).create(props(elsewhere))
    assert memory.recall(state).complete == BEFORE
