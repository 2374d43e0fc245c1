"""The whole validation: the doctor, then the Spark job through the cells that passed, one report.

Spark's JVM starts while the doctor runs, and the topic is created meanwhile. The replication check
runs in parallel to the Spark job.
"""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from earshot.doctor.control import mark_broken_vantage
from earshot.doctor.doctor import examine
from earshot.doctor.draft import Draft
from earshot.doctor.observation import CellTarget
from earshot.doctor.replication import replication_proof
from earshot.doctor.run_topic import ReachedBrokers, RunTopic
from earshot.doctor.targets import targets_reached
from earshot.listeners.terms import Protocol
from earshot.spark.attempts import Route
from earshot.spark.job import Job, JobResult, ListenerAccess
from earshot.spark.merge import merge, without_spark
from earshot.spark.session import SessionStart, SparkSettings, exposure
from earshot.validation.client import Failure
from earshot.validation.contract import Contract
from earshot.validation.deadline import Deadline, unwinding_on_sigterm
from earshot.validation.refusals import refusal
from earshot.validation.result import Cell, Report
from earshot.validation.topic import run_id

DOCTOR_SECONDS: Final = 15.0
RECORD_SECONDS: Final = 60.0
"""Time limit for a first run's JVM to write its class archive."""

DOCTOR_ALONE: Final = "without Spark (records: 0): only the doctor has checked each listener"

OnEvent = Callable[[str], None]


@dataclass(frozen=True)
class ValidationOptions:
    """The options of a validation."""

    records: int = 3000
    """Total number of records, in equal shares per (listener, broker), rounded up; 0 for a run
    without Spark."""
    deadline: float = 300.0
    """Seconds for the whole run."""
    client: Mapping[str, str] = field(default_factory=dict)
    """Kafka's client properties, for security."""
    jars: tuple[Path, ...] = ()
    jars_dir: Path | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    record: bool = False
    """True to archive Spark's classes after a first run, so that later runs start sooner."""
    vantage: str = "host"
    incarnations: Mapping[str, str] = field(default_factory=dict)
    """The nodes' incarnations, for the report of a validation elsewhere."""

    def spark(self, contract: Contract) -> SparkSettings:
        """The settings of Spark for ``contract``."""
        secured = any(
            listener.protocol is not Protocol.PLAINTEXT for listener in contract.listeners
        )
        return SparkSettings(self.jars, self.jars_dir, self.spark_conf, secured, self.record)


def unfinished(draft: Draft, reason: str) -> Report:
    """The report of a validation that ended early for ``reason``, from the partial ``draft``."""
    report = draft.report(reason)
    cells = without_spark(report.cells, reason)
    return report.model_copy(update={"kind": "validation", "cells": cells})


def validate(
    contract: Contract,
    options: ValidationOptions,
    on_event: OnEvent = lambda text: None,
    draft: Draft | None = None,
) -> Report:
    """Validates every listener of every broker of ``contract``. Failures are in the report.

    ``on_event`` is called with a line of text per step. The doctor fills in ``draft``. Raises
    EarshotError if Spark cannot be started or ``options`` cannot be used. At the end the topic is
    deleted and the JVM ended, also after KeyboardInterrupt and SIGTERM (which becomes SystemExit,
    143).
    """
    start_time, start = datetime.now(UTC), time.monotonic()
    end = Deadline(options.deadline)
    run = run_id()
    notes: list[str] = []
    with unwinding_on_sigterm(), contextlib.ExitStack() as stack:
        spark: SessionStart | None = None
        if options.records:
            spark = stack.enter_context(contextlib.closing(SessionStart(options.spark(contract))))
        on_event("doctor: one record to every broker through every listener")
        limit, vantage = end.left(DOCTOR_SECONDS), options.vantage
        doctor_report = examine(
            contract, client=options.client, deadline=limit, vantage=vantage, draft=draft
        )
        notes += doctor_report.notes
        with replication_proof(
            contract, doctor_report.cells, options.client, run, end
        ) as replication:
            cells, job_result = _prove(
                contract, options, doctor_report.cells, spark, run, end, notes, on_event
            )
            replication_result = replication.result()
        notes += replication_result.notes
    report = Report(
        kind="validation",
        run=run,
        cluster=contract.cluster,
        cluster_id=doctor_report.cluster_id,
        placement=contract.placement,
        kafka_version=contract.kafka_version,
        started=start_time,
        seconds=time.monotonic() - start,
        cells=cells,
        vantages=doctor_report.vantages + job_result.executors,
        delivery=job_result.deliveries,
        replication=replication_result.results,
        notes=tuple(dict.fromkeys(notes)),
    )
    # the network may have failed since the doctor's probe
    report = mark_broken_vantage(report, options.vantage)
    return report.model_copy(update={"seconds": time.monotonic() - start})


def _prove(
    contract: Contract,
    options: ValidationOptions,
    cells: Sequence[Cell],
    spark: SessionStart | None,
    run: str,
    end: Deadline,
    notes: list[str],
    on_event: OnEvent,
) -> tuple[tuple[Cell, ...], JobResult]:
    live_targets = targets_reached(contract, cells)
    if spark is None:
        notes.append(DOCTOR_ALONE)
    if spark is None or not live_targets:
        return tuple(cells), JobResult()
    listener_access = access_by_listener(live_targets, options.client)
    access = ReachedBrokers.widest(live_targets, options.client)
    topic = RunTopic(contract.cluster, run, options.deadline, access, end)
    try:
        partitions = topic.create([(route.broker,) for route in live_targets])
        if isinstance(partitions, Failure):
            reason = f"no topic could be created for Spark's records: {partitions.text}"
            return without_spark(cells, reason, refusal(partitions)), JobResult()
        routes = [
            Route(target.listener, target.broker, target.address, partition)
            for target, partition in zip(live_targets, partitions.numbers, strict=True)
        ]
        try:
            session = spark.session(end.left())
        except TimeoutError:
            reason = f"Spark was not ready when the deadline of {end.seconds:g} s passed"
            return without_spark(cells, reason), JobResult()
        if note := exposure(session, credentials=bool(options.client)):
            notes.append(note)
        share = -(-options.records // len(routes))
        name, begin, cluster_id = partitions.topic, partitions.begin, contract.cluster_id
        job = Job(session, listener_access, name, begin, run, end, on_event, cluster_id)
        job_result = job.prove(routes, share)
        if spark.is_recorded and job_result.all_delivered:
            on_event("keeping Spark's classes, so that later runs start sooner (once)")
            spark.finish(end.left(RECORD_SECONDS))
        return merge(cells, job_result, cluster_id), job_result
    finally:
        spark.close()  # before the deletion: a running producer would recreate the topic
        if note := topic.delete():
            notes.append(note)


def access_by_listener(
    targets: Sequence[CellTarget], client: Mapping[str, str]
) -> dict[str, ListenerAccess]:
    """Spark's access to each listener, with the ``targets`` as bootstrap addresses."""
    access = {}
    for name, protocol in {target.listener: target.protocol for target in targets}.items():
        bootstrap = ",".join(str(target.address) for target in targets if target.listener == name)
        access[name] = ListenerAccess(bootstrap, protocol, client)
    return access
