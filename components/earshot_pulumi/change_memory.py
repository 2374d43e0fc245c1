"""The memory of a stack's changes: in this checkout's files, and in the stack's Pulumi state.

Both are written before the first node is touched and after the proof. Where brokers run on other
machines, the state counts: every checkout that shares it reads the same, and goes on with a step
that another one has begun. For brokers of this machine the files count.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pulumi

from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan
from earshot.listeners.properties import NodeSettings
from earshot.transition import memory
from earshot.transition.change import Change
from earshot.transition.memory import ChangeMemory
from earshot.transition.observed import corrected
from earshot_pulumi.outputs import kept
from earshot_pulumi.properties import here
from earshot_pulumi.provider.internal import InternalKind, InternalResource, types_of
from earshot_pulumi.provider.kind import Operation, Properties

_READ: Final = "pulumi:pulumi:readStackResourceOutputs"
"""A function of the engine's own: all resources of a stack as its last checkpoint has them."""
_HALF_WRITTEN: Final = "failed to load checkpoint"
"""What the engine says where it reads a state in files while it writes it: the attributes beside a
checkpoint are emptied, then written (gocloud.dev, blob/fileblob/attrs.go)."""
_READS: Final = 10
_PAUSE_SECONDS: Final = 0.2


@dataclass(frozen=True)
class Made:
    """A plan that nodes may run, and what else its placement must know to make it again."""

    plan: ClusterPlan
    own: Mapping[str, Any]

    @classmethod
    def from_props(cls, props: Properties) -> Made:
        return cls(ClusterPlan.model_validate(props["plan"]), props["own"])

    def to_props(self) -> Properties:
        return {"plan": kept(self.plan), "own": dict(self.own)}


@dataclass(frozen=True)
class HeldChanges:
    """What a stack's state holds of its changes."""

    done: int = 0
    """Steps of a longer change that are complete."""
    covered: tuple[Made, ...] = ()
    """Changes begun before the last proof, which completed them; the last of them was proved."""
    begun: tuple[Made, ...] = ()
    """Changes begun since the last proof; if there are none, those begun before it."""

    @classmethod
    def read(cls, resources: Mapping[str, Mapping[str, Any]], name: str) -> HeldChanges:
        """Of the cluster with the full ``name``, from the stack's ``resources``, by their URN."""
        own = (item for urn, item in resources.items() if urn.rpartition("::")[2] == name)
        outputs = {item["type"]: item["outputs"] for item in own}
        known = _first(outputs, "BegunChange") or {}
        begun = tuple(map(Made.from_props, known.get("begun", ())))
        if (found := _first(outputs, "ProvedChange")) is None:
            return cls(begun=begun)
        covered = tuple(map(Made.from_props, found["begun"]))
        return cls(int(found["done"]), covered, begun)

    @property
    def proved(self) -> Made | None:
        return self.covered[-1] if self.covered else None

    @property
    def open(self) -> tuple[Made, ...]:
        """What was begun and not proved: some nodes may run any of it."""
        return () if self.begun == self.covered else self.begun

    @property
    def running(self) -> tuple[Made, ...]:
        """All that nodes may run, what was proved at first."""
        return (*((self.proved,) if self.proved else ()), *self.open)

    @property
    def memory(self) -> ChangeMemory:
        if self.proved is None:
            return ChangeMemory()
        complete = self.proved.plan
        begun = dict.fromkeys(item.plan for item in self.open if item.plan != complete)
        return ChangeMemory(complete=complete, begun=tuple(begun), done=self.done)

    def by(self, corrected: ChangeMemory) -> HeldChanges:
        """The same where what is remembered was ``corrected`` by what nodes run with."""
        if corrected == self.memory or corrected.complete is None or self.proved is None:
            return self
        plans = (corrected.complete, *corrected.begun)
        # what no plan has, its placement keeps of the last one that was proved
        first, *rest = (self._made(plan, self.proved) for plan in plans)
        return HeldChanges(corrected.done, (first,), tuple(rest) or (first,))

    def _made(self, plan: ClusterPlan, proved: Made) -> Made:
        return next((it for it in self.running if it.plan == plan), Made(plan, proved.own))

    def beginning(self, next: Made) -> tuple[Made, ...]:
        """What will be begun once nodes are about to get ``next``."""
        if not self.open and self.proved == next:
            return self.begun  # it runs: nothing is begun, and nothing changes
        return (*(item for item in self.open if item != next), next)


def _first(outputs: Mapping[str, Any], name: str) -> Any:
    """The value in ``outputs`` under one of the types of the class ``name``, or None."""
    return next((outputs[it] for it in types_of(name) if it in outputs), None)


