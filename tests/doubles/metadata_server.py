"""A double of a broker that does nothing but answer for metadata, with any host and any port.

It speaks the oldest form of the protocol (Metadata version 0), which librdkafka takes with
`CLIENT`; a real broker refuses to advertise some of what clients must survive.
"""

from __future__ import annotations

import contextlib
import socketserver
import struct
import threading
from collections.abc import Iterator, Mapping
from typing import Final

from earshot.listeners.address import Address

CLIENT: Final = {"api.version.request": "false", "broker.version.fallback": "0.9.0"}
"""Client properties for such a broker."""
_METADATA: Final = 3
_FILLER: Final = b"x" * 900
"""The name of a topic: of short answers librdkafka reserves too little room for the hosts."""


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        while size := self.rfile.read(4):
            request = self.rfile.read(struct.unpack(">i", size)[0])
            api, version, correlation = struct.unpack(">hhi", request[:8])
            if (api, version) != (_METADATA, 0):
                return
            answer = struct.pack(">i", correlation) + self.server.metadata
            self.wfile.write(struct.pack(">i", len(answer)) + answer)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    metadata = b""


@contextlib.contextmanager
def metadata_server(brokers: Mapping[int, Address]) -> Iterator[Address]:
    """Yields where a listener of ``brokers``, by id, answers; their ids must not be negative."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.metadata = _metadata(brokers)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield Address("127.0.0.1", server.server_address[1])
        finally:
            server.shutdown()
            thread.join()


def _metadata(brokers: Mapping[int, Address]) -> bytes:
    listed = b"".join(
        struct.pack(">i", id) + _text(host.encode()) + struct.pack(">i", port)
        for id, (host, port) in brokers.items()
    )
    topic = struct.pack(">h", 0) + _text(_FILLER) + struct.pack(">i", 0)
    return struct.pack(">i", len(brokers)) + listed + struct.pack(">i", 1) + topic


def _text(value: bytes) -> bytes:
    return struct.pack(">h", len(value)) + value
