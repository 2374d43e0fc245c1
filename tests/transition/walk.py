"""Random pairs of plans, taken through every restart: `python -m tests.transition.walk`."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence

from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan
from earshot.transition.steps import transition
from tests.transition.pairs import changes
from tests.transition.restarts import brokers, clients_of, mixtures, roll

REFUSED = 0
"""Instead of a number of steps."""

Way = Sequence[ClusterPlan]
Order = Callable[[Way], Way]


def as_given(way: Way) -> Way:
    return way


def walked(chance: random.Random, order: Order = as_given) -> tuple[int, list[str]]:
    """The number of steps for a random pair, and what is wrong on the way.

    One of the steps is interrupted too; after that the same is wanted, or the old plan again, or
    something else. ``order`` may spoil the order of the steps.
    """
    current, wanted, instead = changes(chance)
    try:
        steps = transition(current, wanted)
    except EarshotError:
        return REFUSED, []
    way = order([step.plan for step in steps])
    clients = clients_of(current, wanted)
    found = [] if not way or way[-1] == wanted else ["the last step is not what is wanted"]
    before = current
    for plan in way:
        found += roll(brokers(before), plan, clients, chance)
        before = plan
    if way:
        at = chance.randrange(len(way))
        for goal in (current, wanted, instead):
            found += interrupted([current, *way][at], way[at], goal, chance)
    return len(way), found


def interrupted(
    before: ClusterPlan, begun: ClusterPlan, goal: ClusterPlan, chance: random.Random
) -> list[str]:
    """What is wrong after some brokers were restarted with ``begun``, and ``goal`` is wanted."""
    try:
        steps = transition(before, goal, begun)
    except EarshotError:
        # nothing is touched, and each of the two must still be reached
        steps = transition(before, before, begun)
        goal = before
    chosen = chance.choice(list(mixtures([node.id for node in begun.brokers], chance)))
    state = brokers(before) | {id: brokers(begun)[id] for id in chosen}
    clients = clients_of(before, begun, goal)
    found: list[str] = []
    for step in steps:
        found += roll(state, step.plan, clients, chance)
        state = brokers(step.plan)
    if state != brokers(goal) and (steps or before != goal):
        found.append("an interrupted change does not end as it is wanted")
    return found


def main(arguments: Sequence[str]) -> int:
    """The exit status: 1 where a pair passes a bad state."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    counted: Counter[int] = Counter()
    bad = 0
    began = time.monotonic()
    for number in range(options.pairs):
        steps, found = walked(random.Random(f"{options.seed}/{number}"))
        counted[steps] += 1
        if found:
            bad += 1
            print(f"pair {number}: {'; '.join(found[:3])}", flush=True)
    told = ", ".join(
        f"{count} {'refused' if steps == REFUSED else f'in {steps} step(s)'}"
        for steps, count in sorted(counted.items())
    )
    print(f"{options.pairs} pairs in {time.monotonic() - began:.0f} s: {told}; {bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
