"""A double of an engine that runs commands "in a container" as processes of this machine."""

import contextlib
import socket
import subprocess
import threading
from types import SimpleNamespace
from typing import IO, Any


class EngineWithShells:
    """Passes bytes on to a command and back, in frames as an engine does."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []
        self._threads: list[threading.Thread] = []
        self.api = SimpleNamespace(exec_create=self._create, exec_start=self._start)

    def close(self) -> None:
        """Returns once all commands have ended, by themselves."""
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()

    def _create(self, container: str, command: list[str], stdin: bool) -> dict[str, str]:
        assert stdin
        self.commands.append(command)
        return {"Id": str(len(self.commands) - 1)}

    def _start(self, id: str, socket: bool) -> Any:
        assert socket
        here, there = _pair()
        pipe = subprocess.PIPE
        command = self.commands[int(id)]
        process = subprocess.Popen(command, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe)
        assert process.stdin and process.stdout and process.stderr
        outputs = [
            threading.Thread(target=_pump, args=(pipe, there, number), daemon=True)
            for number, pipe in ((1, process.stdout), (2, process.stderr))
        ]
        for output in outputs:
            output.start()

        input = threading.Thread(target=_feed, args=(there, process.stdin), daemon=True)
        input.start()

        def finish() -> None:
            for output in outputs:
                output.join()
            process.wait()
            with contextlib.suppress(OSError):
                there.shutdown(_BOTH)
            input.join()
            there.close()

        self._threads.append(threading.Thread(target=finish, daemon=True))
        self._threads[-1].start()
        return SimpleNamespace(_sock=here, close=lambda: None)


_BOTH = socket.SHUT_RDWR


def _pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair()


def _pump(pipe: IO[bytes], to: socket.socket, number: int) -> None:
    with pipe, contextlib.suppress(OSError):
        while data := pipe.read(3000):
            to.sendall(bytes([number, 0, 0, 0]) + len(data).to_bytes(4, "big") + data)


def _feed(source: socket.socket, pipe: IO[bytes]) -> None:
    """Leaves ``source`` open: a command that has ended may still have output to send."""
    with contextlib.suppress(OSError), pipe:
        while data := source.recv(65536):
            pipe.write(data)
