"""The whole validation: the doctor first, then the Spark job on what lives, and one report.

Spark's JVM starts while the doctor looks around, and the topic is made before it is ready; what
proves replication runs beside it.
"""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from earshot.doctor.control import mark_inconclusive
from earshot.doctor.diagnosis import CellTarget
from earshot.doctor.doctor import examine
from earshot.doctor.draft import Draft
from earshot.doctor.replication import proving
from earshot.doctor.run_topic import ReachedBrokers, RunTopic
from earshot.doctor.survey import targets_reached
from earshot.listeners.terms import Protocol
from earshot.spark.attempts import Route
from earshot.spark.job import Findings, Job, ListenerAccess
from earshot.spark.merge import merge, without_spark
from earshot.spark.session import SessionStart, SparkSettings, exposure
from earshot.validation.client import Failure
from earshot.validation.contract import Contract
from earshot.validation.deadline import Deadline, unwinding_on_sigterm
from earshot.validation.refusals import refusal
from earshot.validation.result import Cell, Report
from earshot.validation.terms import Verdict
from earshot.validation.topic import run_id

DOCTOR_SECONDS: Final = 15.0
RECORD_SECONDS: Final = 60.0
"""What a first run's JVM may take to write down the classes that it has loaded."""

DOCTOR_ALONE: Final = "without Spark (records: 0): the doctor alone has proved each listener"

OnEvent = Callable[[str], None]


@dataclass(frozen=True)
class ValidationOptions:
    """What a run is asked for."""

    records: int = 3000
    """Records in all, in equal shares per (listener, broker), rounded up; 0: without Spark."""
    deadline: float = 300.0
    """Seconds for the whole run."""
    client: Mapping[str, str] = field(default_factory=dict)
    """Kafka's client properties, for security."""
    jars: tuple[Path, ...] = ()
    jars_dir: Path | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    record: bool = False
    """Whether a first run keeps Spark's classes for the next ones."""
    vantage: str = "host"
    incarnations: Mapping[str, str] = field(default_factory=dict)
    """Of the nodes; a validation elsewhere puts them into its report."""

    def spark(self, contract: Contract) -> SparkSettings:
        """The settings of Spark for ``contract``."""
        secured = any(
            listener.protocol is not Protocol.PLAINTEXT for listener in contract.listeners
        )
        return SparkSettings(self.jars, self.jars_dir, self.spark_conf, secured, self.record)


def unfinished(draft: Draft, reason: str) -> Report:
    """The report of a validation that ended, for ``reason``, after what is in ``draft``."""
    report = draft.report(reason)
    cells = without_spark(report.cells, reason)
    return report.model_copy(update={"kind": "validation", "cells": cells})


def validate(
    contract: Contract,
    options: ValidationOptions,
    on_event: OnEvent = lambda text: None,
    draft: Draft | None = None,
) -> Report:
    """Proves every listener of every broker of ``contract``; what fails is in the report.

    ``on_event`` gets a line of text per step, and ``draft`` what the doctor sees. Raises
    EarshotError where Spark cannot be started or ``options`` cannot be used. The topic is deleted
    and the JVM gone at the end, also after KeyboardInterrupt and SIGTERM (which becomes
    SystemExit, 143).
    """
    started, begun = datetime.now(UTC), time.monotonic()
    end = Deadline(options.deadline)
    run = run_id()
    notes: list[str] = []
    with unwinding_on_sigterm(), contextlib.ExitStack() as stack:
        spark: SessionStart | None = None
        if options.records:
            spark = stack.enter_context(contextlib.closing(SessionStart(options.spark(contract))))
        on_event("doctor: one record to every broker through every listener")
        limit, vantage = end.left(DOCTOR_SECONDS), options.vantage
        seen = examine(
            contract, client=options.client, deadline=limit, vantage=vantage, draft=draft
        )
        notes += seen.notes
        with proving(contract, seen.cells, options.client, run, end) as copied:
            cells, findings = _prove(
                contract, options, seen.cells, spark, run, end, notes, on_event
            )
            proof = copied.result()
        notes += proof.notes
    report = Report(
        kind="validation",
        run=run,
        cluster=contract.cluster,
        cluster_id=seen.cluster_id,
        placement=contract.placement,
        kafka_version=contract.kafka_version,
        started=started,
        seconds=time.monotonic() - begun,
        cells=cells,
        vantages=seen.vantages + findings.executors,
        delivery=findings.deliveries,
        replication=proof.results,
        notes=tuple(dict.fromkeys(notes)),
    )
    # once more: what the doctor reached may have been cut off while Spark was at work
    report = mark_inconclusive(report, options.vantage)
    return report.model_copy(update={"seconds": time.monotonic() - begun})


def _prove(
    contract: Contract,
    options: ValidationOptions,
    cells: Sequence[Cell],
    spark: SessionStart | None,
    run: str,
    end: Deadline,
    notes: list[str],
    on_event: OnEvent,
) -> tuple[tuple[Cell, ...], Findings]:
    living = targets_reached(contract, cells)
    if spark is None:
        notes.append(DOCTOR_ALONE)
    if spark is None or not living:
        return tuple(cells), Findings()
    ways_in = entrances(living, options.client)
    access = ReachedBrokers.widest(living, options.client)
    topic = RunTopic(contract.cluster, run, options.deadline, access, end)
    try:
        created = topic.create([(route.broker,) for route in living])
        if isinstance(created, Failure):
            reason = f"no topic could be created for Spark's records: {created.text}"
            return without_spark(cells, reason, refusal(created)), Findings()
        routes = [
            Route(it.listener, it.broker, it.address, partition)
            for it, partition in zip(living, created.numbers, strict=True)
        ]
        try:
            session = spark.session(end.left())
        except TimeoutError:
            reason = f"Spark was not ready when the deadline of {end.seconds:g} s passed"
            return without_spark(cells, reason), Findings()
        if note := exposure(session, credentials=bool(options.client)):
            notes.append(note)
        share = -(-options.records // len(routes))
        name, begin, cluster_id = created.topic, created.begin, contract.cluster_id
        job = Job(session, ways_in, name, begin, run, end, on_event, cluster_id)
        findings = job.prove(routes, share)
        if spark.is_recorded and all(
            delivery.verdict is Verdict.PASS for delivery in findings.deliveries
        ):
            on_event("keeping Spark's classes, so that later runs start sooner (once)")
            spark.finish(end.left(RECORD_SECONDS))
        return merge(cells, findings, cluster_id), findings
    finally:
        spark.close()  # first: a producer that still writes would have the topic created again
        if note := topic.delete():
            notes.append(note)


def entrances(living: Sequence[CellTarget], client: Mapping[str, str]) -> dict[str, ListenerAccess]:
    """How to come in through each listener: by the brokers that live."""
    routes = {}
    for name, protocol in {route.listener: route.protocol for route in living}.items():
        bootstrap = ",".join(str(route.address) for route in living if route.listener == name)
        routes[name] = ListenerAccess(bootstrap, protocol, client)
    return routes
