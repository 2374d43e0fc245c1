"""`make fuzz`: `earshot lint` on many damaged files; it must end with 0, 1, 2 or 3."""

import argparse
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from types import FrameType

from tests.fuzz.inputs import inputs
from tests.fuzz.lint import EXIT_CODES, exit_code

DEADLINE_SECONDS = 10
PART = 1000
"""Files of one seed; each part of a run has another seed."""
KEPT = 20
"""So many failures are shown."""


class TooLong(BaseException):
    """A file took longer than its deadline."""


def part(seed: int) -> tuple[Counter[str], list[str]]:
    """The number of files by exit code, and the failures of the others."""
    signal.signal(signal.SIGALRM, _too_long)
    counted: Counter[str] = Counter()
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for index, input in enumerate(inputs(seed, PART)):
            signal.setitimer(signal.ITIMER_REAL, DEADLINE_SECONDS)
            try:
                code = exit_code(input, Path(folder))
                problem = "" if code in EXIT_CODES else f"exit code {code}"
                counted[str(code)] += 1
            except (Exception, TooLong):
                problem = traceback.format_exc()
                counted["raised"] += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            if problem:
                failures.append(
                    f"seed {seed}, file {index}, {input.name}: {problem}\n{input.content!r}"
                )
    return counted, failures


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TooLong


def main() -> int:
    """Returns 0 if every file ended as expected, otherwise 1."""
    parser = argparse.ArgumentParser(prog="tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--files", type=int, default=100_000)
    chosen = parser.parse_args()
    seeds = [chosen.seed * 1000 + index for index in range(-(-chosen.files // PART))]
    print(f"{len(seeds) * PART} files of seed {chosen.seed}", flush=True)
    total_counts: Counter[str] = Counter()
    failures: list[str] = []
    start_time = time.monotonic()
    with multiprocessing.Pool(os.cpu_count()) as processes:
        for exit_counts, new_failures in processes.imap_unordered(part, seeds):
            total_counts += exit_counts
            failures += new_failures
    print("\n\n".join(failures[:KEPT]))
    reported = ", ".join(f"{count} exit {code}" for code, count in sorted(total_counts.items()))
    print(f"{reported}; {len(failures)} failures; {time.monotonic() - start_time:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
