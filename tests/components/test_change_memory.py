"""The changes of a stack in Pulumi's state, from one update to the next."""

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
from earshot_pulumi.validation import UNPROVED

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
def folder(project: Path) -> Path:
    return project / ".earshot" / "stacks" / "s"


def plain(applied: AppliedPlan) -> dict[str, Any]:
    """``applied`` as in Pulumi's state."""
    return {"plan": applied.plan.model_dump(mode="json"), "own": dict(applied.own)}


class State:
    """The resources of a stack, as updates leave them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.resources: dict[str, Any] = {"urn:other": {"type": "other", "outputs": {"plan": 1}}}
        for name in ("organization", "project", "stack"):
            monkeypatch.setattr(pulumi, f"get_{name}", lambda name=name: name)
        monkeypatch.setattr(pulumi.runtime, "invoke", self._invoke)

    def _invoke(self, token: str, args: dict[str, Any]) -> Any:
        assert token == "pulumi:pulumi:readStackResourceOutputs"
        assert args == {"stackName": "organization/project/stack"}
        return SimpleNamespace(value={"outputs": self.resources})

    def update(self, plan: ClusterPlan, *, ends: bool = True) -> tuple[Change, bool]:
        """The change of an update, and whether it changes one of the two resources."""
        recorded = recorded_changes(self.folder, NAME)
        change = Change.of(self.folder, plan)
        begun = recorded.begun_with(AppliedPlan(change.plan, {"1": [{"host_port": 9092.0}]}))
        assert begun[-1].plan == change.plan
        props = {"state_dir": str(self.folder), "begun": list(map(plain, begun))}
        changed = self._make(Called(BegunChangeKind()), "earshot:index:BegunChange", props)
        if ends:
            proved = props | {"done": float(change.done_after)}
            changed |= self._make(Called(ProvedChangeKind()), "earshot:index:ProvedChange", proved)
            assert memory.recall(self.folder).complete == change.plan
        else:
            recalled = memory.recall(self.folder)
            assert change.plan in (recalled.complete, *recalled.begun)
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
        repeated, _ = state.update(RENAMED, ends=False)
        assert repeated == begun and repeated.note.startswith("step 2 of 3")


def test_an_interrupted_step_is_taken_back_and_then_nothing_is_open(state: State) -> None:
    state.update(BEFORE)
    state.update(RENAMED, ends=False)
    assert len(recorded_changes(state.folder, NAME).running) == 2
    change, _ = state.update(BEFORE)
    assert [step.text for step in change.steps] == [
        "back to the listeners before the step that was interrupted"
    ]
    recorded = recorded_changes(state.folder, NAME)
    assert recorded.open == () and recorded.memory == ChangeMemory(complete=BEFORE)
    assert state.update(BEFORE) == (Change(BEFORE), False)


def test_before_the_first_proof_nothing_is_known(state: State) -> None:
    assert recorded_changes(state.folder, NAME) == RecordedChanges()
    state.update(BEFORE, ends=False)
    assert recorded_changes(state.folder, NAME).memory == ChangeMemory()
    assert Change.of(state.folder, RENAMED) == Change(RENAMED)
    assert not (state.folder / memory.FILE).exists(), "the copy says no more than the state"


def test_what_a_placement_adds_to_a_plan_is_a_change_of_its_own() -> None:
    first, second = (AppliedPlan(BEFORE, {"1": [{"host_port": port}]}) for port in (9092, 9192))
    recorded = RecordedChanges(covered=(first,), begun=(first,))
    assert recorded.begun_with(first) == (first,) and recorded.begun_with(second) == (second,)


def test_a_destroyed_stack_is_forgotten(state: State) -> None:
    state.update(BEFORE)
    props = state.resources[f"urn:earshot:index:ProvedChange::{NAME}"]["outputs"]
    Called(ProvedChangeKind()).delete(props)
    assert memory.recall(state.folder) == ChangeMemory()


@pytest.fixture
def reads(state: State, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Errors of the next reads of the state; each read removes one."""
    state.update(BEFORE)
    answer = pulumi.runtime.invoke
    errors: list[str] = []

    def failing(*args: Any) -> Any:
        if errors:
            raise RuntimeError(errors.pop(0))
        return answer(*args)

    monkeypatch.setattr(module, "_PAUSE_SECONDS", 0)
    monkeypatch.setattr(pulumi.runtime, "invoke", failing)
    return errors


