"""What a stack's state holds of its changes, from one update to the next."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest
from earshot_pulumi import change_memory as module
from earshot_pulumi.change_memory import (
    AppliedPlan,
    BegunChangeKind,
    ProvedChangeKind,
    RecordedChanges,
    correct_memory,
    recorded_changes,
)

from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan
from earshot.listeners.render import annotated
from earshot.transition import memory
from earshot.transition.change import Change
from earshot.transition.memory import ChangeMemory
from tests.components.called import Called
from tests.raised import raised
from tests.transition.test_steps import BEFORE, RENAMED

NAME = "s"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: earshot\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".earshot" / "stacks" / "s"


def plain(made: AppliedPlan) -> dict[str, Any]:
    """As a state holds it."""
    return {"plan": made.plan.model_dump(mode="json"), "own": dict(made.own)}


class State:
    """The resources of a stack, as updates leave them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.resources: dict[str, Any] = {"urn:other": {"type": "other", "outputs": {"plan": 1}}}
        for name in ("organization", "project", "stack"):
            monkeypatch.setattr(pulumi, f"get_{name}", lambda name=name: name)
        monkeypatch.setattr(pulumi.runtime, "invoke", self._invoke)

    def _invoke(self, token: str, given: dict[str, Any]) -> Any:
        assert token == "pulumi:pulumi:readStackResourceOutputs"
        assert given == {"stackName": "organization/project/stack"}
        return SimpleNamespace(value={"outputs": self.resources})

    def update(self, wanted: ClusterPlan, *, ends: bool = True) -> tuple[Change, bool]:
        """The change that an update makes, and whether it changes any of the two resources."""
        held = recorded_changes(self.folder, NAME)
        change = Change.of(self.folder, wanted)
        begun = held.begun_with(AppliedPlan(change.plan, {"1": [{"host_port": 9092.0}]}))
        assert begun[-1].plan == change.plan
        own = {"state_dir": str(self.folder), "begun": list(map(plain, begun))}
        changed = self._make(Called(BegunChangeKind()), "earshot:index:BegunChange", own)
        if ends:
            proved = own | {"done": float(change.done_after)}
            changed |= self._make(Called(ProvedChangeKind()), "earshot:index:ProvedChange", proved)
            assert memory.recall(self.folder).complete == change.plan
        else:
            assert change.plan in (
                memory.recall(self.folder).complete,
                *memory.recall(self.folder).begun,
            )
        return change, changed

    def _make(self, provider: Any, type: str, props: dict[str, Any]) -> bool:
        olds = self.resources.get(f"urn:{type}::{NAME}", {}).get("outputs")
        if olds is None:
            outs = provider.create(props).outs
        elif provider.differs(olds, props):
            outs = provider.update(olds, props).outs
        else:
            return False
        self.resources[f"urn:{type}::{NAME}"] = {"type": type, "outputs": outs}
        return True


@pytest.fixture
def state(folder: Path, monkeypatch: pytest.MonkeyPatch) -> State:
    return State(folder, monkeypatch)


def test_a_change_is_made_step_by_step_and_then_nothing_changes(state: State) -> None:
    assert state.update(BEFORE) == (Change(BEFORE), True)
    assert state.update(BEFORE) == (Change(BEFORE), False)
    notes = []
    while (change := state.update(RENAMED)[0]).steps:
        notes.append(change.note.partition(":")[0])
    assert notes == ["step 1 of 3", "step 2 of 3", "step 3 of 3"]
    assert state.update(RENAMED) == (Change(RENAMED), False)


def test_another_checkout_goes_on_with_an_interrupted_step(state: State) -> None:
    state.update(BEFORE)
    state.update(RENAMED)
    begun, _ = state.update(RENAMED, ends=False)
    for _ in range(2):
        memory.forget(state.folder)
        again, _ = state.update(RENAMED, ends=False)
        assert again == begun and again.note.startswith("step 2 of 3")


