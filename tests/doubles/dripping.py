"""A server whose answer does not end."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from itertools import chain, repeat

PAUSE_SECONDS = 0.02


@contextlib.contextmanager
def dripping(text: bytes) -> Iterator[int]:
    """A port that answers one request with ``text``, byte by byte, and repeats the last one."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        has_ended = threading.Event()

        def answer() -> None:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(4096)
                for byte in chain(text, repeat(text[-1])):
                    connection.sendall(bytes([byte]))
                    if has_ended.wait(PAUSE_SECONDS):
                        return

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            has_ended.set()
            thread.join(60)
