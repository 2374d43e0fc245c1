"""The change that a stack is in: the next plan to apply, and what is left after it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from earshot.listeners.model import NOT_KNOWN, ClusterPlan, Listener, Node
from earshot.transition.memory import recall
from earshot.transition.steps import Step, leaving, transition


@dataclass(frozen=True)
class Change:
    """From what runs to ``wanted``."""

    wanted: ClusterPlan
    steps: tuple[Step, ...] = ()
    """What is left; empty where ``wanted`` runs, or nothing is known of what runs."""
    done: int = 0
    """Steps that are complete."""

    @classmethod
    def of(cls, folder: Path, wanted: ClusterPlan) -> Change:
        """By what is remembered in ``folder``, a stack's.

        Raises EarshotError where running brokers cannot get ``wanted`` in any order of steps.
        """
        memory = recall(folder)
        if memory.complete is None:
            return cls(wanted)
        wanted = _named(wanted, memory.complete)
        return cls(wanted, transition(memory.complete, wanted, memory.begun), memory.done)

    @property
    def plan(self) -> ClusterPlan:
        """What to apply next."""
        return self.steps[0].plan if self.steps else self.wanted

    @property
    def leaving(self) -> frozenset[str]:
        """The listeners of the next plan that a later step takes away, or gives other security."""
        return leaving(self.plan, self.wanted)

    @property
    def done_after(self) -> int:
        """Steps that are complete after the next one; 0 where it is the last."""
        return self.done + 1 if len(self.steps) > 1 else 0

    @property
    def lines(self) -> tuple[str, ...]:
        """What is left, a line per step; empty for a change that takes one step in all."""
        of = self.done + len(self.steps)
        if of < 2:
            return ()
        return tuple(
            f"step {number} of {of}: {step.text}"
            for number, step in enumerate(self.steps, start=self.done + 1)
        )

    @property
    def note(self) -> str:
        """What the next step does, and whether another follows; empty for a change of one step."""
        if not self.lines:
            return ""
        return self.lines[0] + ("; run again" if len(self.lines) > 1 else "")


def _named(wanted: ClusterPlan, running: ClusterPlan) -> ClusterPlan:
    """``wanted``, with the names in ``running`` of hosts that only an update knows."""
    known = {(node.id, it.name): it.host for node in running.nodes for it in node.listeners}

    def named(node: Node, item: Listener) -> Listener:
        host = known.get((node.id, item.name))
        if host is None or not str(item.host).endswith(NOT_KNOWN):
            return item
        return item.model_copy(update={"host": host})

    nodes = [
        node.model_copy(update={"listeners": tuple(named(node, it) for it in node.listeners)})
        for node in wanted.nodes
    ]
    return wanted.model_copy(update={"nodes": tuple(nodes)})
