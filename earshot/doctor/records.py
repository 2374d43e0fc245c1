"""Sends the records of a run through every listener and reads them back."""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import Any, Final

from earshot.doctor import exchange
from earshot.doctor.asking import (
    IDENTIFY_LIMIT,
    AnsweringBrokers,
    ReachableAddress,
    answers_again,
    fetched,
    wrong_brokers,
)
from earshot.doctor.exchange import (
    LARGE_LOST,
    RECORD_PATIENCE,
    UNDECIDED,
    Destination,
)
from earshot.doctor.group_lookup import GroupLookups
from earshot.doctor.observation import Observation, SentRecord
from earshot.validation.client import Failure, configuration
from earshot.validation.deadline import Deadline

SEND_SECONDS: Final = 1.0
"""Seconds that reading waits until all records are sent. On a new cluster the first consumer makes
the brokers create `__consumer_offsets`, which would delay the timed records."""

Cells = dict[int, Observation]
"""Observations, by their index in the report."""


@dataclass
class Records:
    """Exchanges a record for each cell, with one producer and one consumer per listener."""

    topic: str
    partitions: Mapping[int, int]
    """The partition that each broker leads, by broker id."""
    run: str
    client: Mapping[str, str]
    end: Deadline
    _results: SimpleQueue[tuple[int, Observation] | BaseException] = field(
        default_factory=SimpleQueue
    )
    _group_lookups: GroupLookups = field(init=False)

    def __post_init__(self) -> None:
        self._group_lookups = GroupLookups(self.end)

    def exchange(
        self, cells: Mapping[int, Observation], pool: Executor
    ) -> Iterator[tuple[int, Observation]]:
        """Yields each entry of ``cells`` with the result of its record, when it is known.

        Reading starts when all records are sent, or after `SEND_SECONDS`.
        """
        unsent_indexes, open_indexes = set(cells), set(cells)
        sent_cells: Cells = {}
        self._submit(pool, self._produce, dict(cells))
        send_deadline = Deadline(self.end.left(SEND_SECONDS))
        while open_indexes:
            if sent_cells and not (unsent_indexes and send_deadline.left()):
                self._submit(pool, self._consume, sent_cells)
                sent_cells = {}
            try:
                result = self._results.get(timeout=send_deadline.left() if sent_cells else None)
            except Empty:
                continue
            if isinstance(result, BaseException):
                raise result
            index, cell = result
            unsent_indexes.discard(index)
            if (
                isinstance(cell.produced, SentRecord)
                and cell.consumed is None
                and not cell.inconclusive_reason
            ):
                sent_cells[index] = cell
            else:
                open_indexes.discard(index)
                yield index, cell

    def group_notes(self) -> list[str]:
        """The notes of the lookups of a coordinator, which this waits for."""
        return self._group_lookups.notes()

    def _submit(self, pool: Executor, work: object, cells: Cells) -> None:
        """Runs ``work`` in ``pool``, once per listener of ``cells``."""
        for listener in dict.fromkeys(cell.target.listener for cell in cells.values()):
            listener_cells = {
                index: cell for index, cell in cells.items() if cell.target.listener == listener
            }
            pool.submit(self._finish, work, listener_cells, pool)

    def _finish(self, work: Any, cells: Cells, pool: Executor) -> None:
        try:
            work(cells, pool)
        except BaseException as error:
            self._results.put(error)

    def _produce(self, cells: Cells, pool: Executor) -> None:
        indexes = {self.partitions[cell.target.broker]: index for index, cell in cells.items()}
        destinations = []
        for partition, index in indexes.items():
            target = cells[index].target
            headers = {"run": self.run, "listener": target.listener, "broker": str(target.broker)}
            destinations.append(Destination(partition, target.address, headers))
        seconds_left, values = self.end.left(), self._values(cells)
        for partition, outcome in exchange.produce(values, self.topic, destinations, self.end):
            index = indexes[partition]
            cell = replace(cells[index], produced=outcome)
            late_cell = (
                None
                if isinstance(outcome, SentRecord)
                else cut_short(cells[index], outcome, seconds_left)
            )
            if is_large_lost(outcome):
                pool.submit(self._finish, self._confirm_large_lost, {index: cell}, pool)
            elif late_cell is not None or cell.answering_brokers.ids or cell.peer is None:
                self._results.put((index, late_cell or cell))
            else:  # the broker's id is unknown
                pool.submit(self._finish, self._confirm, {index: cell}, pool)

    def _consume(self, cells: Cells, pool: Executor) -> None:
        # not earlier: the first lookup makes a new cluster create a topic
        self._group_lookups.start(cell.peer for cell in cells.values())
        indexes = {self.partitions[cell.target.broker]: index for index, cell in cells.items()}
        pairs = ((cell.target.address, cell.produced) for cell in cells.values())
        records = [(address, record) for address, record in pairs if isinstance(record, SentRecord)]
        seconds_left, values = self.end.left(), self._values(cells)
        for partition, outcome in exchange.consume(values, self.topic, records, self.run, self.end):
            index = indexes[partition]
            cell = cells[index]
            late_cell = (
                cut_short(cell, outcome, seconds_left) if isinstance(outcome, Failure) else None
            )
            cell = replace(cell, consumed=outcome)
            is_late = isinstance(outcome, Failure) and outcome.error in ("timeout", LARGE_LOST)
            if late_cell is None and is_late:
                pool.submit(self._finish, self._read_again, {index: cell}, pool)
            else:
                self._results.put((index, late_cell or cell))

    def _values(self, cells: Cells) -> dict[str, object]:
        """The librdkafka properties of a client of ``cells``, which share a listener."""
        targets = [cell.target for cell in cells.values()]
        bootstrap = ",".join(str(target.address) for target in targets)
        return configuration(bootstrap, targets[0].protocol, self.client)

    def _confirm_large_lost(self, cells: Cells, pool: Executor) -> None:
        """Checks that the only entry of ``cells`` still answers a small request: else the broker
        failed, and not the path of the large record."""
        ((index, cell),) = cells.items()
        if cell.peer is not None and not answers_again(cell.peer, self.end.within(IDENTIFY_LIMIT)):
            silence = "; small requests get no answer any more"
            if isinstance(cell.produced, Failure):
                cell = replace(cell, produced=Failure("timeout", cell.produced.text + silence))
            elif isinstance(cell.consumed, Failure):
                cell = replace(cell, consumed=Failure("timeout", cell.consumed.text + silence))
        self._results.put((index, cell))

    def _read_again(self, cells: Cells, pool: Executor) -> None:
        """Reads the records of the only entry of ``cells`` on a new connection.

        librdkafka looks up the coordinator on the connection that it reads from, which is stuck if
        the lookup gets no answer. The failed lookup is a note, and not a failure of the records.
        A large record that arrives here was delayed by a busy broker, not lost by the path.
        """
        ((index, cell),) = cells.items()
        record, reason = cell.produced, self._group_lookups.reason(cell.target.address)
        is_lost = is_large_lost(cell.consumed)
        if (reason or is_lost) and cell.peer is not None and isinstance(record, SentRecord):
            start, limit = time.monotonic(), self.end.within(IDENTIFY_LIMIT)
            pair = [record, record.large] if record.large is not None else [record]
            if all(self._returns(cell.peer, sent_record, limit) for sent_record in pair):
                return self._results.put((index, replace(cell, consumed=time.monotonic() - start)))
        if is_lost:
            return self._confirm_large_lost(cells, pool)
        self._results.put((index, cell))

    def _returns(self, peer: ReachableAddress, record: SentRecord, end: Deadline) -> bool:
        """True if ``peer`` returns ``record``, found by its value, which is not compressed."""
        batches = fetched(peer, self.topic, record.partition, record.offset, end)
        return record.value in batches

    def _confirm(self, cells: Cells, pool: Executor) -> None:
        """Checks that new connections to the only entry of ``cells`` reach the leader."""
        ((index, cell),) = cells.items()
        broker = cell.target.broker
        assert cell.peer is not None
        limit = self.end.within(IDENTIFY_LIMIT)
        wrong_count, count = wrong_brokers(cell.peer, self.topic, self.partitions[broker], limit)
        if wrong_count:
            connections = f"{wrong_count} of {count} connections to {cell.target.address}"
            text = f"{connections} reached another broker than broker {broker}"
            failure = Failure("misrouted", text)
            cell = replace(cell, produced=failure)
        elif count:
            cell = replace(cell, answering_brokers=AnsweringBrokers(ids=(broker,) * count))
        self._results.put((index, cell))


def is_large_lost(outcome: object) -> bool:
    """True if ``outcome`` is the failure of a large record after small ones that passed."""
    return isinstance(outcome, Failure) and outcome.error == LARGE_LOST


def cut_short(facts: Observation, failure: Failure, seconds_left: float) -> Observation | None:
    """``facts`` as inconclusive, if ``failure`` is a time-out and the record had fewer seconds
    (``seconds_left``) than `RECORD_PATIENCE`; else None."""
    if failure.error == UNDECIDED:
        return replace(facts, inconclusive_reason=failure.text)
    if failure.error != "timeout" or seconds_left >= RECORD_PATIENCE:
        return None
    return replace(
        facts,
        inconclusive_reason=f"the deadline left {seconds_left:.1f} s for a record: {failure.text}",
    )
