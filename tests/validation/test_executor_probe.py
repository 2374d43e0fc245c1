from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from pyspark import cloudpickle

from earshot.validation import executor_probe
from earshot.validation.executor_probe import executor_id, nameservers, prober


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def refusing() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def test_every_address_is_resolved_and_connected_to(listening: int, refusing: int) -> None:
    look = prober(
        [
            ("INTERNAL", 1, "127.0.0.1", listening),
            ("INTERNAL", 2, "127.0.0.1", refusing),
            ("EXTERNAL", 1, "kafka-1.invalid", 9092),
        ],
        2.0,
    )
    (found,) = look([])
    reached, refused, unknown = found["reached"]
    assert reached == {
        "listener": "INTERNAL",
        "broker": 1,
        "resolved": ["127.0.0.1"],
        "stage": "",
        "error": "",
    }
    assert refused["resolved"] == ["127.0.0.1"]
    assert refused["stage"] == "tcp" and "refused" in refused["error"].lower()
    assert unknown["resolved"] == []
    assert unknown["stage"] == "resolve" and "kafka-1.invalid" in unknown["error"]
    assert found["host"] == socket.gethostname()
    assert found["resolvers"] == nameservers()
    assert found["executor"] == executor_id()


def test_the_id_that_spark_gives_is_the_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_EXECUTOR_ID", "7")
    assert executor_id() == "7"


def test_elsewhere_an_executor_is_told_by_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_EXECUTOR_ID", raising=False)
    assert executor_id().startswith("pid-")


def test_the_probe_travels_by_value_without_earshot() -> None:
    """An executor unpickles it where earshot is not installed."""
    cloudpickle.register_pickle_by_value(executor_probe)  # type: ignore[no-untyped-call]
    look = prober([("INTERNAL", 1, "127.0.0.1", 1)], 1.0)
    payload = cloudpickle.dumps(look)  # type: ignore[no-untyped-call]
    program = (
        "import pickle, sys, types\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'earshot':\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "look = pickle.loads(sys.stdin.buffer.read())\n"
        "print(len(next(look([]))['reached']))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], input=payload, capture_output=True)
    assert done.stdout.strip() == b"1", done.stderr.decode()
