"""The memory of a stack's changes as a resource: written once a change is made and proved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, UpdateResult

from components.outputs import kept
from components.owner import OwnedProvider
from earshot.listeners.model import ClusterPlan
from earshot.project import Project
from earshot.transition import memory
from earshot.transition.change import Change

Props = dict[str, Any]


class CompleteChangeProvider(OwnedProvider):
    """Remembers the plan that every node has got."""

    def diff(self, _id: str, olds: Props, news: Props) -> DiffResult:
        changed = any(olds.get(key) != news[key] for key in ("plan", "done"))
        # a step that was taken back ends with the plan before it, and is over all the same
        return DiffResult(changes=changed or bool(memory.recall(_folder(news)).begun))

    def create(self, props: Props) -> CreateResult:
        _complete(props)
        return CreateResult("complete", props)

    def update(self, _id: str, _olds: Props, news: Props) -> UpdateResult:
        _complete(news)
        return UpdateResult(news)

    def read(self, id_: str, props: Props) -> ReadResult:
        # lost with its file: the next update, which proves what runs, writes it again
        return (
            ReadResult(id_, props) if memory.recall(_folder(props)).complete else ReadResult("", {})
        )

    def delete(self, _id: str, props: Props) -> None:
        memory.forget(_folder(props))


class CompleteChange(Resource, module="earshot", name="CompleteChange"):
    """The last change that every broker has made and that was proved."""

    def __init__(
        self, name: str, change: Change, state_dir: Path, opts: pulumi.ResourceOptions
    ) -> None:
        props = {"plan": kept(change.plan), "done": change.done_after, "state_dir": str(state_dir)}
        super().__init__(CompleteChangeProvider(), name, props, opts)


def _complete(props: Props) -> None:
    plan = ClusterPlan.model_validate(props["plan"])
    memory.complete(_folder(props), plan, int(props["done"]))


def _folder(props: Props) -> Path:
    return Project.find().here(Path(props["state_dir"]))
