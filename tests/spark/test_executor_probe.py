import contextlib
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle

from earshot.spark import executor_probe
from earshot.spark.executor_probe import cluster_id, executor_id, nameservers, prober
from tests.doubles.closed_port import closed_port
from tests.doubles.peer import frame


@pytest.fixture
def listening_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def refusing_port() -> Iterator[int]:
    with closed_port() as address:
        yield address.port


def test_every_address_is_resolved_and_connected_to(
    listening_port: int, refusing_port: int
) -> None:
    addresses = [
        ("INTERNAL", 1, "127.0.0.1", listening_port, False),
        ("INTERNAL", 2, "127.0.0.1", refusing_port, False),
        ("EXTERNAL", 1, "kafka-1.invalid", 9092, True),
    ]
    (answer,) = prober(addresses, 2.0)([])
    reached_address, refused_address, unknown_address = answer["reached"]
    healthy = {"listener": "INTERNAL", "broker": 1, "resolved": ["127.0.0.1"], "cluster_id": ""}
    assert reached_address == healthy | {"stage": "", "error": ""}
    error = f"127.0.0.1:{refusing_port}: Connection refused"
    assert refused_address == healthy | {"broker": 2, "stage": "tcp", "error": error}
    assert unknown_address.pop("error").startswith("kafka-1.invalid: ")
    assert unknown_address == healthy | {"listener": "EXTERNAL", "resolved": [], "stage": "resolve"}
    assert answer["host"] == socket.gethostname()
    assert answer["resolvers"] == nameservers()
    assert answer["executor"] == executor_id()


