"""Records of a stack's changes: in this checkout's files, and in the stack's Pulumi state.

earshot writes both records before it changes the first node, and again after the validation. On
docker and aws, Pulumi's state is decisive, so that every checkout continues a step that another one
has begun. On local, the files are.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pulumi

from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan
from earshot.listeners.properties import NodeSettings
from earshot.transition import memory
from earshot.transition.change import Change
from earshot.transition.memory import ChangeMemory
from earshot.transition.observed import corrected
from earshot_pulumi.outputs import plan_input
from earshot_pulumi.properties import here
from earshot_pulumi.provider.kind import Inputs, Kind, Operation, Outputs, Properties
from earshot_pulumi.provider.resource import InternalResource, outputs_of, types_of
from earshot_pulumi.validation import UNPROVED

_READ: Final = "pulumi:pulumi:readStackResourceOutputs"
"""A function of the engine: all resources in the last checkpoint of a stack."""
_HALF_WRITTEN: Final = "failed to load checkpoint"
"""The engine's error if it reads a state in files while it writes it: it empties a checkpoint's
attributes before it writes them (gocloud.dev, blob/fileblob/attrs.go)."""
_READS: Final = 10
_PAUSE_SECONDS: Final = 0.2


@dataclass(frozen=True)
class AppliedPlan:
    """A plan that nodes may run, and the placement's further data to apply it again."""

    plan: ClusterPlan
    own: Inputs
    """The placement's data, e.g. published ports."""

    @classmethod
    def from_props(cls, props: Properties) -> AppliedPlan:
        return cls(ClusterPlan.model_validate(props["plan"]), props["own"])

    def to_props(self) -> Properties:
        return {"plan": plan_input(self.plan), "own": dict(self.own)}


@dataclass(frozen=True)
class RecordedChanges:
    """The records of a cluster's changes in the stack's state."""

    done: int = 0
    """Number of completed steps of a longer change."""
    covered: tuple[AppliedPlan, ...] = ()
    """Plans that the last proof completed. The last entry is the proved plan."""
    begun: tuple[AppliedPlan, ...] = ()
    """Plans begun since the last proof. Equal to `covered` if none was begun."""

    @classmethod
    def read(cls, resources: Mapping[str, Outputs], name: str) -> RecordedChanges:
        """The records of the cluster with the full ``name``; ``resources`` are the stack's by
        URN."""
        begun_outputs = outputs_of(resources, *types_of("BegunChange")).get(name, {})
        begun = tuple(map(AppliedPlan.from_props, begun_outputs.get("begun", ())))
        if (proved := outputs_of(resources, *types_of("ProvedChange")).get(name)) is None:
            return cls(begun=begun)
        covered = tuple(map(AppliedPlan.from_props, proved["begun"]))
        return cls(int(proved["done"]), covered, begun)

    @property
    def proved(self) -> AppliedPlan | None:
        return self.covered[-1] if self.covered else None

    @property
    def open(self) -> tuple[AppliedPlan, ...]:
        """Plans that were begun and not proved; each node may run any of them."""
        return () if self.begun == self.covered else self.begun

    @property
    def running(self) -> tuple[AppliedPlan, ...]:
        """All plans that nodes may run; the proved one is first."""
        return (*((self.proved,) if self.proved else ()), *self.open)

    @property
    def memory(self) -> ChangeMemory:
        if self.proved is None:
            return ChangeMemory()
        proved_plan = self.proved.plan
        begun_plans = dict.fromkeys(
            applied.plan for applied in self.open if applied.plan != proved_plan
        )
        return ChangeMemory(complete=proved_plan, begun=tuple(begun_plans), done=self.done)

    def with_plans(self, corrected: ChangeMemory) -> RecordedChanges:
        """These records with the plans of ``corrected``, which come from the running nodes."""
        if corrected == self.memory or corrected.complete is None or self.proved is None:
            return self
        plans = (corrected.complete, *corrected.begun)
        # a plan without a record gets the placement's data of the proved one
        proved, *begun = (self._recorded(plan, self.proved) for plan in plans)
        return RecordedChanges(corrected.done, (proved,), tuple(begun) or (proved,))

    def _recorded(self, plan: ClusterPlan, proved: AppliedPlan) -> AppliedPlan:
        return next(
            (applied for applied in self.running if applied.plan == plan),
            AppliedPlan(plan, proved.own),
        )

    def begun_with(self, next: AppliedPlan) -> tuple[AppliedPlan, ...]:
        """The begun plans after ``next`` is added."""
        if not self.open and self.proved == next:
            return self.begun  # all nodes run it already
        return (*(applied for applied in self.open if applied != next), next)


def correct_memory(
    folder: Path,
    target: ClusterPlan,
    observed: Mapping[int, NodeSettings],
    has_served: bool = False,
) -> ChangeMemory:
    """Corrects the memory in ``folder`` by the ``observed`` settings of running nodes, by id.

    ``has_served`` is true for a cluster that must have a record. Logs and stores a correction.
    Raises EarshotError.
    """
    remembered = memory.recall(folder)
    corrected_memory, note = corrected(remembered, target, observed, has_served)
    if note:
        pulumi.log.warn(note)
        memory.keep(folder, corrected_memory)
    return corrected_memory


