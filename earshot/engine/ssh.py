"""Connects to an engine at `ssh://`, through a local socket and this machine's ssh.

Each connection is an ssh process that runs `docker system dial-stdio` on the remote machine, like
Docker's command line. So it uses the user's configuration, keys, agent and jump hosts. Docker's SDK
has another implementation of ssh, which supports few of these.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from earshot.errors import EarshotError

CONNECT_SECONDS: Final = 10
END_SECONDS: Final = 5.0


class Tunnel:
    """A local socket that is connected to the engine at an `ssh://` address."""

    def __init__(self, address: str, folder: Path) -> None:
        self._command = [*ssh_command(address), "docker", "system", "dial-stdio"]
        self._socket = folder / "docker.sock"
        self._said = folder / "said"
        self._said.touch()
        self._children: list[subprocess.Popen[bytes]] = []
        self._server = socket.socket(socket.AF_UNIX)
        try:
            self._server.bind(str(self._socket))
        except OSError as reason:
            self._server.close()
            raise EarshotError(
                f"Docker engine at {address}",
                observed=f"no socket can be made at {self._socket} ({reason.strerror or reason})",
                remedy="let TMPDIR name a folder with a short path that this user can write",
            ) from None
        self._server.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """The `unix://` address of the socket, for Docker's SDK."""
        return f"unix://{self._socket}"

    def last_output(self) -> str:
        """The last error line of ssh, or of the remote command."""
        lines = self._said.read_text(errors="replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def close(self) -> None:
        """Ends every connection."""
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._server.close()
        self._thread.join(END_SECONDS)
        for child in self._children:
            child.terminate()
        for child in self._children:
            try:
                child.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def _serve(self) -> None:
        with contextlib.suppress(OSError), self._said.open("ab") as output:
            while True:
                connection, _ = self._server.accept()
                with connection:  # owned by the child from now on
                    child = subprocess.Popen(
                        self._command,
                        stdin=connection.fileno(),
                        stdout=connection.fileno(),
                        stderr=output,
                        start_new_session=True,  # this process handles Ctrl-C of a terminal
                    )
                    self._children.append(child)


@contextlib.contextmanager
def tunnel(address: str) -> Iterator[Tunnel]:
    """Yields a tunnel to the engine at ``address``, and removes it at the end.

    Raises EarshotError if this machine has no ssh.
    """
    directory = tempfile.TemporaryDirectory(prefix="earshot-ssh-", ignore_cleanup_errors=True)
    with directory as folder, contextlib.closing(Tunnel(address, Path(folder))) as opened:
        yield opened


def ssh_command(address: str) -> list[str]:
    """The command that runs ssh to ``address`` (`ssh://[USER@]HOST[:PORT]`) and never prompts."""
    ssh = shutil.which("ssh")
    if ssh is None:
        raise EarshotError(
            f"Docker engine at {address}",
            observed="there is no ssh on PATH",
            remedy="install it, on Debian and Ubuntu: apt-get install openssh-client",
        )
    url = urlsplit(address)
    options = ["-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_SECONDS}", "-T"]
    if url.username:
        options += ["-l", unquote(url.username)]
    if url.port:
        options += ["-p", str(url.port)]
    return [ssh, *options, "--", url.hostname or ""]
