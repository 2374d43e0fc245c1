"""`python -m tests.topologies --seed 1 --count 1000`: judge the model by random topologies."""

import argparse
import contextlib
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.e2e.docker_engine import WANTED
from tests.topologies.compare import Outcome, compared, text_of
from tests.topologies.engine import Judge, judge
from tests.topologies.generate import Topology, topology
from tests.topologies.kafka import compared_with_kafka, kafka_topology
from tests.topologies.two_hosts import compared_on_two, names_of, two_hosts

AT_ONCE = 8
KAFKA_AT_ONCE = 3
TWO_HOSTS_EVERY = 8
"""Of so many seeds one is a topology on two Docker hosts."""
SHOWN = 12
Judged = tuple[Sequence[Topology], Outcome]
"""The topology, or those of both hosts."""


def main() -> int:
    """0 where no hop was predicted wrongly."""
    parser = argparse.ArgumentParser(prog="python -m tests.topologies")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--kafka", action="store_true", help="with real brokers and clients")
    parser.add_argument("--two-hosts", action="store_true", help="all on two Docker hosts")
    parser.add_argument("--keep", type=Path, help="a folder for topologies that differ")
    options = parser.parse_args()
    os.environ.setdefault(WANTED, "1")

    total, wrong, began = Outcome(), 0, time.monotonic()
    with _judges(options.kafka) as judges:
        every = 1 if options.two_hosts else TWO_HOSTS_EVERY
        at_once = KAFKA_AT_ONCE if options.kafka else AT_ONCE
        for start in range(options.seed, options.seed + options.count, at_once):
            seeds = range(start, min(start + at_once, options.seed + options.count))
            judged = _with_kafka(judges[0], seeds) if options.kafka else _run(judges, seeds, every)
            for topologies, outcome in judged:
                total.agreed += outcome.agreed
                total.unknown += outcome.unknown
                if outcome.differences:
                    wrong += 1
                    _show(topologies[0].seed, outcome)
                    for number, item in enumerate(topologies if options.keep else (), 1):
                        (options.keep / f"{item.seed}.{number}.yaml").write_text(text_of(item))
            done = seeds[-1] - options.seed + 1
            took = f"{time.monotonic() - began:.0f} s"
            print(f"{done} of {options.count}, {wrong} differ, {took}", file=sys.stderr, flush=True)
    print(f"seeds {options.seed} to {options.seed + options.count - 1}, "
          f"{time.monotonic() - began:.0f} s: {wrong} topologies differ")  # fmt: skip
    print("agreed:", dict(total.agreed))
    print("not known:", *_lines(total.unknown), sep="\n  ")
    return 1 if wrong else 0


@contextlib.contextmanager
def _judges(with_kafka: bool) -> Iterator[list[Judge]]:
    """A judge on each of two Docker hosts; with real brokers on one."""
    from tests.e2e.docker_hosts import docker_network
    from tests.e2e.images.load import client_image, kafka_image

    with docker_network() as network, contextlib.ExitStack() as stack:
        hosts = [network.host() for _ in range(1 if with_kafka else 2)]
        names = {} if with_kafka else names_of((hosts[0].address, hosts[1].address))
        yield [
            stack.enter_context(
                judge(
                    host,
                    client_image(host.engine),
                    kafka_image(host.engine) if with_kafka else "",
                    names=names,
                )
            )
            for host in hosts
        ]


def _run(judges: Sequence[Judge], seeds: Sequence[int], every: int) -> Iterator[Judged]:
    """One of ``every`` seeds on both hosts, the others on the first."""
    first, second = judges
    machines = (first.host.address, second.host.address)
    slots = {seed: slot for slot, seed in enumerate(seeds)}
    single = [seed for seed in seeds if seed % every]
    drawn = [topology(it, machines[0], slots[it]) for it in single]
    pairs = [two_hosts(it, machines, slots[it]) for it in seeds if it not in single]
    with (
        first.running([*drawn, *(pair[0] for pair in pairs)]) as here,
        second.running([pair[1] for pair in pairs]) as there,
        ThreadPoolExecutor(len(seeds)) as pool,
    ):
        alone, both = here[: len(drawn)], zip(here[len(drawn) :], there, strict=True)
        outcomes = [*pool.map(compared, alone), *pool.map(compared_on_two, both)]
    yield from zip([*((it,) for it in drawn), *pairs], outcomes, strict=True)


def _with_kafka(made: Judge, seeds: Sequence[int]) -> Iterator[Judged]:
    drawn = [kafka_topology(it, made.host.address, slot) for slot, it in enumerate(seeds)]
    with made.running(drawn) as running, ThreadPoolExecutor(len(seeds)) as pool:
        yield from zip([(it,) for it in drawn], pool.map(compared_with_kafka, running), strict=True)


def _show(seed: int, outcome: Outcome) -> None:
    print(f"seed {seed}:", *outcome.differences[:SHOWN], sep="\n  ", flush=True)


def _lines(unknown: Counter[str]) -> list[str]:
    return [f"{count} {fact}" for fact, count in unknown.most_common()]


if __name__ == "__main__":
    raise SystemExit(main())