@pytest.fixture
def leading(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The addresses that names resolve to."""
    names: dict[str, list[str]] = {}

    def getaddrinfo(host: str, port: int, type: socket.SocketKind) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, type, 0, "", (address, port)) for address in names[host]]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return names


def probe_of(host: str, port: int, plaintext: bool = False) -> dict[str, object]:
    (probe_answer,) = prober([("INTERNAL", 1, host, port, plaintext)], 0.05)([])
    (reached,) = probe_answer["reached"]
    assert isinstance(reached, dict)
    return reached


def test_one_accepting_address_is_enough(
    listening_port: int, leading: dict[str, list[str]]
) -> None:
    leading["kafka"] = ["127.0.0.2", "127.0.0.1"]  # the first is closed
    reached_address = probe_of("kafka", listening_port)
    assert (reached_address["resolved"], reached_address["stage"], reached_address["error"]) == (
        ["127.0.0.1", "127.0.0.2"],
        "",
        "",
    )


def test_the_first_address_says_why(refusing_port: int, leading: dict[str, list[str]]) -> None:
    leading["kafka"] = ["127.0.0.3", "127.0.0.2"]
    assert (
        probe_of("kafka", refusing_port)["error"]
        == f"127.0.0.3:{refusing_port}: Connection refused"
    )


def test_a_name_with_many_silent_addresses_is_left_in_time(
    leading: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[object] = []

    def connect(connection: object, address: object) -> None:
        tried.append(address)
        time.sleep(0.1)
        raise TimeoutError

    monkeypatch.setattr(socket.socket, "connect", connect, raising=False)
    leading["kafka"] = [f"127.0.1.{number}" for number in range(1, 101)]
    (row,) = next(iter(prober([("INTERNAL", 1, "kafka", 9092, True)], 0.25)([])))["reached"]
    assert row["stage"] == "tcp" and 1 <= len(tried) <= 4


def test_a_kernel_without_ipv6_reports_ipv4(
    refusing_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown_family = 250  # a family that no kernel has
    answers = [
        (family, socket.SOCK_STREAM, 0, "", ("127.0.0.1", refusing_port))
        for family in (socket.AF_INET, unknown_family)
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *arguments, **options: answers)
    assert (
        probe_of("kafka", refusing_port)["error"]
        == f"127.0.0.1:{refusing_port}: Connection refused"
    )


@pytest.mark.parametrize(
    ("reason", "reported"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), None),
        (OSError("no resolver"), "no resolver"),
    ],
)
def test_why_a_name_was_not_resolved_is_told_in_words(
    reason: OSError, reported: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def getaddrinfo(*arguments: object, **options: object) -> list[object]:
        raise reason

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    assert probe_of("kafka", 1)["error"] == f"kafka: {reported or 'Name or service not known'}"


@pytest.mark.parametrize(("plaintext", "id"), [(True, "C"), (False, "")])
def test_only_a_broker_that_speaks_plaintext_is_asked(
    plaintext: bool, id: str, listening_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor_probe, "cluster_id", lambda connected, end: "C")
    reached_address = probe_of("127.0.0.1", listening_port, plaintext)
    assert (reached_address["cluster_id"], reached_address["stage"]) == (id, "")


def test_a_name_that_cannot_be_encoded_is_told_too() -> None:
    reached_address = probe_of("a" * 64 + ".example.com", 9092)
    assert reached_address["stage"] == "resolve"
    error = str(reached_address["error"])
    assert error.startswith(f"{'a' * 64}.example.com: ") and "too long" in error


def test_comments_may_have_any_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "resolv.conf"
    lines = b"# caf\xe9\n\nsearch example.com\nnameserver\nnameserver 192.0.2.53\n"
    file.write_bytes(lines + b"nameserver 2001:db8::53 # second\n")
    monkeypatch.setattr(executor_probe, "RESOLV_CONF", str(file))
    assert nameservers() == ["192.0.2.53", "2001:db8::53"]
    file.unlink()
    assert nameservers() == []


def cluster_id_in(answer: bytes) -> str:
    """The id that is read out of ``answer`` from the other end of a connection."""

    def send(broker_end: socket.socket) -> None:
        broker_end.sendall(answer)
        broker_end.shutdown(socket.SHUT_WR)

    return cluster_id_from(send)


def cluster_id_from(send: Callable[[socket.socket], None], seconds: float = 60) -> str:
    """The id that is read while ``send`` uses the other end of the connection."""
    client_end, broker_end = socket.socketpair()

    def use() -> None:
        with contextlib.suppress(OSError):  # a connection may be closed before the end
            send(broker_end)

    with broker_end:
        sender = threading.Thread(target=use)
        sender.start()
        with client_end:
            id = cluster_id(client_end, time.monotonic() + seconds)
        sender.join()
    return id


def metadata(cluster: bytes | None, correlation: int = 7) -> bytes:
    """Two brokers, one of them in a rack, then the cluster's id."""
    brokers = [struct.pack(">ih2sih", 1, 2, b"k1", 9092, -1)]
    brokers += [struct.pack(">ih2sih1s", 2, 2, b"k2", 9092, 1, b"a")]
    cluster_field = (
        struct.pack(">h", -1) if cluster is None else struct.pack(">h", len(cluster)) + cluster
    )
    return frame(struct.pack(">ii", correlation, 2) + b"".join(brokers) + cluster_field + b"\0" * 8)


def long(answer: bytes, size: int) -> bytes:
    """``answer`` with as many bytes behind it that its size is ``size``."""
    return struct.pack(">i", size) + answer[4:].ljust(size, b"\0")


@pytest.mark.parametrize(("answer", "id"), [
    (metadata(b"5L6g3nShT-eMCtK-X86swQ"), "5L6g3nShT-eMCtK-X86swQ"),
    (metadata(None), ""),
    (metadata(b"C", correlation=8), ""),
    (metadata(b"C")[:20], ""),
    (long(metadata(b"C"), (1 << 20) - 1), "C"),
    (long(metadata(b"C"), 1 << 20), ""),
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", ""),
    (b"", ""),
    (metadata(b"x" * 30_000), "x" * 255),
    (frame(struct.pack(">iiih", 7, 2**31 - 1, 1, -12) + b"\0" * 40), ""),
], ids=[
    "id", "none", "another's", "cut", "long", "too long", "no broker", "nothing", "long id", "back",
])  # fmt: skip
def test_which_cluster_a_broker_says_it_is_of(answer: bytes, id: str) -> None:
    assert cluster_id_in(answer) == id


def test_what_comes_in_pieces_is_read_to_its_end() -> None:
    answer = metadata(b"5L6g3nShT-eMCtK-X86swQ")

    def send(broker_end: socket.socket) -> None:
        broker_end.recv(100)
        for chunk in (answer[:2], answer[2:9], answer[9:] + b"more"):
            time.sleep(0.01)
            broker_end.sendall(chunk)

    assert cluster_id_from(send) == "5L6g3nShT-eMCtK-X86swQ"


def test_a_broker_is_asked_for_metadata_of_no_topic() -> None:
    client_end, broker_end = socket.socketpair()
    with client_end, broker_end:
        broker_end.shutdown(socket.SHUT_WR)
        assert cluster_id(client_end, time.monotonic() + 60) == ""
        # length, key 3 (metadata), version 2, correlation, no client id, no topics
        assert broker_end.recv(100) == bytes.fromhex("0000000e 0003 0002 00000007 ffff 00000000")


@given(st.binary(max_size=200))
def test_whatever_answers_is_no_error(answer: bytes) -> None:
    assert isinstance(cluster_id_in(answer), str)


def test_the_id_that_spark_gives_is_the_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_EXECUTOR_ID", "7")
    assert executor_id() == "7"


def test_elsewhere_an_executor_is_told_by_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_EXECUTOR_ID", raising=False)
    assert executor_id() == f"pid-{os.getppid()}"


PROGRAM = """
import os, sys
if os.fork() == 0:
    sys.path.insert(0, sys.argv[1])
    import executor_probe
    print(executor_probe.executor_id(), flush=True)
    os._exit(0)
os.wait()
"""


def test_a_worker_finds_the_executor_it_belongs_to() -> None:
    """The worker reads the command line of its JVM, which may be a parent's parent."""
    home = str(Path(executor_probe.__file__).parent)
    environment = {key: value for key, value in os.environ.items() if key != "SPARK_EXECUTOR_ID"}
    command = [sys.executable, "-c", PROGRAM, home, "--executor-id", "12", "--cores", "1"]
    completed = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert completed.stdout == "12\n", completed.stderr


def test_the_probe_travels_by_value_without_earshot() -> None:
    """An executor unpickles it where earshot is not installed."""
    cloudpickle.register_pickle_by_value(executor_probe)  # type: ignore[no-untyped-call]
    look = prober([("INTERNAL", 1, "127.0.0.1", 1, True)], 1.0)
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
    completed = subprocess.run([sys.executable, "-c", program], input=payload, capture_output=True)
    assert completed.stdout.strip() == b"1", completed.stderr.decode()


def test_a_broker_that_answers_a_byte_at_a_time_is_left_in_time() -> None:
    def drip(broker_end: socket.socket) -> None:
        broker_end.sendall(struct.pack(">i", (1 << 20) - 1))  # it would take hours
        while True:
            time.sleep(0.05)
            broker_end.sendall(b"\0")

    assert cluster_id_from(drip, 0.5) == ""
