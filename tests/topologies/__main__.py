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
from tests.topologies.compare import Outcome, compare_with_model, text_of
from tests.topologies.engine import Judge, judge
from tests.topologies.generate import Topology, topology
from tests.topologies.kafka import compare_with_kafka, kafka_topology
from tests.topologies.two_hosts import compare_on_two, names_of, two_hosts
from toolchain.command import end_on_sigterm

AT_ONCE = 8
KAFKA_AT_ONCE = 3
TWO_HOSTS_EVERY = 8
"""One of this many seeds is a topology on two Docker hosts."""
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
    end_on_sigterm()
    os.environ.setdefault(WANTED, "1")

    total, wrong_count, start_time = Outcome(), 0, time.monotonic()
    with _judges(options.kafka) as judges:
        two_hosts_step = 1 if options.two_hosts else TWO_HOSTS_EVERY
        at_once = KAFKA_AT_ONCE if options.kafka else AT_ONCE
        for start in range(options.seed, options.seed + options.count, at_once):
            seeds = range(start, min(start + at_once, options.seed + options.count))
            judged_topologies = (
                _with_kafka(judges[0], seeds)
                if options.kafka
                else _run(judges, seeds, two_hosts_step)
            )
            for topologies, outcome in judged_topologies:
                total.agreed += outcome.agreed
                total.unknown += outcome.unknown
                if outcome.differences:
                    wrong_count += 1
                    _show(topologies[0].seed, outcome)
                    for number, drawn_topology in enumerate(topologies if options.keep else (), 1):
                        (options.keep / f"{drawn_topology.seed}.{number}.yaml").write_text(
                            text_of(drawn_topology)
                        )
            done_count = seeds[-1] - options.seed + 1
            elapsed = f"{time.monotonic() - start_time:.0f} s"
            print(
                f"{done_count} of {options.count}, {wrong_count} differ, {elapsed}",
                file=sys.stderr,
                flush=True,
            )
    print(f"seeds {options.seed} to {options.seed + options.count - 1}, "
          f"{time.monotonic() - start_time:.0f} s: {wrong_count} topologies differ")  # fmt: skip
    print("agreed:", dict(total.agreed))
    print("not known:", *_lines(total.unknown), sep="\n  ")
    return 1 if wrong_count else 0


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


def _run(judges: Sequence[Judge], seeds: Sequence[int], two_hosts_step: int) -> Iterator[Judged]:
    """Runs one of ``two_hosts_step`` seeds on both hosts, and the others on the first."""
    first_judge, second_judge = judges
    machines = (first_judge.host.address, second_judge.host.address)
    slots = {seed: slot for slot, seed in enumerate(seeds)}
    single_seeds = [seed for seed in seeds if seed % two_hosts_step]
    single_topologies = [topology(seed, machines[0], slots[seed]) for seed in single_seeds]
    pairs = [two_hosts(seed, machines, slots[seed]) for seed in seeds if seed not in single_seeds]
    with (
        first_judge.running([*single_topologies, *(pair[0] for pair in pairs)]) as running_on_first,
        second_judge.running([pair[1] for pair in pairs]) as running_on_second,
        ThreadPoolExecutor(len(seeds)) as pool,
    ):
        on_first_host, on_two_hosts = (
            running_on_first[: len(single_topologies)],
            zip(running_on_first[len(single_topologies) :], running_on_second, strict=True),
        )
        outcomes = [
            *pool.map(compare_with_model, on_first_host),
            *pool.map(compare_on_two, on_two_hosts),
        ]
    yield from zip([*((seed,) for seed in single_topologies), *pairs], outcomes, strict=True)


def _with_kafka(host_judge: Judge, seeds: Sequence[int]) -> Iterator[Judged]:
    topologies = [
        kafka_topology(seed, host_judge.host.address, slot) for slot, seed in enumerate(seeds)
    ]
    with host_judge.running(topologies) as running, ThreadPoolExecutor(len(seeds)) as pool:
        yield from zip(
            [(seed,) for seed in topologies], pool.map(compare_with_kafka, running), strict=True
        )


def _show(seed: int, outcome: Outcome) -> None:
    print(f"seed {seed}:", *outcome.differences[:SHOWN], sep="\n  ", flush=True)


def _lines(unknown: Counter[str]) -> list[str]:
    return [f"{count} {fact}" for fact, count in unknown.most_common()]


if __name__ == "__main__":
    raise SystemExit(main())
