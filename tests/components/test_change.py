"""When a change of a stack is complete."""

from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.change_memory import ProvedChangeKind

from earshot.listeners.model import ClusterPlan
from earshot.transition import memory
from tests.components.called import Called
from tests.transition.test_steps import BEFORE, RENAMED


@pytest.fixture
def state(project: Path) -> Path:
    return project / ".earshot" / "stacks" / "local"


def props(state: Path, **changes: Any) -> dict[str, Any]:
    """Inputs as in Pulumi's state: every number is a float."""
    return {"begun": begun(BEFORE), "done": 0.0, "state_dir": str(state), **changes}


def begun(plan: ClusterPlan) -> list[dict[str, Any]]:
    return [{"plan": plan.model_dump(mode="json"), "own": {}}]


def test_the_plan_is_remembered_once_it_was_proved_and_no_longer_than_the_nodes(
    state: Path,
) -> None:
    provider = Called(ProvedChangeKind())
    resource = provider.create(props(state))
    assert (resource.id, resource.outs) == ("proved", props(state))
    assert memory.recall(state) == memory.ChangeMemory(complete=BEFORE)
    news = props(state, begun=begun(RENAMED), done=1.0)
    provider.update(props(state), news)
    assert memory.recall(state) == memory.ChangeMemory(complete=RENAMED, done=1)
    provider.delete(news)
    assert memory.recall(state) == memory.ChangeMemory()


def test_another_plan_or_another_step_is_a_change(state: Path) -> None:
    provider, olds = Called(ProvedChangeKind()), props(state)
    assert provider.differs(olds, props(state)), "the memory is lost"
    memory.complete(state, BEFORE, 0)
    assert not provider.differs(olds, props(state))
    assert provider.differs(olds, props(state, done=1.0))
    changed = props(state, begun=begun(RENAMED))
    assert provider.differs(olds, changed)


def test_a_memory_that_differs_from_the_state_is_written_again(state: Path) -> None:
    """The state was restored from a copy that is older than the file."""
    provider, olds = Called(ProvedChangeKind()), props(state)
    memory.complete(state, RENAMED, 0)
    assert provider.differs(olds, olds)
    provider.update(olds, olds)
    assert memory.recall(state) == memory.ChangeMemory(complete=BEFORE)
    memory.complete(state, BEFORE, 1)
    assert provider.differs(olds, olds)


def test_a_moved_checkout_uses_its_own_folder(state: Path) -> None:
    elsewhere = Path("/elsewhere/.earshot/stacks/local")
    Called(ProvedChangeKind()).create(props(elsewhere))
    assert memory.recall(state).complete == BEFORE
