"""A child's output for the engine: one queue of chunks, in the order of arrival."""

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import IO

from pulumi.runtime.proto import language_pb2

from pulumi_python_host.children import Children

Chunk = language_pb2.RunPluginResponse
READ_BYTES = 65536
# A grandchild may hold the pipes open; the plugin's own output has arrived well before.
DRAIN_SECONDS = 1.0


class Output:
    """Iterating yields the chunks until the exit code has been sent or the output is closed."""

    def __init__(self) -> None:
        self._chunks: SimpleQueue[Chunk | None] = SimpleQueue()

    def stdout(self, data: bytes) -> None:
        self._chunks.put(Chunk(stdout=data))

    def stderr(self, data: bytes) -> None:
        self._chunks.put(Chunk(stderr=data))

    def finish(self, code: int) -> None:
        """Send the exit code as the last chunk; for a signal, 128 + its number, as in a shell."""
        self._chunks.put(Chunk(exitcode=code if code >= 0 else 128 - code))
        self.close()

    def close(self) -> None:
        self._chunks.put(None)

    def __iter__(self) -> Iterator[Chunk]:
        while (chunk := self._chunks.get()) is not None:
            yield chunk

    def follow(
        self,
        child: subprocess.Popen[bytes],
        children: Children,
        first_line: Callable[[bytes], None] | None = None,
    ) -> None:
        """Send everything that ``child`` prints, then its exit code.

        ``first_line`` gets the first line of stdout instead, stripped; it is empty if the child
        ended without one.
        """
        assert child.stdout is not None and child.stderr is not None
        pumps = [
            threading.Thread(
                target=_pump, args=(child.stdout, self.stdout, first_line), daemon=True
            ),
            threading.Thread(target=_pump, args=(child.stderr, self.stderr), daemon=True),
        ]
        for pump in pumps:
            pump.start()

        def finish() -> None:
            code = children.wait(child)
            for pump in pumps:
                pump.join(DRAIN_SECONDS)
            self.finish(code)

        threading.Thread(target=finish, daemon=True).start()


def _pump(
    pipe: IO[bytes],
    send: Callable[[bytes], None],
    first_line: Callable[[bytes], None] | None = None,
) -> None:
    with pipe:
        if first_line is not None:
            line, remaining_bytes = _read_line(pipe)
            first_line(line)
            if remaining_bytes:
                send(remaining_bytes)
        while data := os.read(pipe.fileno(), READ_BYTES):
            send(data)


def _read_line(pipe: IO[bytes]) -> tuple[bytes, bytes]:
    """The first line, stripped, and the bytes read after it."""
    data = b""
    while b"\n" not in data and (chunk := os.read(pipe.fileno(), READ_BYTES)):
        data += chunk
    line, _, remaining_bytes = data.partition(b"\n")
    return line.strip(), remaining_bytes
