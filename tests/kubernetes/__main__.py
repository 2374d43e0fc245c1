"""`python -m tests.kubernetes --seed 1 --count 300`: judge the model by random manifests."""

import argparse
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.kubernetes import parts
from tests.kubernetes.compare import compare_with_model
from tests.kubernetes.generate import topology
from tests.kubernetes.judge import AT_ONCE, judge
from tests.topologies.compare import Outcome
from toolchain.command import end_on_sigterm

SHOWN = 12
MODES = ("iptables", "nftables")


def main() -> int:
    """0 where no hop was predicted wrongly; 2 where no cluster can be started."""
    parser = argparse.ArgumentParser(prog="python -m tests.kubernetes")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--mode", choices=MODES, help="of kube-proxy; half of each without it")
    parser.add_argument("--keep", type=Path, help="a folder for manifests that differ")
    options = parser.parse_args()
    end_on_sigterm()
    if (reason := parts.hindrance()) is not None:
        print(reason, file=sys.stderr)
        return 2
    total, wrong_count, start_time = Outcome(), 0, time.monotonic()
    modes = (options.mode,) if options.mode else MODES
    end = options.seed + options.count
    share = -(-options.count // len(modes))
    for mode, first_seed in zip(modes, range(options.seed, end, share), strict=False):
        end_seed = min(first_seed + share, end)
        with judge(mode) as cluster_judge:
            for first_of_batch in range(first_seed, end_seed, AT_ONCE):
                seeds = range(first_of_batch, min(first_of_batch + AT_ONCE, end_seed))
                drawn_topologies = [
                    topology(seed, cluster_judge.nodes, slot) for slot, seed in enumerate(seeds)
                ]
                with (
                    cluster_judge.running(drawn_topologies) as running,
                    ThreadPoolExecutor(len(seeds)) as pool,
                ):
                    outcomes = list(
                        pool.map(
                            lambda seed: compare_with_model(seed, cluster_judge.nodes), running
                        )
                    )
                for drawn_topology, outcome in zip(drawn_topologies, outcomes, strict=True):
                    total.agreed += outcome.agreed
                    total.unknown += outcome.unknown
                    if outcome.differences:
                        wrong_count += 1
                        shown_differences = outcome.differences[:SHOWN]
                        print(
                            f"seed {drawn_topology.seed} ({mode}):",
                            *shown_differences,
                            sep="\n  ",
                            flush=True,
                        )
                        if options.keep:
                            (options.keep / f"{drawn_topology.seed}.yaml").write_text(
                                drawn_topology.text
                            )
                elapsed = f"{time.monotonic() - start_time:.0f} s"
                done_count = seeds[-1] - options.seed + 1
                print(
                    f"{done_count} of {options.count}, {wrong_count} differ, {elapsed}",
                    file=sys.stderr,
                )
    elapsed = f"{time.monotonic() - start_time:.0f} s"
    print(f"seeds {options.seed} to {end - 1}, {elapsed}: {wrong_count} manifests differ")
    print("agreed:", dict(total.agreed))
    unknown = (f"{count} {fact}" for fact, count in total.unknown.most_common())
    print("not known:", *unknown, sep="\n  ")
    return 1 if wrong_count else 0


if __name__ == "__main__":
    raise SystemExit(main())
