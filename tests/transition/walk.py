"""Random pairs of plans, taken through every restart: `python -m tests.transition.walk`."""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan
from earshot.transition.steps import transition
from tests.transition.pairs import changes
from tests.transition.restarts import Broker, brokers, clients_of, mixtures, roll

REFUSED = 0
"""Instead of a number of steps."""

Way = Sequence[ClusterPlan]
Order = Callable[[Way], Way]


def as_given(way: Way) -> Way:
    return way


def walked(chance: random.Random, order: Order = as_given) -> tuple[int, list[str]]:
    """The number of steps for a random pair, and the problems on the way.

    One of the steps is interrupted, and then continued, reverted, or followed by another change.
    ``order`` may change the order of the steps.
    """
    current, wanted, instead = changes(chance)
    try:
        steps = transition(current, wanted)
    except EarshotError:
        return REFUSED, []
    way = order([step.plan for step in steps])
    clients = clients_of(current, wanted)
    problems = [] if not way or way[-1] == wanted else ["the last step is not what is wanted"]
    before = current
    for plan in way:
        problems += roll(brokers(before), plan, clients, chance)
        before = plan
    if way:
        at = chance.randrange(len(way))
        goals = [current, wanted, instead]
        for goal in goals:
            problems += interrupted([current, *way][at], way[at], [goal], chance)
        chance.shuffle(goals)
        problems += interrupted([current, *way][at], way[at], goals, chance)
    return len(way), problems


def interrupted(
    before: ClusterPlan, begun: ClusterPlan, goals: Sequence[ClusterPlan], chance: random.Random
) -> list[str]:
    """The problems after some brokers were restarted with ``begun``, on the way to ``goals``.

    The first step to each of them but the last is interrupted too.
    """
    unfinished = [begun]
    state = _half(brokers(before), begun, chance)
    problems: list[str] = []
    for goal in goals:
        try:
            steps = transition(before, goal, unfinished)
        except EarshotError:
            # nothing is touched, and what ran before must still be reached
            steps, goal = transition(before, before, unfinished), before
        clients = clients_of(before, *unfinished, goal)
        if goal is not goals[-1] and steps:
            problems += roll(state, steps[0].plan, clients, chance)
            state = _half(state, steps[0].plan, chance)
            unfinished.append(steps[0].plan)
            continue
        for step in steps:
            problems += roll(state, step.plan, clients, chance)
            state = brokers(step.plan)
        if state != brokers(goal):
            problems.append("an interrupted change does not end as it is wanted")
        before, unfinished = goal, []
    return problems


def _half(
    state: Mapping[int, Broker], plan: ClusterPlan, chance: random.Random
) -> dict[int, Broker]:
    """After restarts of some brokers with ``plan``."""
    new = brokers(plan)
    chosen = chance.choice(list(mixtures(sorted(new), chance)))
    return {id: it for id, it in state.items() if id in new} | {id: new[id] for id in chosen}


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
        steps, problems = walked(random.Random(f"{options.seed}/{number}"))
        counted[steps] += 1
        if problems:
            bad += 1
            print(f"pair {number}: {'; '.join(problems[:3])}", flush=True)
    reported = ", ".join(
        f"{count} {'refused' if steps == REFUSED else f'in {steps} step(s)'}"
        for steps, count in sorted(counted.items())
    )
    print(f"{options.pairs} pairs in {time.monotonic() - began:.0f} s: {reported}; {bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