def test_a_half_written_state_is_read_again_and_stops_an_update_that_cannot_read_it(
    state: State, reads: list[str]
) -> None:
    reads += ["invoke failed: failed to load checkpoint: EOF"] * 2
    assert recorded_changes(state.folder, NAME).memory == ChangeMemory(complete=BEFORE)
    reads += ["failed to load checkpoint: unexpected end of JSON input"] * (module._READS + 1)
    with pytest.raises(EarshotError, match="cannot be read"):
        recorded_changes(state.folder, NAME)
    assert len(reads) == 1


def test_a_state_without_a_backend_stops_the_update(state: State, reads: list[str]) -> None:
    reads.append("no backend")
    assert str(raised(EarshotError, recorded_changes, state.folder, NAME)) == (
        "stack organization/project/stack: its state cannot be read (no backend)\n"
        "  fix: check that the backend of `pulumi whoami --verbose` answers, then run it again"
    )


def test_the_plan_that_brokers_run_is_preferred_to_that_of_the_state(
    state: State, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state was restored from a copy: the brokers run a later plan."""
    state.update(BEFORE)
    warnings: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", warnings.append)
    observed = {node.id: annotated(RENAMED, node) for node in RENAMED.nodes}
    recorded = recorded_changes(folder, NAME)
    agreed = {node.id: annotated(BEFORE, node) for node in BEFORE.nodes}
    assert (
        recorded.with_plans(correct_memory(folder, BEFORE, agreed)) is recorded and warnings == []
    )
    corrected = recorded.with_plans(correct_memory(folder, BEFORE, observed))
    assert len(warnings) == 1 and warnings[0].startswith("nodes 1 to 3 run other listeners")
    assert memory.recall(folder) == ChangeMemory(complete=RENAMED)
    assert corrected.memory == ChangeMemory(complete=RENAMED)
    assert corrected.running == (AppliedPlan(RENAMED, {"1": [{"host_port": 9092.0}]}),)
    change = Change.of(folder, BEFORE)
    assert len(change.steps) == 3, "and not none, as by the state alone"
    assert corrected.begun_with(AppliedPlan(change.plan, {}))[-1].plan == change.plan


BEGUN = "earshot:index:BegunChange"


@pytest.mark.parametrize(
    ("stack", "name", "records", "former_stack"),
    [
        ("new", "new", [], ""),
        ("new", "new", ["new"], ""),
        ("new", "new-kafka", ["new"], ""),
        ("new", "new", ["new-kafka"], ""),
        ("new", "new", ["old"], "old"),
        ("new", "new-kafka", ["old-kafka", "old-other"], "old"),
        ("new", "new", ["new", "old"], ""),
    ],
)
def test_a_renamed_stack_is_refused_before_its_cluster_is_made_again(
    stack: str, name: str, records: list[str], former_stack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Instances, volumes and folders have the stack's name, and data would go with the former."""
    monkeypatch.setattr(pulumi, "get_stack", lambda: stack)
    state = {f"urn::{each}": {"type": BEGUN, "outputs": {}} for each in records}
    if not former_stack:
        module.check_renamed(name, state)
        return
    error = str(raised(EarshotError, module.check_renamed, name, state))
    assert error.startswith("nothing was changed: the stack was renamed: its state has the cluster")
    assert f"`pulumi stack rename {former_stack}`" in error


def test_a_change_without_a_validation_is_not_recorded_as_proved(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = State(folder, monkeypatch)
    state.update(BEFORE)
    proved = state.resources[f"urn:earshot:index:ProvedChange::{NAME}"]["outputs"]
    state.update(RENAMED, ends=False)
    begun = state.resources[f"urn:earshot:index:BegunChange::{NAME}"]["outputs"]
    changed = {**proved, "begun": begun["begun"]}
    kind = Called(ProvedChangeKind())
    assert kind.differs(proved, {**changed, "verdict": "pass"})
    unproved = {**changed, "verdict": UNPROVED}
    assert not kind.differs(proved, unproved)
    assert "was not validated in this update" in str(raised(EarshotError, kind.create, unproved))
    assert memory.recall(folder).complete == BEFORE
