"""`earshot plan --against`: the steps from what a stack runs to what is wanted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from earshot.listeners.model import ClusterPlan
from earshot.report.terminal import Terminal
from earshot.transition.change import Change
from earshot.transition.memory import recall
from earshot.transition.rehearsal import Rehearsed, rehearsed


def describe(stack: str, state: Path, wanted: ClusterPlan, terminal: Terminal) -> str:
    """The steps as text, with what each costs and what every broker offers after it.

    ``state`` is the folder of ``stack``. Raises EarshotError where no order of steps is safe.
    """
    runs = recall(state).complete
    if runs is None:
        return (
            f"stack {stack}: nothing is remembered of what its brokers run, so that a change is "
            "not planned in steps\n"
        )
    change = Change.of(state, wanted)
    if not change.steps:
        return f"stack {stack}: its brokers run these listeners already\n"
    count = len(change.steps)
    head = "one step" if count == 1 else f"{count} steps, each by an update of its own"
    lines = [terminal.bold(f"stack {stack}: {head}")]
    titles = change.lines or (f"step 1 of 1: {change.steps[0].text}",)
    for title, step in zip(titles, rehearsed(runs, change.steps), strict=True):
        lines += ["", terminal.bold(title)]
        fields = list(_fields(step))
        width = max(len(label) for label, _ in fields)
        lines += [terminal.field(label, text, width) for label, text in fields]
    return "\n".join(lines) + "\n"


def _fields(step: Rehearsed) -> Iterator[tuple[str, str]]:
    yield "restarts", ", ".join(map(str, step.restarts)) or "none"
    yield "between brokers", step.through
    for scope, names in step.after.items():
        meanwhile = ", ".join(step.meanwhile.get(scope, ())) or "none reaches every broker"
        yield f"clients, {scope}", f"meanwhile {meanwhile}; after it {', '.join(names)}"
    for id, offers in step.offers.items():
        yield f"broker {id}", ", ".join(offers)