def test_an_interrupted_step_is_taken_back_and_then_nothing_is_open(state: State) -> None:
    state.update(BEFORE)
    state.update(RENAMED, ends=False)
    assert len(recorded_changes(state.folder, NAME).running) == 2
    back, _ = state.update(BEFORE)
    assert [step.text for step in back.steps] == [
        "back to the listeners before the step that was interrupted"
    ]
    held = recorded_changes(state.folder, NAME)
    assert held.open == () and held.memory == ChangeMemory(complete=BEFORE)
    assert state.update(BEFORE) == (Change(BEFORE), False)


def test_before_the_first_proof_nothing_is_known(state: State) -> None:
    assert recorded_changes(state.folder, NAME) == RecordedChanges()
    state.update(BEFORE, ends=False)
    assert recorded_changes(state.folder, NAME).memory == ChangeMemory()
    assert Change.of(state.folder, RENAMED) == Change(RENAMED)
    assert not (state.folder / memory.FILE).exists(), "the copy says no more than the state"


def test_what_a_placement_adds_to_a_plan_is_a_change_of_its_own() -> None:
    one, other = (AppliedPlan(BEFORE, {"1": [{"host_port": port}]}) for port in (9092, 9192))
    held = RecordedChanges(covered=(one,), begun=(one,))
    assert held.begun_with(one) == (one,) and held.begun_with(other) == (other,)


def test_a_destroyed_stack_is_forgotten(state: State) -> None:
    state.update(BEFORE)
    props = state.resources[f"urn:earshot:index:ProvedChange::{NAME}"]["outputs"]
    Called(ProvedChangeKind()).delete(props)
    assert memory.recall(state.folder) == ChangeMemory()


def test_a_state_that_is_being_written_is_read_again(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.update(BEFORE)
    answers = pulumi.runtime.invoke
    fails = iter(["invoke failed: failed to load checkpoint: EOF"] * 2)

    def half_written(*asked: Any) -> Any:
        if reason := next(fails, None):
            raise RuntimeError(reason)
        return answers(*asked)

    monkeypatch.setattr(module, "_PAUSE_SECONDS", 0)
    monkeypatch.setattr(pulumi.runtime, "invoke", half_written)
    assert recorded_changes(state.folder, NAME).memory == ChangeMemory(complete=BEFORE)
    assert next(fails, None) is None


def test_a_state_that_stays_unreadable_stops_the_update(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def fails(*_: Any) -> Any:
        asked.append(True)
        raise RuntimeError("failed to load checkpoint: unexpected end of JSON input")

    monkeypatch.setattr(module, "_PAUSE_SECONDS", 0)
    monkeypatch.setattr(pulumi.runtime, "invoke", fails)
    with pytest.raises(EarshotError, match="cannot be read"):
        recorded_changes(state.folder, NAME)
    assert len(asked) == module._READS


def test_a_state_that_cannot_be_read_stops_the_update(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise RuntimeError("no backend")

    monkeypatch.setattr(pulumi.runtime, "invoke", fails)
    assert str(raised(EarshotError, recorded_changes, state.folder, NAME)) == (
        "stack organization/project/stack: its state cannot be read (no backend)\n"
        "  fix: see that the backend of `pulumi whoami --verbose` answers, then run again"
    )


def test_what_brokers_run_goes_before_what_the_state_has(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state that was put back from a copy: the brokers run a later plan."""
    state = State(folder, monkeypatch)
    state.update(BEFORE)
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", said.append)
    observed = {node.id: annotated(RENAMED, node) for node in RENAMED.nodes}
    held = recorded_changes(folder, NAME)
    agreed = {node.id: annotated(BEFORE, node) for node in BEFORE.nodes}
    assert held.with_plans(correct_memory(folder, BEFORE, agreed)) is held and said == []
    found = held.with_plans(correct_memory(folder, BEFORE, observed))
    assert len(said) == 1 and said[0].startswith("nodes 1 to 3 run other listeners")
    assert memory.recall(folder) == ChangeMemory(complete=RENAMED)
    assert found.memory == ChangeMemory(complete=RENAMED)
    assert found.running == (AppliedPlan(RENAMED, {"1": [{"host_port": 9092.0}]}),)
    change = Change.of(folder, BEFORE)
    assert len(change.steps) == 3, "and not none, as by the state alone"
    assert found.begun_with(AppliedPlan(change.plan, {}))[-1].plan == change.plan
