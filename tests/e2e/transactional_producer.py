"""A transactional producer that writes while a test changes the cluster.

Its committed records are remembered: a reader of committed records must find each once.
"""

from typing import Self

from confluent_kafka import KafkaException, Producer

from tests.e2e.background import Background

TOGETHER = 5
"""Records of one transaction."""
PAUSE = 0.2
"""Seconds between two transactions."""
PATIENCE = 60.0
"""Seconds for a transaction's commit."""


class TransactionalProducer(Background):
    """Writes to the first partition of a topic while its context is open.

    ``committed`` and ``failed`` are complete after that.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.committed: list[str] = []
        self.failed: list[str] = []
        self._topic = topic
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": f"writes-{topic}"}
        )
        super().__init__(f"commits to {topic}", [self._run], 2 * PATIENCE)

    def __enter__(self) -> Self:
        self._producer.init_transactions(PATIENCE)
        return super().__enter__()

    def leave(self) -> None:
        """Ends the producer's connections."""
        del self._producer

    def _run(self) -> None:
        number = 0
        while not self.over.wait(PAUSE):
            number += 1
            records = [f"{number}/{index}" for index in range(TOGETHER)]
            try:
                self._producer.begin_transaction()
                for text in records:
                    self._producer.produce(self._topic, text, partition=0)
                self._commit()
                self.committed += records
            except KafkaException as reason:
                error = reason.args[0]
                if not error.txn_requires_abort():
                    self.failed.append(f"transaction {number}: {error.str()}")
                    return
                self._producer.abort_transaction(PATIENCE)

    def _commit(self) -> None:
        """Waits until the commit is certain; a retry commits no second transaction."""
        while True:
            try:
                self._producer.commit_transaction(PATIENCE)
                return
            except KafkaException as reason:
                if not reason.args[0].retriable():
                    raise
