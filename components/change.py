"""The memory of a stack's changes as a resource: written once a change is made and proved."""

from __future__ import annotations

from pathlib import Path

import pulumi
from pulumi.dynamic import DiffResult, ReadResult, Resource

from components.dynamic import Props, Provider, here
from components.outputs import kept
from earshot.listeners.model import ClusterPlan
from earshot.transition import memory
from earshot.transition.change import Change


class CompleteChangeProvider(Provider):
    """Remembers the plan that every node has got."""

    ID = "complete"
    DECISIVE = ("plan", "done")

    def diff(self, _id: str, olds: Props, news: Props) -> DiffResult:
        begun = memory.recall(here(news["state_dir"])).begun
        # a step that was taken back ends with the plan before it, and is over all the same
        return DiffResult(changes=self.differs(olds, news) or bool(begun))

    def made(self, _olds: Props, news: Props) -> Props:
        plan = ClusterPlan.model_validate(news["plan"])
        memory.complete(here(news["state_dir"]), plan, int(news["done"]))
        return news

    def read(self, id_: str, props: Props) -> ReadResult:
        if memory.recall(here(props["state_dir"])).complete:
            return ReadResult(id_, props)
        return ReadResult("", {})  # lost: the next update, which proves what runs, writes it again

    def delete(self, _id: str, props: Props) -> None:
        memory.forget(here(props["state_dir"]))


class CompleteChange(Resource, module="earshot", name="CompleteChange"):
    """The last change that every broker has made and that was proved."""

    def __init__(
        self, name: str, change: Change, state_dir: Path, opts: pulumi.ResourceOptions
    ) -> None:
        plan, done = kept(change.plan), change.done_after
        props = {"plan": plan, "done": done, "state_dir": str(state_dir)}
        super().__init__(CompleteChangeProvider(), name, props, opts)
