"""A transactional producer that writes while a test changes what is below it.

What it committed is remembered: a reader of committed records must find each once.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException, Producer

TOGETHER = 5
"""Records of one transaction."""
PAUSE = 0.2
"""Seconds between two transactions."""
PATIENCE = 60.0
"""Seconds for a transaction's commit."""


class TransactionalProducer:
    """Writes to the first partition of a topic from entering to leaving the context.

    ``committed`` and ``failed`` are complete after that.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.committed: list[str] = []
        self.failed: list[str] = []
        self._topic = topic
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": f"writes-{topic}"}
        )
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"writes to {topic}")

    def __enter__(self) -> Self:
        self._producer.init_transactions(PATIENCE)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join(2 * PATIENCE)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        number = 0
        while not self._done.wait(PAUSE):
            number += 1
            records = [f"{number}/{index}" for index in range(TOGETHER)]
            try:
                self._producer.begin_transaction()
                for text in records:
                    self._producer.produce(self._topic, text, partition=0)
                self._commit()
                self.committed += records
            except KafkaException as reason:
                found = reason.args[0]
                if not found.txn_requires_abort():
                    self.failed.append(f"transaction {number}: {found.str()}")
                    return
                self._producer.abort_transaction(PATIENCE)

    def _commit(self) -> None:
        """Until it is known whether it was committed: a retry commits no second transaction."""
        while True:
            try:
                self._producer.commit_transaction(PATIENCE)
                return
            except KafkaException as reason:
                if not reason.args[0].retriable():
                    raise
