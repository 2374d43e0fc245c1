"""`make mutants`: of single mistakes written into the code, which do the unit tests notice?

Takes a seeded sample of all mistakes that `operators` knows, writes each into a copy of this
checkout, runs the tests there that run the function in question, and prints the share noticed per
package and each mistake that no test noticed. Exit code 0 when at least ``--least`` percent are
noticed, else 1. What cannot be noticed is listed, with a reason, in `equivalent.txt`.
"""

import argparse
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path, PurePosixPath

import pytest

from tests.mutants import reach, runs
from tests.mutants.choice import Choice
from tests.mutants.confined import INSIDE, confined, copy
from tests.mutants.equivalent import equivalent
from tests.mutants.operators import Mutant, mutants
from toolchain.paths import ROOT

PACKAGES = ("earshot", "components/earshot_pulumi", "policies/earshot_policies")
REAL = (
    "components/earshot_pulumi/docker/host_resources.py",
    "components/earshot_pulumi/local/kinds.py",
    "components/earshot_pulumi/local/readiness.py",
    "earshot/jvm/__main__.py",
    "earshot/jvm/jars.py",
    "earshot/spark/run.py",
    "earshot/doctor/run_topic.py",
    "earshot/spark/cluster.py",
    "earshot/spark/job.py",
    "earshot/spark/jvm.py",
    "earshot/spark/records.py",
    "earshot/spark/session.py",
    "earshot/validation/topic.py",
)
"""Run by brokers, engines and Spark for the most part: their tests are marked e2e, and are too slow
to be run for every mistake."""
MAP_SECONDS = 3600
FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Judged:
    mutant: Mutant
    noticed: bool
    reached: bool = True


def main() -> int:
    options = _options()
    if INSIDE not in os.environ:
        if options.map is not None:
            options.map.mkdir(parents=True, exist_ok=True)
        return confined(sys.argv[1:], options.map)
    work = Path(os.environ[INSIDE])
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10_000)
    wanted_files = [file for file in _files() if file.startswith(tuple(options.paths))]
    files = [file for file in wanted_files if file not in REAL]
    sources = {file: (ROOT / file).read_text() for file in files}
    all_mutants = [mutant for file in files for mutant in mutants(file, sources[file])]
    equivalent_mutants = equivalent(all_mutants, ROOT)
    if not all_mutants or options.sample < 1:
        print(f"make mutants: no mistake to make in {', '.join(options.paths)}")
        return 2
    candidates = [mutant for mutant in all_mutants if mutant not in equivalent_mutants]
    sample = random.Random(seed).sample(candidates, min(options.sample, len(candidates)))
    print(
        f"seed {seed}: {len(sample)} of {len(all_mutants)} mistakes "
        f"({len(equivalent_mutants)} can change nothing)",
        flush=True,
    )
    if untried_files := [file for file in wanted_files if file in REAL]:
        print(f"not tried, as only tests with real parts run it: {', '.join(untried_files)}")
    start_time = time.monotonic()
    roots = [work / f"copy{number}" for number in range(options.jobs)]
    for root in roots:
        copy(ROOT, root)  # before the tests run: the checkout may change meanwhile
    choice = _choice_from_map(work, options.map or work / "reach")
    for root in roots:
        runs.compile_all(root)
    print(f"mapped which test runs what in {time.monotonic() - start_time:.0f} s", flush=True)
    judged = []
    for result in _judged(sample, roots, choice):
        judged.append(result)
        if not result.noticed:
            print(f"{len(judged):5} {_description(result, sources)}", flush=True)
    print(f"{time.monotonic() - start_time:.0f} s in all; noticed:")
    print(_table(judged))
    share = 100 * sum(result.noticed for result in judged) / len(judged)
    print(f"{share:.1f} % of {len(judged)} noticed; at least {options.least} % are to be")
    return 0 if share >= options.least else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("paths", nargs="*", default=PACKAGES, help="only files that begin so")
    parser.add_argument("--sample", type=int, default=200, help="how many mistakes (200)")
    parser.add_argument("--seed", type=int, help="which ones; by chance, and printed, without")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--least", type=int, default=90, help="percent to be noticed (90)")
    parser.add_argument("--map", type=Path, help="a directory for which test runs what, made once")
    return parser.parse_args()


