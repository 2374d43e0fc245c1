"""Writes a record as each of several clients: `python -m tests.e2e.distant_writers FILE`.

FILE has a list of librdkafka's settings, each with a topic, as JSON. The output is a list with the
result of each: `written`, or the word for the error.
"""

import json
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Producer

from earshot.validation.client import Errors, failure_of

SECONDS = 20


def write_result(settings: Mapping[str, Any], topic: str) -> str:
    """`written`, or the word for the error."""
    errors, results = Errors(), ["timeout"]

    def end(error: KafkaError | None, _message: object) -> None:
        results[0] = "written" if error is None else failure_of(error).error

    settings_of_producer = {
        "log_level": 0,
        "message.timeout.ms": SECONDS * 1000,
        "error_cb": errors,
    }
    producer = Producer({**settings, **settings_of_producer})
    producer.produce(topic, b"a record", on_delivery=end)
    producer.flush(SECONDS + 5)
    first_error = errors.first()
    return first_error.error if first_error is not None and results[0] == "timeout" else results[0]


def main() -> None:
    clients = json.loads(Path(sys.argv[1]).read_text())
    with ThreadPoolExecutor() as pool:  # some of them get no answer
        json.dump(list(pool.map(lambda client: write_result(*client), clients)), sys.stdout)


if __name__ == "__main__":
    main()
