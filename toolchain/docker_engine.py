"""Whether a Docker engine answers, asked before any package is installed."""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from earshot import engine

VARIABLE = engine.VARIABLE
PING_SECONDS = 5.0
CLIENT_SECONDS = 15.0


def address(environment: Mapping[str, str] = os.environ) -> str:
    """The engine that Docker's own tools would talk to."""
    return environment.get(VARIABLE) or engine.DEFAULT


def answers(where: str) -> bool:
    """Whether an engine answers at the address ``where`` (``unix://``, ``tcp://``, ``ssh://``).

    This asks a socket of this machine directly, and any other through Docker's command line, which
    supports certificates and SSH.
    """
    url = urlsplit(where)
    if url.scheme == "unix":
        return _ping(Path(unquote(url.path)))
    client = shutil.which("docker")
    if client is None:
        return False
    command = [client, "--host", where, "version", "--format", "{{.Server.Version}}"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=CLIENT_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _ping(path: Path) -> bool:
    connection = _UnixConnection(path)
    try:
        connection.request("GET", "/_ping")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=PING_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PING_SECONDS)
        self.sock.connect(str(self._path))
