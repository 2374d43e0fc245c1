"""`python -m tests.topologies --seed 1 --count 1000`: judge the model by random topologies."""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.e2e.docker_engine import WANTED
from tests.topologies.compare import Outcome, compared, text_of
from tests.topologies.engine import judge
from tests.topologies.generate import topology
from tests.topologies.kafka import compared_with_kafka, kafka_topology

AT_ONCE = 8
KAFKA_AT_ONCE = 3
SHOWN = 12


def main() -> int:
    """0 where no hop was predicted wrongly."""
    parser = argparse.ArgumentParser(prog="python -m tests.topologies")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--kafka", action="store_true", help="with real brokers and clients")
    parser.add_argument("--keep", type=Path, help="a folder for topologies that differ")
    options = parser.parse_args()
    os.environ.setdefault(WANTED, "1")
    from tests.e2e.docker_hosts import docker_network
    from tests.e2e.images.load import client_image, kafka_image

    draw, compare = (kafka_topology, compared_with_kafka) if options.kafka else (topology, compared)
    at_once = KAFKA_AT_ONCE if options.kafka else AT_ONCE

    total, wrong, began = Outcome(), 0, time.monotonic()
    with docker_network() as network:
        host = network.host()
        kafka = kafka_image(host.engine) if options.kafka else ""
        with judge(host, client_image(host.engine), kafka) as made:
            for start in range(options.seed, options.seed + options.count, at_once):
                seeds = range(start, min(start + at_once, options.seed + options.count))
                drawn = [draw(it, host.address, slot) for slot, it in enumerate(seeds)]
                with made.running(drawn) as running, ThreadPoolExecutor(at_once) as pool:
                    for item, outcome in zip(running, pool.map(compare, running), strict=True):
                        total.agreed += outcome.agreed
                        total.unknown += outcome.unknown
                        if outcome.differences:
                            wrong += 1
                            _show(item.topology.seed, outcome)
                            if options.keep:
                                path = options.keep / f"{item.topology.seed}.yaml"
                                path.write_text(text_of(item.topology))
                done = seeds[-1] - options.seed + 1
                took = f"{time.monotonic() - began:.0f} s"
                print(
                    f"{done} of {options.count}, {wrong} differ, {took}",
                    file=sys.stderr,
                    flush=True,
                )
    print(f"seeds {options.seed} to {options.seed + options.count - 1}, "
          f"{time.monotonic() - began:.0f} s: {wrong} topologies differ")  # fmt: skip
    print("agreed:", dict(total.agreed))
    print("not known:", *_lines(total.unknown), sep="\n  ")
    return 1 if wrong else 0


def _show(seed: int, outcome: Outcome) -> None:
    print(f"seed {seed}:", *outcome.differences[:SHOWN], sep="\n  ", flush=True)


def _lines(unknown: Counter[str]) -> list[str]:
    return [f"{count} {fact}" for fact, count in unknown.most_common()]


if __name__ == "__main__":
    raise SystemExit(main())