def _files() -> list[str]:
    files = (file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py")))
    return [file.relative_to(ROOT).as_posix() for file in files]


def _choice_from_map(work: Path, directory: Path) -> Choice:
    """Run all unit tests once; tests that fail without a mistake are left out."""
    if not (directory / reach.SESSION).is_file():
        _map(work, directory)
    tests, failed, modules = reach.read(directory)
    if failed:
        print(f"left out, as they do not pass: {', '.join(failed)}")
    runs.load(modules)
    return Choice(tests)


def _map(work: Path, directory: Path) -> None:
    root, site = work / "mapped", work / "site"
    copy(ROOT, root)
    for file in _files():
        (root / file).write_text(reach.noting(file, (ROOT / file).read_text()))
    directory.mkdir(exist_ok=True)
    directory.chmod(0o1777)  # tests start processes of other users
    site.mkdir()
    (site / "sitecustomize.py").write_text(reach.SITE)
    environment = {reach.DIRECTORY: str(directory), "PYTHONPATH": f"{site}:{root}"}
    log = work / "mapped.log"
    code = runs.run(
        root,
        ["tests", "--ignore=tests/mutants"],
        log,
        MAP_SECONDS,
        [reach.Reach(directory)],
        environment,
    )
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        (directory / reach.SESSION).unlink(missing_ok=True)  # of the tests until then
        raise SystemExit(f"the unit tests did not run to their end:\n{log.read_text()[-3000:]}")


def _judged(sample: Sequence[Mutant], roots: Sequence[Path], choice: Choice) -> Iterator[Judged]:
    """The results as they come, from one process for each copy."""
    ends: list[Connection] = []
    for number, root in enumerate(roots):
        result_end, child_end = FORK.Pipe(duplex=False)
        share = sample[number :: len(roots)]
        FORK.Process(target=_judge_all, args=(share, root, choice, child_end), daemon=False).start()
        child_end.close()
        ends.append(result_end)
    while ends:
        for end in wait(ends):
            assert isinstance(end, Connection)
            try:
                yield end.recv()
            except EOFError:
                ends.remove(end)


def _judge_all(share: Sequence[Mutant], root: Path, choice: Choice, results: Connection) -> None:
    for mutant in share:
        results.send(_judge(mutant, root, choice))


def _judge(mutant: Mutant, root: Path, choice: Choice) -> Judged:
    batches = choice.batches(mutant)
    if not batches:
        return Judged(mutant, noticed=False, reached=False)
    file = root / mutant.path
    source = file.read_text()
    try:
        runs.write(file, mutant.applied(source))
        for batch in batches:
            if not runs.run_tests(root, batch.tests, root / "run.log", batch.seconds):
                return Judged(mutant, noticed=True)
    finally:
        runs.write(file, source)
    return Judged(mutant, noticed=False)


def _description(result: Judged, sources: Mapping[str, str]) -> str:
    mutant = result.mutant
    change = mutant.change(sources[mutant.path])
    why = "" if result.reached else " (no unit test gets there)"
    return f"{mutant.path}:{mutant.line}: {change}{why}"


def _package(mutant: Mutant) -> str:
    """Two levels deep: a package of packages is too coarse."""
    parts = PurePosixPath(mutant.path).parts
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def _table(judged: Sequence[Judged]) -> str:
    lines = []
    for package in sorted({_package(result.mutant) for result in judged}):
        of = [result for result in judged if _package(result.mutant) == package]
        noticed = sum(result.noticed for result in of)
        lines.append(f"  {package:24} {noticed:4} of {len(of):4}  {100 * noticed / len(of):5.1f} %")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
