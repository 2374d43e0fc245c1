"""The change of a stack: the next plan to apply, and the remaining steps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from earshot.listeners.model import NOT_KNOWN, ClusterPlan, Listener, Node
from earshot.transition.memory import recall
from earshot.transition.steps import Step, leaving, transition


@dataclass(frozen=True)
class Change:
    """The steps from the running plan to ``target``."""

    target: ClusterPlan
    steps: tuple[Step, ...] = ()
    """The remaining steps; empty if ``target`` runs or the running plan is unknown."""
    done: int = 0
    """Number of completed steps."""

    @classmethod
    def of(cls, folder: Path, target: ClusterPlan) -> Change:
        """The change to ``target`` from the plan recorded in the stack's ``folder``.

        Raises EarshotError if no order of steps leads running brokers to ``target``.
        """
        memory = recall(folder)
        if memory.complete is None:
            return cls(target)
        target = _with_known_hosts(target, memory.complete)
        return cls(target, transition(memory.complete, target, memory.begun), memory.done)

    @property
    def plan(self) -> ClusterPlan:
        """The plan to apply next."""
        return self.steps[0].plan if self.steps else self.target

    @property
    def leaving(self) -> frozenset[str]:
        """Listeners of the next plan that a later step removes, or gives another protocol."""
        return leaving(self.plan, self.target)

    @property
    def done_after(self) -> int:
        """Number of completed steps after the next one; 0 if it is the last."""
        return self.done + 1 if len(self.steps) > 1 else 0

    @property
    def lines(self) -> tuple[str, ...]:
        """A line per remaining step; empty for a change of a single step."""
        step_count = self.done + len(self.steps)
        if step_count < 2:
            return ()
        return tuple(
            f"step {number} of {step_count}: {step.text}"
            for number, step in enumerate(self.steps, start=self.done + 1)
        )

    @property
    def note(self) -> str:
        """The next step, and whether another follows; empty for a change of a single step."""
        if not self.lines:
            return ""
        return self.lines[0] + ("; run again" if len(self.lines) > 1 else "")


def _with_known_hosts(target: ClusterPlan, running_plan: ClusterPlan) -> ClusterPlan:
    """``target`` with the hosts of ``running_plan`` in place of hosts that only an update knows."""
    hosts = {
        (node.id, listener.name): listener.host
        for node in running_plan.nodes
        for listener in node.listeners
    }

    def with_known_host(node: Node, listener: Listener) -> Listener:
        host = hosts.get((node.id, listener.name))
        if host is None or not str(listener.host).endswith(NOT_KNOWN):
            return listener
        return listener.model_copy(update={"host": host})

    nodes = [
        node.model_copy(
            update={
                "listeners": tuple(with_known_host(node, listener) for listener in node.listeners)
            }
        )
        for node in target.nodes
    ]
    return target.model_copy(update={"nodes": tuple(nodes)})
