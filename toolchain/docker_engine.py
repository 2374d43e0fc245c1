"""Whether a Docker engine answers, asked before any package is installed."""

import os
import shutil
import socket
import subprocess
from collections.abc import Mapping
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
        return _ping(unquote(url.path))
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


def _ping(path: str) -> bool:
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PING_SECONDS)
            connection.connect(path)
            connection.sendall(b"GET /_ping HTTP/1.1\r\nHost: localhost\r\n\r\n")
            with connection.makefile("rb") as answer:
                return answer.readline().split()[1:2] == [b"200"]
    except OSError:
        return False
