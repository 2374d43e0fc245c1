"""Resolves names and connects to addresses in a Spark executor.

Standard library only: executors lack earshot's packages. The module is sent to them by value, so it
must not refer to the rest of earshot.
"""

import os
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

RESOLV_CONF = "/etc/resolv.conf"
MAX_ID_LENGTH = 255
"""The maximum length (bytes) of a cluster id. Kafka's own ids have 22."""
Address = tuple[str, int, str, int, bool]
"""(listener, broker id, host, port, is PLAINTEXT). Only PLAINTEXT listeners are asked for their
cluster id."""


def prober(addresses: list[Address], seconds: float) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """A function for `mapPartitions` that yields one dictionary: the executor and its results.

    All addresses are tried in parallel, within ``seconds``.
    """

    def probe(_: Iterable[Any]) -> Iterator[dict[str, Any]]:
        from concurrent.futures import ThreadPoolExecutor

        def probe_address(address: Address) -> dict[str, Any]:
            listener, broker, host, port, plaintext = address
            row: dict[str, Any] = {"listener": listener, "broker": broker}
            row |= {"resolved": [], "cluster_id": ""}
            try:
                addrinfos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            except (OSError, ValueError) as error:  # ValueError: a label that IDNA cannot encode
                text = getattr(error, "strerror", None) or error
                return row | {"stage": "resolve", "error": f"{host}: {text}"}
            row["resolved"] = sorted({str(addrinfo[4][0]) for addrinfo in addrinfos})
            reason = ""
            for family, kind, protocol, _, socket_address in addrinfos:
                if reason and time.monotonic() > end:
                    break  # a name may have thousands of addresses
                try:  # a kernel without IPv6 makes no such socket
                    with socket.socket(family, kind, protocol) as connection:
                        connection.settimeout(max(0.1, (end - time.monotonic()) / 2))
                        connection.connect(socket_address)
                        if plaintext:
                            row["cluster_id"] = cluster_id(connection, end)
                        return row | {"stage": "", "error": ""}
                except OSError as error:
                    reason = reason or f"{socket_address[0]}:{port}: {error.strerror or error}"
            return row | {"stage": "tcp", "error": reason}

        end = time.monotonic() + seconds
        with ThreadPoolExecutor(min(32, len(addresses))) as pool:
            rows = list(pool.map(probe_address, addresses))
        # a fast task would leave its executor free for the next task: wait, to use all executors
        time.sleep(max(0.0, min(0.3, end - time.monotonic())))
        yield {
            "executor": executor_id(),
            "host": socket.gethostname(),
            "resolvers": nameservers(),
            "reached": rows,
        }

    return probe


def cluster_id(connection: socket.socket, end: float) -> str:
    """The cluster id of the broker at the other end; empty if it gives none before ``end`` (by
    `time.monotonic`).

    Sends a metadata request of version 2 for no topics: https://kafka.apache.org/protocol
    """

    def receive(size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            seconds_left = end - time.monotonic()
            connection.settimeout(max(0.01, seconds_left))
            chunk = connection.recv(size - len(data)) if seconds_left > 0 else b""
            if not chunk:
                raise OSError
            data += chunk
        return bytes(data)

    def text_end(offset: int) -> int:
        # null is -1; a smaller length must not move backwards, which could loop forever
        (length,) = struct.unpack_from(">h", answer, offset)
        return offset + 2 + max(0, int(length))

    try:
        # key 3, version 2, an id, no client id, an empty list of topics
        connection.sendall(struct.pack(">ihhihi", 14, 3, 2, 7, -1, 0))
        (size,) = struct.unpack(">i", receive(4))
        answer = receive(size) if 0 < size < 1 << 20 else b""
        correlation, brokers = struct.unpack_from(">ii", answer)
        if correlation != 7:
            return ""
        offset = 8
        for _ in range(brokers):
            offset = text_end(text_end(offset + 4) + 4)  # id, host; port, rack
        return answer[offset + 2 : min(text_end(offset), offset + 2 + MAX_ID_LENGTH)].decode()
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
    """Spark's id of the executor of this Python worker, or the pid of its JVM."""
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
