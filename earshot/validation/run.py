"""The whole validation: the doctor first, then the Spark job on what lives, and one report.

Spark's JVM starts while the doctor looks around, and the topic is made before it is ready.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient

from earshot.listeners.address import parse_address
from earshot.validation.client import Failure, configuration
from earshot.validation.contract import Contract
from earshot.validation.deadline import Deadline, unwinding_on_sigterm
from earshot.validation.doctor import CREATE_TRIES, examine
from earshot.validation.merge import merge, without_spark
from earshot.validation.result import Cell, Report, Verdict
from earshot.validation.spark_job import Entrance, Findings, Job, Route
from earshot.validation.spark_session import Opening, Session, SparkSettings
from earshot.validation.topic import (
    TopicError,
    create_topic,
    delete_leftovers,
    delete_topic,
    run_id,
    topic_name,
)

DOCTOR_SECONDS: Final = 15.0
CLEAN_UP_SECONDS: Final = 5.0
"""For deleting the topic, beyond the deadline if need be."""

OnEvent = Callable[[str], None]


@dataclass(frozen=True)
class ValidationOptions:
    """What a run is asked for."""

    records: int = 3000
    """Records in all, in equal shares per (listener, broker), rounded up."""
    deadline: float = 300.0
    """Seconds for the whole run."""
    client: Mapping[str, str] = field(default_factory=dict)
    """Kafka's client properties, for security."""
    jars: tuple[Path, ...] = ()
    jars_dir: Path | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    vantage: str = "host"

    @property
    def spark(self) -> SparkSettings:
        return SparkSettings(self.jars, self.jars_dir, self.spark_conf)


def validate(
    contract: Contract, options: ValidationOptions, on_event: OnEvent = lambda text: None
) -> Report:
    """Proves every listener of every broker of ``contract``; what fails is in the report.

    ``on_event`` gets a line of text per step. Raises EarshotError where Spark cannot be started or
    ``options`` cannot be used. The topic is deleted and the JVM gone at the end, also after
    KeyboardInterrupt and SIGTERM (which becomes SystemExit, 143).
    """
    started, begun = datetime.now(UTC), time.monotonic()
    end = Deadline(options.deadline)
    run = run_id()
    notes: list[str] = []
    with unwinding_on_sigterm(), _opening(options.spark, end) as spark:
        on_event("doctor: one record to every broker through every listener")
        seen = examine(
            contract,
            client=options.client,
            deadline=end.left(DOCTOR_SECONDS),
            vantage=options.vantage,
        )
        notes += seen.notes
        cells, findings = _prove(contract, options, seen.cells, spark, run, end, notes, on_event)
    return Report(
        kind="validation",
        run=run,
        cluster=contract.cluster,
        placement=contract.placement,
        kafka_version=contract.kafka_version,
        started=started,
        seconds=time.monotonic() - begun,
        cells=cells,
        vantages=seen.vantages + findings.executors,
        delivery=findings.deliveries,
        notes=tuple(notes),
    )


@contextlib.contextmanager
def _opening(settings: SparkSettings, end: Deadline) -> Iterator[Callable[[], Session]]:
    """Opens a session in the background; yields what waits for it. Closes it at the end."""
    opening = Opening(settings)
    try:
        yield lambda: opening.session(end.left())
    finally:
        end.stop.set()
        opening.close()


def _prove(
    contract: Contract,
    options: ValidationOptions,
    cells: Sequence[Cell],
    spark: Callable[[], Session],
    run: str,
    end: Deadline,
    notes: list[str],
    on_event: OnEvent,
) -> tuple[tuple[Cell, ...], Findings]:
    living = [cell for cell in cells if cell.verdict is Verdict.PASS]
    if not living:
        return tuple(cells), Findings()
    entrances = _entrances(contract, living, options.client)
    topic = topic_name(contract.cluster, run, options.deadline)
    leaders = [cell.broker for cell in living]
    try:
        failure = _create(entrances, topic, leaders, end)
        if failure is not None:
            reason = f"no topic could be created for Spark's records: {failure.text}"
            return without_spark(cells, reason), Findings()
        routes = [_route(cell, partition) for partition, cell in enumerate(living)]
        try:
            session = spark()
        except TimeoutError:
            reason = f"Spark was not ready when the deadline of {end.seconds:g} s passed"
            return without_spark(cells, reason), Findings()
        share = -(-options.records // len(routes))
        findings = Job(session, entrances, topic, run, end, on_event).prove(routes, share)
        return merge(cells, findings), findings
    finally:
        _clean_up(entrances, topic, contract.cluster, notes)


def _entrances(
    contract: Contract, living: Sequence[Cell], client: Mapping[str, str]
) -> dict[str, Entrance]:
    """How to come in through each listener: by the brokers that live."""
    names = dict.fromkeys(cell.listener for cell in living)
    return {
        name: Entrance(
            ",".join(cell.address for cell in living if cell.listener == name),
            contract.listener(name).protocol,
            dict(client),
        )
        for name in names
    }


def _route(cell: Cell, partition: int) -> Route:
    address = parse_address(cell.address)
    return Route(cell.listener, cell.broker, address.host, address.port, partition)


def _admin(entrances: Mapping[str, Entrance]) -> AdminClient:
    """A client that comes in by the listener with the most living brokers."""
    widest = max(entrances.values(), key=lambda item: item.bootstrap.count(","))
    return AdminClient(configuration(widest.bootstrap, widest.protocol, widest.client))


def _create(
    entrances: Mapping[str, Entrance], topic: str, leaders: Sequence[int], end: Deadline
) -> Failure | None:
    failure = Failure("timeout", "the deadline passed")
    for limit in CREATE_TRIES:
        try:
            create_topic(_admin(entrances), topic, leaders, max(0.1, end.left(limit)))
            return None
        except TopicError as error:
            failure = error.failure
            if failure.error != "timeout":
                break
    return failure


def _clean_up(
    entrances: Mapping[str, Entrance], topic: str, cluster: str, notes: list[str]
) -> None:
    admin = _admin(entrances)
    failure = delete_topic(admin, topic, CLEAN_UP_SECONDS)
    if failure is not None:
        notes.append(
            f"topic {topic} could not be deleted ({failure.text}); "
            "the next run removes it when it has expired"
        )
    gone = delete_leftovers(admin, cluster, CLEAN_UP_SECONDS)
    if gone:
        notes.append(f"deleted {len(gone)} topic(s) of killed runs")
