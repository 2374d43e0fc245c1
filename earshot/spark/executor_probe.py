"""What one Spark executor resolves and reaches. Standard library only: executors lack our packages.

Sent to them by value, so nothing here may refer to the rest of earshot.
"""

import os
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

RESOLV_CONF = "/etc/resolv.conf"
LONGEST_ID = 255
"""Bytes of a cluster's id that are kept; Kafka's have 22."""
Address = tuple[str, int, str, int, bool]
"""Listener, broker id, host, port, and whether it speaks plaintext, so that it can be asked."""


def prober(addresses: list[Address], seconds: float) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """A function for `mapPartitions` that yields one dictionary: the executor and its results.

    Every address is tried at the same time, for ``seconds`` at most.
    """

    def probe(_: Iterable[Any]) -> Iterator[dict[str, Any]]:
        from concurrent.futures import ThreadPoolExecutor

        def look(address: Address) -> dict[str, Any]:
            listener, broker, host, port, plaintext = address
            row: dict[str, Any] = {"listener": listener, "broker": broker}
            row |= {"resolved": [], "cluster_id": ""}
            try:
                answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            except (OSError, ValueError) as error:  # ValueError: a label that IDNA cannot encode
                text = getattr(error, "strerror", None) or error
                return row | {"stage": "resolve", "error": f"{host}: {text}"}
            row["resolved"] = sorted({str(answer[4][0]) for answer in answers})
            reason = ""
            for family, kind, protocol, _, place in answers:
                try:  # a kernel without IPv6 makes no such socket
                    with socket.socket(family, kind, protocol) as attempt:
                        attempt.settimeout(max(0.1, (end - time.monotonic()) / 2))
                        attempt.connect(place)
                        if plaintext:
                            row["cluster_id"] = cluster_id(attempt, end)
                        return row | {"stage": "", "error": ""}
                except OSError as error:
                    reason = reason or f"{place[0]}:{port}: {error.strerror or error}"
            return row | {"stage": "tcp", "error": reason}

        end = time.monotonic() + seconds
        with ThreadPoolExecutor(min(32, len(addresses))) as pool:
            reached = list(pool.map(look, addresses))
        # a task ends at once where its executor is the only free one; this spreads tasks out
        time.sleep(max(0.0, min(0.3, end - time.monotonic())))
        yield {
            "executor": executor_id(),
            "host": socket.gethostname(),
            "resolvers": nameservers(),
            "reached": reached,
        }

    return probe


def cluster_id(connected: socket.socket, end: float) -> str:
    """The id of the cluster that the broker at the other end belongs to; empty if it says none
    before ``end`` (by `time.monotonic`).

    By a metadata request of version 2 for no topics: https://kafka.apache.org/protocol
    """

    def received(size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            left = end - time.monotonic()
            connected.settimeout(max(0.01, left))
            part = connected.recv(size - len(data)) if left > 0 else b""
            if not part:
                raise OSError
            data += part
        return bytes(data)

    def after(at: int) -> int:
        # null is -1; a smaller length would lead back in the answer, for ever
        (length,) = struct.unpack_from(">h", answer, at)
        if length < -1:
            raise ValueError
        return at + 2 + max(0, int(length))

    try:
        # key 3, version 2, an id, no client id, an empty list of topics
        connected.sendall(struct.pack(">ihhihi", 14, 3, 2, 7, -1, 0))
        (size,) = struct.unpack(">i", received(4))
        answer = received(size) if 0 < size < 1 << 20 else b""
        correlation, brokers = struct.unpack_from(">ii", answer)
        if correlation != 7:
            return ""
        at = 8
        for _ in range(brokers):
            at = after(after(at + 4) + 4)  # id, host; port, rack
        return answer[at + 2 : min(after(at), at + 2 + LONGEST_ID)].decode()
    except (OSError, ValueError, struct.error):
        return ""


def nameservers() -> list[str]:
    """The name servers of the machine's resolver configuration."""
    try:
        with open(RESOLV_CONF, errors="replace") as file:  # noqa: PTH123 - shipped by value
            lines = [line.split() for line in file]
    except OSError:
        return []
    return [line[1] for line in lines if len(line) > 1 and line[0] == "nameserver"]


def executor_id() -> str:
    """The id that Spark gave the executor this Python worker belongs to, else its JVM's pid."""
    if "SPARK_EXECUTOR_ID" in os.environ:
        return os.environ["SPARK_EXECUTOR_ID"]
    pid = os.getpid()
    while pid > 1:
        try:
            with open(f"/proc/{pid}/cmdline") as file:  # noqa: PTH123
                words = file.read().split("\0")
            with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
                parent = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            break
        if "--executor-id" in words:
            return words[words.index("--executor-id") + 1]
        pid = parent
    return f"pid-{os.getppid()}"