def resources() -> Mapping[str, Outputs]:
    """The resources in the state of the program's stack, by URN; also in a preview.

    Reads again while the engine writes the state. Raises EarshotError.
    """
    stack, owner = pulumi.get_stack(), pulumi.get_organization()
    if owner:
        stack = f"{owner}/{pulumi.get_project()}/{stack}"
    for attempts_left in reversed(range(_READS)):
        try:
            answer = pulumi.runtime.invoke(_READ, {"stackName": stack}).value or {}
            break
        except Exception as reason:
            if not attempts_left or _HALF_WRITTEN not in str(reason):
                raise EarshotError(
                    f"stack {stack}",
                    observed=f"its state cannot be read ({reason})",
                    remedy="check that the backend of `pulumi whoami --verbose` answers, then run "
                    "it again",
                ) from None
        time.sleep(_PAUSE_SECONDS)
    resources_by_urn: Mapping[str, Outputs] = answer.get("outputs", {})
    return resources_by_urn


def check_renamed(name: str, state_resources: Mapping[str, Outputs]) -> None:
    """Raises EarshotError if the state has no cluster with the full ``name``, but one that was made
    when the stack had another name.

    Its resources and data have the former name. The update would make all of them again, and delete
    the former ones.
    """
    names = outputs_of(state_resources, *types_of("BegunChange"), *types_of("ProvedChange"))
    stack = pulumi.get_stack()
    own_suffix = name.removeprefix(stack)  # a cluster of a program is called STACK-NAME
    former = sorted(
        each
        for each in names
        if each.endswith(own_suffix) and each != stack and not each.startswith(f"{stack}-")
    )
    if name in names or not former:
        return
    former_stack = former[0].removesuffix(own_suffix)
    raise EarshotError(
        "nothing was changed: the stack was renamed",
        observed=f"its state has the cluster {former[0]}, whose nodes and data have this name: the "
        f"update would make an empty cluster {name}, and delete {former[0]}",
        allowed=f"the name {former_stack}, which the stack had when the cluster was made",
        remedy=f"rename it back (`pulumi stack rename {former_stack}`); or make another stack, and "
        "mirror the data",
    )


def recorded_changes(
    folder: Path, name: str, state_resources: Mapping[str, Outputs] | None = None
) -> RecordedChanges:
    """The records of the cluster with the full ``name`` in the stack's state.

    ``state_resources`` are the result of `resources`, if it was read already. Writes a copy into
    the cluster's ``folder``, for commands that do not use Pulumi. Raises EarshotError.
    """
    known_resources = resources() if state_resources is None else state_resources
    check_renamed(name, known_resources)
    recorded = RecordedChanges.read(known_resources, name)
    if memory.recall(folder) != recorded.memory:
        memory.keep(folder, recorded.memory)
    return recorded


def _last_plan(props: Properties) -> ClusterPlan:
    """The last begun plan."""
    return AppliedPlan.from_props(props["begun"][-1]).plan


class BegunChangeKind(Kind):
    """Records plans that nodes are about to get."""

    ID = "begun"
    interrupted = "interrupted before a node was touched: the plan may be recorded as begun"
    OWNS = ("state_dir",)
    DECISIVE = ("begun",)

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        # the state may be an older copy than the files of this checkout
        plan, recorded = _last_plan(news), memory.recall(here(news["state_dir"]))
        return super().differs(operation, olds, news) or not recorded.has(plan)

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        for props in news["begun"]:
            memory.begin(here(news["state_dir"]), AppliedPlan.from_props(props).plan)
        return news


class BegunChange(InternalResource):
    """Created before the first node changes; from then on, a node may run a plan without proof."""


class ProvedChangeKind(Kind):
    """Records the plan that every node has."""

    ID = "proved"
    interrupted = (
        "interrupted after the proof: all nodes have the new plan, which may not be recorded as "
        "proved; the next update proves it again"
    )
    DECISIVE = ("done", "begun")
    OWNS = ("state_dir",)

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        if news.get("verdict") == UNPROVED:
            return False
        # the state may be older than the files, and the files may be lost; after a rollback the
        # earlier plan is complete
        expected = ChangeMemory(complete=_last_plan(news), done=int(news["done"]))
        is_other = memory.recall(here(news["state_dir"])) != expected
        return super().differs(operation, olds, news) or is_other

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        if news.get("verdict") == UNPROVED:
            raise EarshotError(
                "the change",
                observed="was not validated in this update",
                remedy="update without `--exclude` of the validation",
            )
        memory.complete(here(news["state_dir"]), _last_plan(news), int(news["done"]))
        return news

    def delete(self, operation: Operation, olds: Properties) -> None:
        memory.forget(here(olds["state_dir"]))


class ProvedChange(InternalResource):
    """The last change that every broker has made and the validation has proved."""

    FORMER_NAMES = ("ProvedChange", "CompleteChange")


@dataclass(frozen=True)
class ChangeRecords:
    """Creates the resources that record the next step of a ``change``."""

    name: str
    """The cluster's full name."""
    change: Change
    begun: tuple[AppliedPlan, ...]
    """Plans that the proof completes; the last one is that of ``change``."""
    state_dir: Path

    @property
    def _props(self) -> Properties:
        begun = [applied.to_props() for applied in self.begun]
        return {"begun": begun, "state_dir": str(self.state_dir)}

    def begin(self, opts: pulumi.ResourceOptions) -> BegunChange:
        """The record that must exist before the first node is touched."""
        return BegunChange(self.name, self._props, opts)

    def complete(self, verdict: pulumi.Input[str], opts: pulumi.ResourceOptions) -> ProvedChange:
        """The record after the proof. Nothing is recorded with the ``verdict`` `UNPROVED`."""
        props = {**self._props, "verdict": verdict, "done": self.change.done_after}
        return ProvedChange(self.name, props, opts)