def as_it_runs(
    folder: Path, wanted: ClusterPlan, observed: Mapping[int, NodeSettings]
) -> ChangeMemory:
    """What is remembered in ``folder``, corrected by what nodes run with, which is kept and said.

    ``observed`` are the settings of running nodes by id. Raises EarshotError.
    """
    remembered = memory.recall(folder)
    found, note = corrected(remembered, wanted, observed)
    if note:
        pulumi.log.warn(note)
        memory.keep(folder, found)
    return found


def resources() -> Mapping[str, Mapping[str, Any]]:
    """By their URN, the resources in the state of the running program's stack, also when only
    previewed. Raises EarshotError."""
    name, owner = pulumi.get_stack(), pulumi.get_organization()
    if owner:
        name = f"{owner}/{pulumi.get_project()}/{name}"
    return _outputs(name)


def recalled(
    folder: Path, name: str, known: Mapping[str, Mapping[str, Any]] | None = None
) -> HeldChanges:
    """What the `resources` of the stack hold of the changes of the cluster with the full ``name``;
    ``known`` are these resources, where they were read already.

    Leaves a copy in ``folder``, the cluster's, for commands that ask no Pulumi. Raises
    EarshotError.
    """
    held = HeldChanges.read(resources() if known is None else known, name)
    if memory.recall(folder) != held.memory:
        memory.keep(folder, held.memory)
    return held


def _outputs(stack: str) -> Mapping[str, Mapping[str, Any]]:
    """The resources of ``stack`` by their URN; read again where the engine is writing just now."""
    for left in reversed(range(_READS)):
        try:
            answer = pulumi.runtime.invoke(_READ, {"stackName": stack}).value or {}
            break
        except Exception as reason:
            if not left or _HALF_WRITTEN not in str(reason):
                raise EarshotError(
                    f"stack {stack}",
                    observed=f"its state cannot be read ({reason})",
                    remedy="see that the backend of `pulumi whoami --verbose` answers, then run "
                    "again",
                ) from None
        time.sleep(_PAUSE_SECONDS)
    found: Mapping[str, Mapping[str, Any]] = answer.get("outputs", {})
    return found


def _last(props: Properties) -> ClusterPlan:
    """The plan that was begun last."""
    return Made.from_props(props["begun"][-1]).plan


class BegunChangeKind(InternalKind):
    """Remembers plans that nodes are about to get."""

    ID = "begun"
    interrupted = "interrupted before a node was touched: the plan may be remembered as begun"
    DECISIVE = ("begun",)

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        # the state may be a copy that is older than what is remembered beside it
        plan, held = _last(news), memory.recall(here(news["state_dir"]))
        return super().differs(operation, olds, news) or not held.has(plan)

    def made(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        for item in news["begun"]:
            memory.begin(here(news["state_dir"]), Made.from_props(item).plan)
        return news


class BegunChange(InternalResource):
    """Is created before every node: from here on some may run another plan than the proved one."""

    def __init__(
        self, name: str, begun: tuple[Made, ...], state_dir: Path, opts: pulumi.ResourceOptions
    ) -> None:
        props = {"begun": [item.to_props() for item in begun], "state_dir": str(state_dir)}
        super().__init__(name, props, opts)


class ProvedChangeKind(InternalKind):
    """Remembers the plan that every node has got."""

    ID = "proved"
    interrupted = (
        "interrupted after the proof: all nodes have the new plan, which may not be remembered as "
        "proved; the next update proves it again"
    )
    DECISIVE = ("done", "begun")

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        # a step that was taken back ends with the plan before it, and is over all the same; and the
        # state may be older than what is remembered beside it, which may be lost
        wanted = ChangeMemory(complete=_last(news), done=int(news["done"]))
        is_other = memory.recall(here(news["state_dir"])) != wanted
        return super().differs(operation, olds, news) or is_other

    def made(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        memory.complete(here(news["state_dir"]), _last(news), int(news["done"]))
        return news

    def delete(self, operation: Operation, id: str, olds: Properties) -> None:
        memory.forget(here(olds["state_dir"]))


class ProvedChange(InternalResource):
    """The last change that every broker has made and that was proved."""

    FORMER_NAMES = ("ProvedChange", "CompleteChange")

    def __init__(
        self,
        name: str,
        change: Change,
        begun: tuple[Made, ...],
        state_dir: Path,
        opts: pulumi.ResourceOptions,
    ) -> None:
        """``begun`` ends with the plan of ``change``, and is over with the proof."""
        props = {
            "done": change.done_after,
            "begun": [item.to_props() for item in begun],
            "state_dir": str(state_dir),
        }
        super().__init__(name, props, opts)
