"""Another user of this machine: what that user gets from each port, and which files it reads.

If root runs this file, it switches to the unprivileged user of the system (`nobody`). For another
user it stays that user, and checks ports only. It answers each line of JSON on its input with one
on its output.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

NOBODY = 65534
SECONDS = 2.0
MOST = 1 << 20
"""Maximum bytes of an answer that are read."""
BLOCKS = 40
"""The number of requested broadcast blocks of Spark; a short job has fewer."""
SPARK_RPC = (
    b"\0"  # no address of a sender
    b"\1\0\x09localhost\0\0\0\1"
    b"\0\7nothing"  # an endpoint that does not exist
    b"\xac\xed\0\5t\0\2hi"  # a string, serialized by Java
)
OBJECT_READ = b"Could not find nothing"
"""The answer of a driver that has read the object in `SPARK_RPC`."""
PY4J = b"r\nu\njava.lang.System\nrj\ne\n"
HTTP = b"GET / HTTP/1.0\r\n\r\n"


class Stranger:
    """The process of another user, to which a test sends questions; a context manager."""

    def __init__(self, network: int = 0) -> None:
        """Starts it in the network namespace of the process ``network``; 0: that of the test."""
        in_namespace = ("nsenter", "--net", f"--target={network}") if network else ()
        self._process = subprocess.Popen(
            [*in_namespace, sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Stranger:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(10)

    def answers(self, ports: Iterable[int], jar: str = "") -> list[tuple[int, str, bytes]]:
        """Port, question and answer of ports on the loopback; ``jar`` is a jar of Spark."""
        answers = self._ask({"ports": list(ports), "jar": jar})
        return [(port, question, bytes.fromhex(answer)) for port, question, answer in answers]

    def readable(self, folder: Path, secrets: Iterable[str] = ()) -> tuple[list[str], list[str]]:
        """The files below ``folder`` that this user can read, and those of them with a secret.

        Modes of the folders above do not count: they are others elsewhere.
        """
        files = self._ask({"folder": str(folder), "secrets": list(secrets)})
        return files["read"], files["holds"]

    def _ask(self, question: Mapping[str, Any]) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def main() -> None:
    for line in sys.stdin:
        question = json.loads(line)
        look = _files if "folder" in question else _ports
        print(json.dumps(_as_another_user(look, question)), flush=True)


def _as_another_user(look: Any, question: dict[str, Any]) -> Any:
    """The user of this process opens the folder; the unprivileged user does the rest."""
    opened_descriptors = os.open(question["folder"], os.O_PATH) if "folder" in question else None
    if os.getuid() == 0:
        os.setgroups([])
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
    try:
        return look(question, opened_descriptors)
    finally:
        if os.getuid() == 0:
            os.seteuid(0)
            os.setegid(0)
        if opened_descriptors is not None:
            os.close(opened_descriptors)


def _files(question: dict[str, Any], opened_descriptors: int) -> dict[str, list[str]]:
    secrets = [secret.encode() for secret in question["secrets"]]
    files: dict[str, list[str]] = {"read": [], "holds": []}
    with contextlib.suppress(PermissionError):
        for parent, _, names, within in os.fwalk(".", dir_fd=opened_descriptors):
            for name in names:
                path = f"{parent}/{name}".removeprefix("./")
                with contextlib.suppress(OSError):
                    # no pipe is waited for, no link followed
                    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW
                    with os.fdopen(os.open(name, flags, dir_fd=within), "rb") as file:
                        content = file.read()
                    files["read"].append(path)
                    if any(secret in content for secret in secrets):
                        files["holds"].append(path)
    return files


def _ports(question: dict[str, Any], _: None) -> list[tuple[int, str, str]]:
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda port: _answers(port, question["jar"]), question["ports"])
        return list(chain(*answers))


def _answers(port: int, jar: str) -> list[tuple[int, str, str]]:
    rpc_question = _frame(3, struct.pack(">qi", 1, len(SPARK_RPC)), SPARK_RPC)
    answers = [("http", _first_answer(port, HTTP)), ("py4j", _first_answer(port, PY4J))]
    spark = [("spark rpc", _first_answer(port, rpc_question))]
    spark.append(("spark jar", _first_answer(port, _frame(6, _text(f"/jars/{jar}")))))
    answers += spark
    if any(content for _, content in spark):
        answers += [("spark block", _block(port, number)) for number in range(BLOCKS)]
    return [(port, question, content.hex()) for question, content in answers]


def _frame(kind: int, *body: bytes) -> bytes:
    """A message of Spark's transport: its length, its kind, its content."""
    content = bytes([kind]) + b"".join(body)
    return struct.pack(">q", 8 + len(content)) + content


def _text(text: str) -> bytes:
    return struct.pack(">i", len(text)) + text.encode()


@contextlib.contextmanager
def _connect(port: int) -> Iterator[socket.socket]:
    with socket.socket() as new_socket:
        new_socket.settimeout(SECONDS)
        new_socket.connect(("127.0.0.1", port))
        yield new_socket


def _first_answer(port: int, question: bytes) -> bytes:
    """The answer, up to a pause of 0.3 s."""
    content = b""
    with contextlib.suppress(OSError), _connect(port) as connection:
        connection.sendall(question)
        connection.settimeout(0.3)
        while len(content) < MOST and (chunk := connection.recv(1 << 16)):
            content += chunk
    return content


def _block(port: int, number: int) -> bytes:
    """The content of a broadcast block of Spark, or the answer instead of it."""
    name = f"broadcast_{number}_piece0"
    stream_request = b"\0" + _text("app") + _text("driver") + struct.pack(">i", 1) + _text(name)
    with contextlib.suppress(OSError, struct.error), _connect(port) as connection:
        received = connection.makefile("rb")

        def exchange(question: bytes) -> bytes:
            connection.sendall(question)
            (length,) = struct.unpack(">q", received.read(8))
            return received.read(min(max(0, length - 8), MOST))

        answer = exchange(_frame(3, struct.pack(">qi", 1, len(stream_request)), stream_request))
        if answer[:1] != b"\4":
            return answer
        # kind, request, length, and then the type of the message, its stream, its chunks
        (stream,) = struct.unpack_from(">q", answer, 1 + 8 + 4 + 1)
        return exchange(_frame(0, struct.pack(">qi", stream, 0)))
    return b""


if __name__ == "__main__":
    main()
