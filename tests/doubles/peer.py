"""Doubles of programs that may answer at an address: brokers with any answer, and others.

A double counts its connections. It implements the versions that earshot's own exchange uses;
librdkafka gets no answer from it.
"""

import contextlib
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from earshot.listeners.address import Address

Reply = Callable[[socket.socket, bytes], None]
"""The answer to the request on a connection, without its length."""


@dataclass
class Peer:
    """A listening double, and the requests of its clients."""

    address: Address
    connections: int = 0
    """The number of accepted connections."""
    keys: list[int] = field(default_factory=list)
    """The requests that were sent."""


Serve = Callable[[socket.socket, Peer, int], None]
"""The function that serves a connection: its socket, the peer, and the connection's number from 0.
Numbers are assigned in the order of accepting, because the threads of two connections may begin in
any order."""


@contextlib.contextmanager
def listening(serve: Serve) -> Iterator[Peer]:
    """Yields a peer. ``serve`` serves each of its connections in a thread."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.settimeout(20)
            number, _ = self.client_address
            with contextlib.suppress(OSError, struct.error):
                serve(self.request, peer, number)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False
        request_queue_size = 128

        def get_request(self) -> tuple[socket.socket, object]:
            connection, client = super().get_request()
            peer.connections += 1
            return connection, (peer.connections - 1, client)

    with Server(("127.0.0.1", 0), Handler) as server:
        peer = Peer(Address("127.0.0.1", server.server_address[1]))
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield peer
        finally:
            server.shutdown()
            thread.join()


def receive(connection: socket.socket, count: int) -> bytes:
    """The next ``count`` bytes. Raises OSError if the client has disconnected."""
    data = b""
    while len(data) < count:
        chunk = connection.recv(count - len(data))
        if not chunk:
            raise ConnectionResetError
        data += chunk
    return data


def kafka(replies: Mapping[int, Reply]) -> Serve:
    """Answers requests by their key. One without an entry ends the connection, like Kafka."""

    def serve(connection: socket.socket, peer: Peer, number: int) -> None:
        while True:
            (size,) = struct.unpack(">i", receive(connection, 4))
            request = receive(connection, size)
            (key,) = struct.unpack_from(">h", request)
            peer.keys.append(key)
            if key not in replies:
                return
            replies[key](connection, request)

    return serve


def frame(content: bytes) -> bytes:
    """``content`` after its length, as Kafka's protocol sends it."""
    return struct.pack(">i", len(content)) + content


def reply(content: bytes) -> Reply:
    """``content`` as an answer of Kafka's."""

    def send(connection: socket.socket, request: bytes) -> None:
        connection.sendall(frame(request[4:8] + content))

    return send


def raw(content: bytes) -> Reply:
    """``content``, which may be no valid answer."""
    return lambda connection, request: connection.sendall(content)


def text(value: str | bytes | None) -> bytes:
    if value is None:
        return struct.pack(">h", -1)
    data = value.encode() if isinstance(value, str) else value
    return struct.pack(">h", len(data)) + data


def metadata(
    brokers: Mapping[int, Address] | Sequence[tuple[int, Address]], cluster: str | None = "C"
) -> bytes:
    """The answer to a metadata request, of version 2, for no topics."""
    pairs = list(brokers.items()) if isinstance(brokers, Mapping) else list(brokers)
    brokers_part = b"".join(
        struct.pack(">i", id) + text(host) + struct.pack(">i", port) + text(None)
        for id, (host, port) in pairs
    )
    return struct.pack(">i", len(pairs)) + brokers_part + text(cluster) + struct.pack(">ii", 1, 0)


def own_configuration(id: int) -> Reply:
    """Broker ``id``'s answer to a request for the configuration of a broker."""

    def send(connection: socket.socket, request: bytes) -> None:
        # client id, count of resources, type of the first, its name
        at = 10 + struct.unpack_from(">h", request, 8)[0] + 5
        length = struct.unpack_from(">h", request, at)[0]
        topic_name = request[at + 2 : at + 2 + length].decode()
        message = f"Unexpected broker id, expected {id} or empty string, but received {topic_name}"
        error = (0, None) if topic_name == str(id) else (42, message)
        result = struct.pack(">h", error[0]) + text(error[1]) + b"\x04" + text(topic_name)
        reply(struct.pack(">ii", 0, 1) + result + struct.pack(">i", 0))(connection, request)

    return send


def broker(id: int, brokers: Mapping[int, Address], cluster: str = "C") -> dict[int, Reply]:
    """The correct replies of a broker to the doctor's requests without records."""
    return {3: reply(metadata(brokers, cluster)), 32: own_configuration(id)}


@contextlib.contextmanager
def forwarder(*targets: Address) -> Iterator[Peer]:
    """A TCP forwarder that connects to each of ``targets`` in turn."""

    def serve(connection: socket.socket, peer: Peer, number: int) -> None:
        target = targets[number % len(targets)]
        with socket.create_connection(target) as onward:
            onward.settimeout(20)
            return_thread = threading.Thread(target=_pipe, args=(onward, connection), daemon=True)
            return_thread.start()
            _pipe(connection, onward)
            return_thread.join()

    with listening(serve) as peer:
        yield peer


Swallows = Callable[[int | None, int], bool]
"""True for a message that is lost, by the key of a request (None for an answer) and its size."""


@contextlib.contextmanager
def swallowing(target: Address, swallows: Swallows) -> Iterator[Peer]:
    """A forwarder of Kafka's messages to ``target``.

    After a lost message the connection stays open and forwards nothing more.
    """
    has_ended = threading.Event()

    def carry(source: socket.socket, sink: socket.socket, is_request: bool) -> None:
        with contextlib.suppress(OSError, struct.error):
            while True:
                head = receive(source, 4)
                message = receive(source, *struct.unpack(">i", head))
                key = struct.unpack_from(">h", message)[0] if is_request else None
                if swallows(key, len(message)):
                    has_ended.wait(60)
                    break
                sink.sendall(head + message)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def serve(connection: socket.socket, peer: Peer, number: int) -> None:
        with socket.create_connection(target) as onward:
            return_thread = threading.Thread(
                target=carry, args=(onward, connection, False), daemon=True
            )
            return_thread.start()
            connection.settimeout(None)
            carry(connection, onward, True)
            return_thread.join()

    with listening(serve) as peer:
        try:
            yield peer
        finally:
            has_ended.set()


def _pipe(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
