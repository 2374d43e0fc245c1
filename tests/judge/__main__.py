"""`make kafka-judge`: compares our verdicts with Kafka's on many settings, release by release."""

import argparse
import sys
import time
from functools import partial

from earshot.errors import EarshotError
from tests.judge.cases import cases
from tests.judge.judge import (
    RELEASES,
    compare,
    compare_files,
    compare_without_release,
    examples,
    lints_refusal,
    started,
    verdicts,
)
from tests.judge.known import KNOWN


def main() -> int:
    """Returns 0 if both agree on every case, otherwise 1. A release without jars is skipped."""
    parser = argparse.ArgumentParser(prog="tests.judge", description=__doc__)
    parser.add_argument("releases", nargs="*", default=RELEASES)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--cases", type=int, default=20_000)
    chosen = parser.parse_args()
    print(f"{chosen.cases} cases of seed {chosen.seed}", flush=True)
    all_cases = list(cases(chosen.seed, chosen.cases))
    status = 0
    for version in chosen.releases:
        try:
            with started(version) as judge:
                kafkas = verdicts(judge, all_cases)
                for subject, tally, our_verdict in (
                    ("settings", compare(judge, kafkas), None),
                    (
                        "files",
                        compare_files(judge, kafkas),
                        partial(lints_refusal, release=judge.release),
                    ),
                    (
                        "files of no release",
                        compare_without_release(judge, kafkas),
                        partial(lints_refusal, release=None),
                    ),
                ):
                    print(f"Kafka {version}, {subject}: {tally}", flush=True)
                    for disagreements in (tally.missed_refusals, tally.false_refusals):
                        for disagreement in examples(judge, disagreements, our_verdict):
                            print(disagreement)
                            status = 1
                known_cases = [
                    known_case for known_case in KNOWN if version in known_case.judged_releases
                ]
                answers = judge.refusals([known_case.values for known_case in known_cases])
                for known_case, kafka in zip(known_cases, answers, strict=True):
                    if bool(kafka) != known_case.refuses(version):
                        print(f"told otherwise: {known_case}: {kafka or 'taken'}")
                        status = 1
        except EarshotError as error:
            print(f"Kafka {version}: not asked: {error}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
