"""A git repository over HTTPS on this machine, as `pulumi package add` needs it."""

import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from toolchain.paths import ROOT

HTTPS = 443
"""The port. Another one would put a colon into the folder's name, in which `venv` fails."""


@contextmanager
def serving(folder: Path) -> Iterator[Path]:
    """Serves the bare repositories in ``folder`` as https://localhost. Yields the file of its CA.

    Raises PermissionError if only root may bind the port.
    """
    certificate = folder / "server.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
         "-keyout", certificate, "-out", folder / "certificate.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    with certificate.open("a") as file:
        file.write((folder / "certificate.pem").read_text())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = ThreadingHTTPServer(("127.0.0.1", HTTPS), _handler(folder))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield folder / "certificate.pem"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def publish(repository: Path, tag: str) -> None:
    """Creates a bare ``repository``. Its ``tag`` has this checkout's files, committed or not."""
    subprocess.run(["git", "init", "--quiet", "--bare", repository], check=True)
    identity = {f"GIT_{role}_{field}": "test@example.com"
           for role in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")}  # fmt: skip
    environment = {**os.environ, **identity, "GIT_DIR": str(repository), "GIT_WORK_TREE": str(ROOT)}

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE,
            text=True,
        ).stdout.strip()  # fmt: skip

    git("add", "--all")
    commit = git("commit-tree", "-m", "earshot", git("write-tree"))
    git("update-ref", "refs/heads/main", commit)
    git("symbolic-ref", "HEAD", "refs/heads/main")
    git("update-ref", f"refs/tags/{tag}", commit)


def _handler(folder: Path) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Git's own CGI program for the smart protocol."""

        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

        def _answer(self, body: bytes) -> None:
            path, _, query = self.path.partition("?")
            variables = {
                "GIT_PROJECT_ROOT": str(folder),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "REMOTE_ADDR": "127.0.0.1",
            }
            completed = subprocess.run(
                ["git", "http-backend"], env={**os.environ, **variables}, input=body,
                stdout=subprocess.PIPE, check=False,
            )  # fmt: skip
            head, _, content = completed.stdout.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().splitlines() if line)
            self.send_response(int(fields.pop("Status", "200").split()[0]))
            for name, value in fields.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    return Handler
