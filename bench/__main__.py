"""`make bench`: what earshot costs, beside what the same work costs without it.

Prints minimum and median of interleaved runs, and ratios of the medians. Nothing here passes or
fails; the goals are beside the figures.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pyspark
from confluent_kafka.admin import AdminClient

from bench.cluster import secured_brokers, three_brokers
from bench.dns_server import slow_dns_server
from bench.figures import console, measure_in_turn, ratio, show
from bench.files import write_files, write_large_file
from bench.names import BROKERS, measure
from bench.rules import seconds_for
from earshot.jvm.archive import start_options
from earshot.jvm.jars import spark_connector_jars
from earshot.jvm.java import find_java
from earshot.validation.contract import Contract
from earshot.validation.topic import create_topic, delete_topic

HERE = Path(__file__).parent
RECORDS = 100_000
PARTITIONS_PER_BROKER = 2
MODULES = ("aws", "docker", "updates")
"""Parts with a module of their own, which measures and shows them."""
PARTS = ("spark", "doctor", "secured", "rules", "lint", "names", "packs", *MODULES)
MANY_FILES = 2000
SERVICES, NETWORKS = 300, 3
ANSWER_SECONDS = 0.02
SILENT_SECONDS = 2.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs of each (default: 3)")
    parser.add_argument("--only", choices=PARTS, action="append", help="one part of it; repeatable")
    options = parser.parse_args()
    runs, parts = options.runs, options.only or PARTS
    if {"spark", "doctor"} & set(parts):
        with three_brokers() as contract:
            if "spark" in parts:
                spark(contract, runs)
            if "doctor" in parts:
                doctor(contract, max(5, runs))
    functions = {"secured": compare_secured, "names": names, "packs": packs}
    functions |= {
        "rules": lambda runs: rules(max(5, runs)),
        "lint": lambda runs: files(max(5, runs)),
    }
    for name in parts:
        if name in functions:
            functions[name](runs)
        elif name in MODULES:
            import_module(f"bench.{name}").measured(runs)  # some are slow to import


def spark(contract: Contract, runs: int) -> None:
    """The whole validation against a bare Spark job, with the same JVM flags and with none."""
    java, jars = find_java(), spark_connector_jars()
    with tempfile.TemporaryDirectory(prefix="earshot-bench-") as folder:
        file = Path(folder) / "contract.json"
        file.write_text(contract.to_json())
        command = [sys.executable, "-m", "earshot", "validate", "--contract", str(file)]
        unguarded = [*command, "--conf", "spark.authenticate=false"]
        for words, guarded in ((command, True), (unguarded, False)):
            # records classes for those below, too
            if authenticates(words, Path(folder)) is not guarded:
                raise SystemExit(f"{' '.join(words)}: guarded should be {guarded}, and is not")
        class_path = (Path(pyspark.__file__).parent / "jars", *jars)
        flags = " ".join(start_options(java.executable, class_path))
        same_options = [
            f"spark.jars={','.join(map(str, jars))}",
            f"spark.driver.extraJavaOptions={flags}",
        ]
        seconds_by_name = measure_in_turn(
            {
                f"validation, {RECORDS:,} records": lambda: run(
                    [*command, "--records", str(RECORDS), "--format", "json"]
                ),
                "the same without spark.authenticate": lambda: run(
                    [*unguarded, "--records", str(RECORDS), "--format", "json"]
                ),
                "bare job, same flags and jars": lambda: run_bare_job(contract, same_options),
                "bare job, default flags": lambda: run_bare_job(contract, same_options[:1]),
            },
            runs,
        )
    validation, unguarded_validation, job_same_flags, job_default_flags = seconds_by_name.values()
    show(
        "Spark",
        seconds_by_name,
        [
            ("validation / bare job, same flags", ratio(validation, job_same_flags), "at most 1.3"),
            (
                "validation / bare job, default flags",
                ratio(validation, job_default_flags),
                "at most 1",
            ),
            (
                "validation / without spark.authenticate",
                ratio(validation, unguarded_validation),
                "at most 1.05",
            ),
        ],
    )


def authenticates(command: Sequence[str], folder: Path) -> bool:
    """True if the Spark driver of a short validation required authentication.

    The report notes it where the session that ran had no authentication, whatever was asked for.
    """
    file = folder / "report.json"
    run([*command, "--records", "300", "--format", "json", "--output", str(file)])
    return not any(
        "does not authenticate" in note for note in json.loads(file.read_text())["notes"]
    )


def run_bare_job(contract: Contract, properties: Sequence[str]) -> float:
    """The seconds of one bare job through the first listener, on a new topic."""
    bootstrap = contract.listeners[0].bootstrap
    leaders = [(broker.id,) for broker in contract.brokers] * PARTITIONS_PER_BROKER
    topic = f"bare-{time.monotonic_ns()}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    create_topic(admin, topic, leaders)
    try:
        script = [sys.executable, str(HERE / "bare_job.py"), bootstrap, topic, str(RECORDS)]
        return run([*script, *properties])
    finally:
        delete_topic(admin, topic)


def doctor(contract: Contract, runs: int) -> None:
    """The doctor against `kcat -L` once per listener."""
    kcat = shutil.which("kcat")
    if kcat is None:
        console.print("doctor: left out, for kcat is missing (apt-get install kcat)")
        return

    def listings() -> float:
        return sum(run([kcat, "-L", "-b", listener.bootstrap]) for listener in contract.listeners)

    with tempfile.TemporaryDirectory(prefix="earshot-bench-") as folder:
        file = Path(folder) / "contract.json"
        file.write_text(contract.to_json())
        command = [sys.executable, "-m", "earshot", "doctor", "--contract", str(file)]
        seconds_by_name = measure_in_turn(
            {
                "doctor, one record per cell": lambda: run(command),
                "doctor --no-produce": lambda: run([*command, "--no-produce"]),
                "kcat -L, once per listener": listings,
            },
            runs,
        )
    whole_doctor, doctor_without_records, kcat_listing = seconds_by_name.values()
    show(
        "Doctor (whole processes)",
        seconds_by_name,
        [
            ("doctor", f"{statistics.median(whole_doctor):.2f} s", "at most 1 s"),
            ("doctor / kcat", ratio(whole_doctor, kcat_listing), ""),
            ("doctor --no-produce / kcat", ratio(doctor_without_records, kcat_listing), ""),
        ],
    )


def compare_secured(runs: int) -> None:
    """The doctor and the validation over TLS with logins, compared with plain text."""
    with (
        tempfile.TemporaryDirectory(prefix="earshot-bench-") as folder,
        three_brokers() as plain_contract,
        secured_brokers() as (secured_contract, validator),
    ):
        files = {"plain": Path(folder) / "plain.json", "SASL_SSL": Path(folder) / "secured.json"}
        for file, contract in zip(files.values(), (plain_contract, secured_contract), strict=True):
            file.write_text(contract.to_json())
        client = {"plain": [], "SASL_SSL": ["--client-config", str(validator)]}

        def measured(command: str, kind: str, *arguments: str) -> float:
            words = ["--contract", str(files[kind]), *client[kind], *arguments]
            return run([sys.executable, "-m", "earshot", command, *words])

        records = ("--records", str(RECORDS), "--format", "json")
        for kind in files:
            measured("validate", kind, *records)  # records classes for those below
        seconds_by_name = measure_in_turn(
            {
                **{f"doctor, {kind}": partial(measured, "doctor", kind) for kind in files},
                **{
                    f"validation, {RECORDS:,} records, {kind}": partial(
                        measured, "validate", kind, *records
                    )
                    for kind in files
                },
            },
            runs,
        )
    doctor_plain, doctor_secured, job_plain, job_secured = seconds_by_name.values()
    show(
        "SSL between brokers and SASL_SSL for clients, beside PLAINTEXT",
        seconds_by_name,
        [
            ("doctor, SASL_SSL / plain", ratio(doctor_secured, doctor_plain), "at most 1.5"),
            ("validation, SASL_SSL / plain", ratio(job_secured, job_plain), "at most 1.3"),
        ],
    )


def rules(runs: int) -> None:
    """Plan and rules for 1,000 brokers against 100, three listeners each."""
    seconds_by_name = measure_in_turn(
        {
            "plan and rules, 1,000 brokers x 3": lambda: seconds_for(1000),
            "plan and rules, 100 brokers x 3": lambda: seconds_for(100),
        },
        runs,
    )
    many_brokers, few_brokers = seconds_by_name.values()
    show(
        "Plan and rules",
        seconds_by_name,
        [
            ("1,000 brokers", f"{statistics.median(many_brokers):.3f} s", "below 0.5 s"),
            ("1,000 / 100 brokers", ratio(many_brokers, few_brokers), "at most 11"),
        ],
    )


def files(runs: int) -> None:
    """`earshot lint` on one file and on many, against a Python that starts and does nothing."""
    with tempfile.TemporaryDirectory(prefix="earshot-bench-") as folder:
        many_files = Path(folder, "many")
        many_files.mkdir()
        paths = write_files(many_files, MANY_FILES)
        large_path = write_large_file(Path(folder), SERVICES, NETWORKS)
        lint = [sys.executable, "-m", "earshot", "lint"]
        other_measures: dict[str, Callable[[], float]] = {}
        if find_spec("yamllint") is not None:  # no part of the lock: pip install yamllint
            yamllint = [sys.executable, "-m", "yamllint", "-d", "relaxed"]
            other_measures["yamllint, 1 file"] = lambda: run([*yamllint, paths[0]])
        seconds_by_name = measure_in_turn(
            {
                "lint, 1 file": lambda: run([*lint, paths[0]]),
                f"lint, {MANY_FILES:,} files": lambda: run([*lint, str(many_files)]),
                f"lint, {SERVICES} services": lambda: run([*lint, large_path]),
                "python -c pass": lambda: run([sys.executable, "-c", "pass"]),
                **other_measures,
            },
            runs,
        )
    one_file, all_files, large_file, bare_python, *other_tools = seconds_by_name.values()
    rate = (MANY_FILES - 1) / (statistics.median(all_files) - statistics.median(one_file))
    show(
        "Files",
        seconds_by_name,
        [
            ("1 file", f"{statistics.median(one_file):.3f} s", "below 0.2 s"),
            (
                f"{SERVICES} services, {NETWORKS} networks",
                f"{statistics.median(large_file):.3f} s",
                "below 2 s",
            ),
            ("1 file / python -c pass", ratio(one_file, bare_python), ""),
            *[("1 file / yamllint", ratio(one_file, other_tool), "") for other_tool in other_tools],
            ("files a second", f"{rate:.0f}", "at least 200"),
        ],
    )


def names(runs: int) -> None:
    """Evidence for thousands of names, each asked for both families, and for a silent server."""
    peaks: dict[int, int] = {}

    def asked(listeners: int, server: str) -> float:
        result = measure(listeners, server, timeout=60)
        assert result.live == BROKERS * listeners, f"{result.live} names are resolved"
        peaks[listeners] = max(peaks.get(listeners, 0), result.megabytes)
        return result.seconds

    few_listeners, many_listeners = 3, 5
    answering = f"{1000 * ANSWER_SECONDS:.0f} ms an answer"
    with slow_dns_server(ANSWER_SECONDS) as server, slow_dns_server(None) as silent:
        seconds_by_name = measure_in_turn(
            {
                f"{BROKERS:,} brokers x {few_listeners}, {answering}": lambda: asked(
                    few_listeners, server
                ),
                f"{BROKERS:,} brokers x {many_listeners}, {answering}": lambda: asked(
                    many_listeners, server
                ),
                f"{BROKERS:,} brokers x {few_listeners}, never an answer": lambda: (
                    measure(few_listeners, silent, SILENT_SECONDS).seconds
                ),
            },
            runs,
        )
    seconds, more_seconds, silence = map(statistics.median, seconds_by_name.values())
    growth = (more_seconds / many_listeners) / (seconds / few_listeners)
    show(
        "Names",
        seconds_by_name,
        [
            (f"{few_listeners * BROKERS:,} names", f"{seconds:.2f} s", "at most 4 s"),
            ("  memory of the process", f"{peaks[few_listeners]} MB", "under 200 MB"),
            (
                f"each of {many_listeners * BROKERS:,} / of {few_listeners * BROKERS:,}",
                f"{growth:.2f}",
                "at most 1.1",
            ),
            ("silence / its deadline", f"{silence / SILENT_SECONDS:.2f}", "at most 1.1"),
        ],
    )


def packs(runs: int) -> None:
    """`pulumi preview` with earshot's pack, compared with an empty one."""
    from bench.packs import EACH, previews

    with previews() as bench:
        measures: dict[str, Callable[[], float]] = {}
        for program, well in (("all well", True), ("a mistake each", False)):
            measures[f"earshot's pack, {program}"] = partial(bench.with_ours, well=well)
            measures[f"an empty pack, {program}"] = partial(bench.with_none, well=well)
        seconds_by_name = measure_in_turn(measures, runs)
    ours, empty, ours_ill, empty_ill = map(statistics.median, seconds_by_name.values())
    show(
        f"Previews of {EACH} brokers and {EACH} clients in containers",
        seconds_by_name,
        [
            ("earshot's pack adds", f"{ours - empty:+.2f} s", "at most 1.5 s"),
            ("  where every broker is wrong", f"{ours_ill - empty_ill:+.2f} s", "at most 1.5 s"),
        ],
    )


def run(command: Sequence[str]) -> float:
    """Wall-clock seconds of a process that must succeed."""
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    start_time = time.monotonic()
    completed = subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False
    )
    seconds = time.monotonic() - start_time
    if completed.returncode != 0:
        sys.exit(
            f"{' '.join(command[:4])} ended with {completed.returncode}:\n"
            f"{completed.stderr[-2000:]}"
        )
    return seconds


if __name__ == "__main__":
    main()
