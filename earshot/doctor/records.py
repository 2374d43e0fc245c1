"""The records of a run: sent through every listener and read back, and what became of them."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import Any, Final

from earshot.doctor import exchange
from earshot.doctor.asking import IDENTIFY_LIMIT, AnsweringBrokers, wrong_brokers
from earshot.doctor.diagnosis import Observation, SentRecord
from earshot.doctor.exchange import Destination
from earshot.validation.client import Failure, configuration
from earshot.validation.deadline import Deadline

SENT_TOGETHER: Final = 1.0
"""Seconds that reading waits for the records of all cells: the first consumer has a new cluster
make `__consumer_offsets`, which would slow down what is being timed."""

RECORD_PATIENCE: Final = 4.0
"""Seconds: where fewer were left for a record, that none came proves nothing. A broker on a busy
machine needs some of them after the active controller has died, while the topic of the run is new.
"""

Cells = dict[int, Observation]
"""By their place in the report."""


@dataclass
class Records:
    """A record for each cell, by one client for each listener that sends and one that reads."""

    topic: str
    partitions: Mapping[int, int]
    """By the broker that leads them."""
    run: str
    client: Mapping[str, str]
    end: Deadline
    _done: SimpleQueue[tuple[int, Observation] | BaseException] = field(default_factory=SimpleQueue)

    def exchange(
        self, waiting: Mapping[int, Observation], pool: Executor
    ) -> Iterator[tuple[int, Observation]]:
        """The entries of ``waiting`` with what became of their records, each when it is known.

        Nothing is read before everything is sent, or SENT_TOGETHER seconds have passed.
        """
        unsent, undecided = set(waiting), set(waiting)
        sent: Cells = {}
        self._submit(pool, self._send, dict(waiting))
        together = Deadline(self.end.left(SENT_TOGETHER))
        while undecided:
            if sent and not (unsent and together.left()):
                self._submit(pool, self._read, sent)
                sent = {}
            try:
                done = self._done.get(timeout=together.left() if sent else None)
            except Empty:
                continue
            if isinstance(done, BaseException):
                raise done
            index, item = done
            unsent.discard(index)
            if isinstance(item.produced, SentRecord) and item.consumed is None and not item.late:
                sent[index] = item
            else:
                undecided.discard(index)
                yield index, item

    def _submit(self, pool: Executor, work: Any, cells: Cells) -> None:
        """``work`` on ``cells``, those of each listener on their own."""
        for listener in dict.fromkeys(cell.target.listener for cell in cells.values()):
            own = {index: cell for index, cell in cells.items() if cell.target.listener == listener}
            pool.submit(self._finish, work, own, pool)

    def _finish(self, work: Any, cells: Cells, pool: Executor) -> None:
        try:
            work(cells, pool)
        except BaseException as error:
            self._done.put(error)

    def _send(self, cells: Cells, pool: Executor) -> None:
        places = {self.partitions[cell.target.broker]: index for index, cell in cells.items()}
        destinations = []
        for partition, index in places.items():
            to = cells[index].target
            headers = {"run": self.run, "listener": to.listener, "broker": str(to.broker)}
            destinations.append(Destination(partition, to.address, headers))
        left, values = self.end.left(), self._values(cells)
        for partition, sent in exchange.produce(values, self.topic, destinations, self.end):
            index = places[partition]
            item = replace(cells[index], produced=sent)
            late = None if isinstance(sent, SentRecord) else cut_short(cells[index], sent, left)
            if late is not None or item.answering.ids or item.peer is None:
                self._done.put((index, late or item))
            else:  # the broker has not told who it is
                pool.submit(self._finish, self._confirm, {index: item}, pool)

    def _read(self, cells: Cells, pool: Executor) -> None:
        places = {self.partitions[cell.target.broker]: index for index, cell in cells.items()}
        sent = ((cell.target.address, cell.produced) for cell in cells.values())
        records = [(address, record) for address, record in sent if isinstance(record, SentRecord)]
        left, values = self.end.left(), self._values(cells)
        for partition, back in exchange.consume(values, self.topic, records, self.run, self.end):
            index = places[partition]
            item = cells[index]
            late = cut_short(item, back, left) if isinstance(back, Failure) else None
            self._done.put((index, late or replace(item, consumed=back)))

    def _values(self, cells: Cells) -> dict[str, Any]:
        """For a client that comes in by any of ``cells``, which have one listener."""
        targets = [cell.target for cell in cells.values()]
        bootstrap = ",".join(str(target.address) for target in targets)
        return configuration(bootstrap, targets[0].protocol, self.client)

    def _confirm(self, cells: Cells, pool: Executor) -> None:
        """The one cell of ``cells``, or that other brokers answer in that broker's place."""
        ((index, item),) = cells.items()
        broker = item.target.broker
        assert item.peer is not None
        limit = self.end.within(IDENTIFY_LIMIT)
        others, count = wrong_brokers(item.peer, self.topic, self.partitions[broker], limit)
        if others:
            where = f"{others} of {count} connections to {item.target.address}"
            text = f"{where} reached another broker than broker {broker}"
            failure = Failure("misrouted", text)
            item = replace(item, produced=failure)
        elif count:
            item = replace(item, answering=AnsweringBrokers(ids=(broker,) * count))
        self._done.put((index, item))


def cut_short(facts: Observation, failure: Failure, given: float) -> Observation | None:
    """``facts`` as too late where ``failure`` is that nothing came within ``given`` seconds."""
    if failure.error != "timeout" or given >= RECORD_PATIENCE:
        return None
    return replace(facts, late=f"the deadline left {given:.1f} s for a record: {failure.text}")
