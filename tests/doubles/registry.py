"""A double of an image registry (API version 2) with one small image, under one repository and tag.

An engine trusts a registry on loopback without TLS. One with a password asks for it as ECR does.
One with a certificate takes TLS.
"""

import base64
import contextlib
import gzip
import hashlib
import io
import json
import ssl
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

REPOSITORY: Final = "earshot-test/pulled"
_KIND = "application/vnd.docker.distribution.manifest.v2+json"


@contextlib.contextmanager
def registry(
    tag: str,
    password: str = "",
    address: tuple[str, int] = ("127.0.0.1", 0),
    certificate: Path | None = None,
) -> Iterator[str]:
    """The address of a registry with `REPOSITORY` and ``tag``, for the user `AWS` with the
    ``password``; without a password, for all users. ``certificate`` is a PEM file with its key."""
    answers = dict(_answers(tag))
    login = f"Basic {base64.b64encode(f'AWS:{password}'.encode()).decode()}"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if password and self.headers.get("Authorization") != login:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="ecr"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            kind, body = answers.get(self.path, ("application/json", b""))
            if self.path != "/v2/" and not body:
                error = {"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}
                body = json.dumps(error).encode()
                self.send_response(404)
            else:
                self.send_response(200)
                self.send_header("Docker-Content-Digest", _digest(body))
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(address, Handler) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"{address[0]}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _answers(tag: str) -> Iterator[tuple[str, tuple[str, bytes]]]:
    """The media type and content of each file of the registry, by path."""
    files = io.BytesIO()
    with tarfile.open(fileobj=files, mode="w") as layer:
        member = tarfile.TarInfo("hello")
        member.size = 2
        layer.addfile(member, io.BytesIO(b"hi"))
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [_digest(files.getvalue())]},
        }
    ).encode()
    layer_blob = gzip.compress(files.getvalue(), mtime=0)
    parts = {
        "application/vnd.docker.container.image.v1+json": config,
        "application/vnd.docker.image.rootfs.diff.tar.gzip": layer_blob,
    }
    manifests = [
        {"mediaType": kind, "size": len(body), "digest": _digest(body)}
        for kind, body in parts.items()
    ]
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": _KIND,
            "config": manifests[0],
            "layers": manifests[1:],
        }
    ).encode()
    for name in (tag, _digest(manifest)):
        yield f"/v2/{REPOSITORY}/manifests/{name}", (_KIND, manifest)
    for body in parts.values():
        yield f"/v2/{REPOSITORY}/blobs/{_digest(body)}", ("application/octet-stream", body)


def _digest(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"
