"""The part of a Docker engine that a client with a certificate needs at first."""

import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ABOUT = {"ID": "0b6a6b2e", "ServerVersion": "25.0.8"}


ANSWERS: Mapping[str, Any] = {
    "_ping": "OK",
    "version": {"ApiVersion": "1.44", "Version": ABOUT["ServerVersion"]},
    "info": ABOUT,
}
"""The answers, by the last part of the path."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answers: Mapping[str, Any] = ANSWERS

    def do_GET(self) -> None:
        answer = self.answers[self.path.rpartition("/")[2]]
        text = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *arguments: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    def handle_error(self, *arguments: Any) -> None:
        """A refused client is no error of the engine."""


@contextmanager
def tls_engine(
    folder: Path, authority: str, pair: str, port: int = 0, answers: Mapping[str, Any] = ANSWERS
) -> Iterator[int]:
    """The port of an engine that accepts clients of ``authority``. ``pair`` is its own key and
    certificate."""

    class Handler(_Handler):
        pass

    Handler.answers = answers
    (folder / "authority.pem").write_text(authority)
    (folder / "server.pem").write_text(pair)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    context.load_verify_locations(folder / "authority.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    with _Server(("127.0.0.1", port), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
