"""A consumer group that reads and remembers records while a test changes the cluster."""

import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from confluent_kafka import Consumer

from tests.e2e.background import Background

MEMBERS = 2
PATIENCE = 90.0
"""Maximum seconds until it has read all records: longer than a session of the group."""

Place = tuple[str, int, int]
"""Topic, partition and offset."""


class GroupReader(Background):
    """Reads committed records of some topics while its context is open."""

    def __init__(self, bootstrap: str, group: str, topics: Collection[str]) -> None:
        self.records: dict[Place, bytes] = {}
        self.failed: list[str] = []
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
        read = partial(self._read, settings, topics)
        super().__init__(group, [read] * MEMBERS, PATIENCE)

    def current_records(self) -> dict[Place, bytes]:
        """The records that were read so far. `copy` is one step, during which none is added."""
        return self.records.copy()

    def await_records(self, records: Mapping[Place, bytes]) -> None:
        """Waits for ``records``. Fails if one is missing or different."""
        self._await_none_missing(lambda: records.keys() - self.current_records().keys())
        assert {place: self.records[place] for place in records} == records

    def await_records_once(self, topic: str, values: Collection[str]) -> list[str]:
        """All values read from a topic with one partition, once they include ``values``.

        Fails for a value at two offsets.
        """
        self._await_none_missing(lambda: set(values) - set(self.values(topic)))
        values_read = self.values(topic)
        assert len(values_read) == len(set(values_read))
        return values_read

    def values(self, topic: str) -> list[str]:
        """The values read from a topic with one partition, by offset."""
        records = sorted(
            record for record in self.current_records().items() if record[0][0] == topic
        )
        return [value.decode() for _, value in records]

    def _await_none_missing(self, missing_records: Callable[[], Collection[Any]]) -> None:
        end = time.monotonic() + PATIENCE
        while (remaining := missing_records()) and time.monotonic() < end:
            time.sleep(0.2)
        assert not remaining, sorted(remaining)[:10]
        assert self.failed == [], self.failed

    def _read(self, settings: Mapping[str, Any], topics: Collection[str]) -> None:
        consumer = Consumer(dict(settings))
        consumer.subscribe(list(topics))
        try:
            while not self.over.is_set():
                message = consumer.poll(0.2)
                if message is None:
                    continue
                if (error := message.error()) is not None:
                    self.failed.append(f"{error.name()}: {error.str()}")
                    continue
                topic, partition, offset = message.topic(), message.partition(), message.offset()
                assert topic is not None and partition is not None and offset is not None
                value = message.value()
                assert isinstance(value, bytes)
                self.records[topic, partition, offset] = value
        finally:
            consumer.close()
