"""The steady producer as a program of its own, which can run in the place of a client.

    with DistantProducer(place.command, client, "topic") as producer:
        ...
    producer.acknowledged

Run as a module it makes its topic, writes until its standard input is closed, reads all that is
there, and tells as JSON.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Self

from tests.e2e.steady_producer import (
    FLUSH_SECONDS,
    REPLICAS,
    Acknowledged,
    SteadyProducer,
    led_by_every_broker,
    read_all,
)
from toolchain.paths import ROOT

WRITES = "writes"
"""The output after the first acknowledged record."""


class DistantProducer:
    """Writes while its context is open. Its results are known after that."""

    acknowledged: list[Acknowledged]
    failed: list[str]
    sent: int
    known_brokers: dict[int, str]
    """The addresses of brokers that it had at the end, by id."""
    records: dict[tuple[int, int], bytes]
    """The records that a consumer read in its place at the end, by partition and offset."""

    def __init__(self, wrap: Callable[..., Sequence[str]], client: Path, topic: str) -> None:
        """``wrap`` makes of a command one that runs in the place of the producer. ``client`` is a
        file of librdkafka's settings as JSON."""
        self._command = wrap(sys.executable, "-m", __name__, str(client), topic)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != WRITES:
            self._process.communicate()
            raise AssertionError(f"{' '.join(self._command)}: it does not write")
        return self

    def __exit__(self, kind: object, *_details: object) -> None:
        try:
            result_text, _ = self._process.communicate(timeout=FLUSH_SECONDS + 60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise
        if kind is None:
            self._read(result_text)

    def _read(self, result_text: str) -> None:
        results = json.loads(result_text)
        self.acknowledged = [
            Acknowledged(**acknowledgement) for acknowledgement in results["acknowledged"]
        ]
        self.failed, self.sent = results["failed"], results["sent"]
        self.known_brokers = {int(id): address for id, address in results["known_brokers"].items()}
        self.records = {
            (partition, offset): body.encode("latin-1")
            for partition, offset, body in results["found"]
        }


def main(file: str, topic: str) -> None:
    client = json.loads(Path(file).read_text())
    bootstrap = client.pop("bootstrap.servers")
    led_by_every_broker(bootstrap, topic, client)
    with SteadyProducer(bootstrap, topic, len(REPLICAS), client) as producer:
        while not producer.acknowledged and not producer.failed:
            time.sleep(0.1)
        print(WRITES, flush=True)
        sys.stdin.read()
        sent_before = producer.sent
        while producer.sent < sent_before + 2:  # one of them since it was told to end
            time.sleep(0.1)
        known_brokers = producer.known_brokers()
    # by what it has learned: the addresses that it began with may be gone
    records = read_all(",".join(known_brokers.values()), topic, len(REPLICAS), client)
    result_text = {
        "acknowledged": [asdict(acknowledgement) for acknowledgement in producer.acknowledged],
        "failed": producer.failed,
        "sent": producer.sent,
        "known_brokers": known_brokers,
        "found": [(*place, body.decode("latin-1")) for place, body in records.items()],
    }
    print(json.dumps(result_text))


if __name__ == "__main__":
    main(*sys.argv[1:])
