"""A server on a port that answers an engine's requests, also as no real engine does."""

import contextlib
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Answer = bytes | Callable[[socket.socket], None]
"""The bytes of an answer, or a function that sends it."""
UPGRADED = (
    b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n"
    b"Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
)
"""The head of the answer to a command that is started in a container."""
CONTAINER = "a" * 64


def document(content: Any, status: str = "200 OK", header: str = "X-Double: yes") -> bytes:
    """An answer with ``content``: bytes as they are, other values as JSON."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{header}\r\n\r\n"
    return head.encode() + body


def frame(text: bytes, stream: int = 1) -> bytes:
    """``text`` as an engine sends the output of a command; stream 2 is stderr."""
    return bytes([stream, 0, 0, 0]) + len(text).to_bytes(4, "big") + text


_USUAL: Mapping[str, Answer] = {
    "GET /version": document({"ApiVersion": "1.41"}),
    "GET /v1.41/_ping": document(b"OK"),
    "GET /v1.41/info": document({"Name": "box", "SystemTime": "2026-01-01T01:00:00Z"}),
    "GET /v1.41/containers/json": document([]),
    "GET /v1.41/networks": document([]),
    "GET /v1.41/volumes": document({"Volumes": []}),
    "GET /v1.41/networks/[^/]+": document({"Name": "net", "Id": "c" * 64}),
    "POST /v1.41/containers/create": document({"Id": CONTAINER}, "201 Created"),
    "GET /v1.41/containers/[^/]+/json": document({"Id": CONTAINER, "Name": "/x", "Config": {}}),
    "POST /v1.41/containers/[^/]+/(start|stop)": document(b"", "204 No Content"),
    "PUT /v1.41/containers/[^/]+/archive": document(b""),
    "DELETE /v1.41/containers/[^/]+": document(b"", "204 No Content"),
    "POST /v1.41/containers/[^/]+/exec": document({"Id": "e" * 64}, "201 Created"),
    "GET /v1.41/exec/[^/]+/json": document({"ExitCode": 0}),
}


@contextlib.contextmanager
def engine_server(answers: Mapping[str, Answer]) -> Iterator[str]:
    """Yields the `tcp://` address of a server with ``answers``, by regular expressions for method
    and path. Other requests get the answers of an engine with nothing on it, or 404."""
    routes = {**answers, **{key: text for key, text in _USUAL.items() if key not in answers}}
    connections: list[socket.socket] = []
    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connections.append(server.accept()[0])
                    arguments = (connections[-1], routes)
                    threads.append(threading.Thread(target=_serve, args=arguments))
                    threads[-1].start()

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        finally:
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            accepting.join(60)
            for connection in connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join(60)


def _serve(connection: socket.socket, routes: Mapping[str, Answer]) -> None:
    with connection, contextlib.suppress(OSError), connection.makefile("rb") as requests:
        while line := requests.readline().decode():
            method, target, _ = line.split(" ")
            _skip_request(requests)
            request = f"{method} {target.partition('?')[0]}"
            answer = next(
                (answer for route, answer in routes.items() if re.fullmatch(route, request)),
                document({"message": "no such object"}, "404 Not Found"),
            )
            if callable(answer):
                answer(connection)
                return
            connection.sendall(answer)
            if answer.startswith(UPGRADED):
                return  # the end of the connection is that of the output


def _skip_request(requests: Any) -> None:
    """Reads the rest of a request: its headers and its body."""
    headers = {}
    while line := requests.readline().strip():
        name, _, value = line.decode().partition(": ")
        headers[name.lower()] = value
    if headers.get("transfer-encoding") == "chunked":
        while size := int(requests.readline(), 16):
            requests.read(size + 2)
        requests.readline()
    else:
        requests.read(int(headers.get("content-length", "0")))


def silent(head: bytes = b"") -> Callable[[socket.socket], None]:
    """An answer of ``head``, and then nothing until the client has left."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(head)
        while connection.recv(65536):
            pass

    return answer


def endless(head: bytes, chunk: bytes, pause: float = 0) -> Callable[[socket.socket], None]:
    """An answer of ``head``, and then ``chunk`` again and again until the client has left, with a
    ``pause`` in seconds after each."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(chunk)
            time.sleep(pause)

    return answer
