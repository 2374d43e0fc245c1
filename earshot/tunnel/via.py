"""Makes a tunnel's connections to brokers, from another machine.

`ssh://[USER@]HOST[:PORT]` uses this machine's ssh, `kubectl:NAMESPACE/POD` runs bash in a pod,
`ssm:INSTANCE` opens a port forwarding session of AWS. With ssh and kubectl a connection is the
standard input and output of a command, so that no further port of this machine is open.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import time
from abc import ABC, abstractmethod
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from earshot.errors import EarshotError
from earshot.listeners.address import Address, bracketed

START_SECONDS: Final = 30.0
"""Time limit for a login, in which ssh may ask for a password."""
END_SECONDS: Final = 0.5
"""Time limit after SIGTERM, and again after SIGKILL, for the end of a command."""
_END_INTERVAL: Final = 0.01
REASON_SECONDS: Final = 0.5
"""Time limit for the line in which a login's process tells why a connection was refused."""
BUFFER: Final = 2**20
MAX_LINES: Final = 5
"""The number of lines kept of a command's standard error."""
MAX_REASONS: Final = 50
FORMS: Final = "ssh://[USER@]HOST[:PORT], kubectl:NAMESPACE/POD or ssm:INSTANCE"

_POD: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,252}/[a-z0-9][a-z0-9.-]{0,252}", re.ASCII)
_INSTANCE: Final = re.compile(r"(i|mi)-[0-9a-f]{8,32}", re.ASCII)
PASS_ON: Final = """
exec 3<>"/dev/tcp/$1/$2" 4<&0 || exit 1
cat <&3 & down=$!
(trap 'kill $!; exit' TERM; cat <&4 >&3 & wait $!; kill $down) 2>/dev/null & up=$!
wait $down
kill $up 2>/dev/null
:
"""
"""A bash script that copies its input to a broker, and the broker's output back, until one side
ends.

`wait -n` of bash 5.2 misses a child that ended before it: a broker that closes at once."""
_OPEN_FAILED: Final = "open failed: "
_REFUSED: Final = "refused by peer"
"""ssh's messages for a refused connection: of the login's process, and of the connection's."""
_SESSION: Final = "AWS-StartPortForwardingSessionToRemoteHost"


class ViaError(Exception):
    """No connection was made; the text has the reason."""


async def _unexplained(complaint: str) -> str:
    return complaint


@dataclass
class Stream:
    """A connection to a broker. ``process`` is the command whose input and output it is."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    process: Process | None = None
    complaints: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_LINES))
    """The last lines that the command wrote to its standard error."""
    explained: Callable[[str], Awaitable[str]] = _unexplained
    """The reason behind a complaint of that command."""

    async def close(self) -> None:
        """Closes the connection and ends its command."""
        with contextlib.suppress(OSError):
            self.writer.close()
        if self.process is not None:
            await _end(self.process)


class Via(ABC):
    """A way to brokers. ``text`` is the value of `--via`."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def start(self, folder: Path) -> None:  # noqa: B027 - not every way has a login
        """Logs in. ``folder`` is private, and its path short enough for a socket. Raises
        EarshotError."""

    @abstractmethod
    async def open(self, address: Address) -> Stream:
        """A connection to ``address`` as that machine names it. Raises ViaError."""

    async def close(self) -> None:  # noqa: B027 - nor an end
        """Ends the processes that `start` and `open` have started."""


class _Commands(Via):
    """A way with a command per connection."""

    def command(self, address: Address) -> Sequence[str]:
        raise NotImplementedError

    async def open(self, address: Address) -> Stream:
        try:
            process = await asyncio.create_subprocess_exec(
                *self.command(address),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                limit=BUFFER,
                start_new_session=True,  # Ctrl-C must not reach the command
            )
        except (OSError, ValueError) as fault:  # ValueError: a host with a null byte
            raise ViaError(getattr(fault, "strerror", None) or str(fault)) from None
        assert process.stdout is not None and process.stdin is not None
        stream = Stream(process.stdout, process.stdin, process)
        stream.explained = partial(self.explained, time.monotonic())
        _start(_listen(process, stream.complaints.append))
        return stream

    async def explained(self, since: float, complaint: str) -> str:
        """The reason behind ``complaint``, of a command that was started at ``since`` (s, monotonic
        clock)."""
        return complaint


class SshVia(_Commands):
    """One login by the user's own ssh, with its configuration; each connection goes through it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        url = urlsplit(text)
        try:
            port = url.port
        except ValueError:
            raise _refused(text) from None
        if not url.hostname or url.path not in ("", "/") or url.password or url.query:
            raise _refused(text)
        options = ["-l", unquote(url.username)] if url.username else []
        self._destination = [*options, *(["-p", str(port)] if port else []), "--", url.hostname]
        self._ssh = _program_path("ssh", text, "apt-get install openssh-client")
        self._options: list[str] = []
        self._login: Process | None = None
        self._reasons: deque[tuple[float, str]] = deque(maxlen=MAX_REASONS)
        """The failures of connections: the time (s, monotonic clock) and the reason."""

    async def start(self, folder: Path) -> None:
        control = folder / "ssh"
        self._options = ["-o", "ControlMaster=no", "-o", f"ControlPath={control}"]
        alive = ["-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3"]
        # its standard input is the user's, as it may ask for a password
        self._login = await asyncio.create_subprocess_exec(
            self._ssh, "-M", "-N", "-T", "-S", control, *alive, *self._destination,
            stdout=DEVNULL, stderr=PIPE,
        )  # fmt: skip
        complaints = deque[str](maxlen=MAX_LINES)

        def on_line(line: str) -> None:
            complaints.append(line)
            if reason := line.partition(_OPEN_FAILED)[2]:
                self._reasons.append((time.monotonic(), reason))

        _start(_listen(self._login, on_line))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                while not control.exists() and self._login.returncode is None:
                    await asyncio.sleep(0.02)
        if self._login.returncode is not None or not control.exists():
            await self.close()
            await asyncio.sleep(0)
            raise EarshotError(
                f"--via {self.text}",
                observed=_last_line(complaints) or f"no login within {START_SECONDS:g} s",
                remedy="try the same with ssh alone; its configuration and keys are used",
            )

    def command(self, address: Address) -> Sequence[str]:
        target = f"{bracketed(address.host)}:{address.port}"
        return [self._ssh, *self._options, "-o", "BatchMode=yes", "-W", target, *self._destination]

    async def explained(self, since: float, complaint: str) -> str:
        """The reasons that the login's process reported since then: it does not say for which
        connection."""
        if _REFUSED not in complaint:
            return complaint
        deadline = time.monotonic() + REASON_SECONDS
        while not (reasons := self._reasons_since(since)) and time.monotonic() < deadline:
            await asyncio.sleep(0.02)  # the command may end before the reason is read
        return " or ".join(reasons) or complaint

    def _reasons_since(self, since: float) -> Sequence[str]:
        return list(dict.fromkeys(reason for when, reason in self._reasons if when >= since))

    async def close(self) -> None:
        if self._login is not None:
            await _end(self._login, with_group=False)  # its group is the user's


class KubectlVia(_Commands):
    """bash in a pod of the cluster: each connection is a `kubectl exec`."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        pod = text.removeprefix("kubectl:")
        if not _POD.fullmatch(pod):
            raise _refused(text)
        self._namespace, _, self._pod = pod.partition("/")
        self._kubectl = _program_path(
            "kubectl", text, "see https://kubernetes.io/docs/tasks/tools/"
        )

    def command(self, address: Address) -> Sequence[str]:
        run = ["bash", "-c", PASS_ON, "bash", address.host, str(address.port)]
        return [self._kubectl, "exec", "-i", "-n", self._namespace, self._pod, "--", *run]


class SsmVia(Via):
    """Sessions of AWS Systems Manager: one for each address, on a port of this machine."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._instance = text.removeprefix("ssm:")
        if not _INSTANCE.fullmatch(self._instance):
            raise _refused(text)
        self._aws = _program_path("aws", text, "see https://docs.aws.amazon.com/cli/")
        _program_path("session-manager-plugin", text, "install AWS's Session Manager plugin")
        self._sessions: dict[Address, tuple[Process, int]] = {}
        self._starting: dict[Address, asyncio.Lock] = {}

    async def open(self, address: Address) -> Stream:
        async with self._starting.setdefault(address, asyncio.Lock()):
            process, port = self._sessions.get(address, (None, 0))
            if process is None or process.returncode is not None:
                process, port = await self._session(address)
                self._sessions[address] = (process, port)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=BUFFER)
        except OSError as fault:
            raise ViaError(fault.strerror or str(fault)) from None
        return Stream(reader, writer)

    async def _session(self, address: Address) -> tuple[Process, int]:
        with socket.create_server(("127.0.0.1", 0)) as trial:
            port = trial.getsockname()[1]
        destination = {"host": [address.host], "portNumber": [str(address.port)]}
        parameters = json.dumps({**destination, "localPortNumber": [str(port)]})
        process = await asyncio.create_subprocess_exec(
            self._aws, "ssm", "start-session", "--target", self._instance,
            "--document-name", _SESSION, "--parameters", parameters,
            stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True,
        )  # fmt: skip
        complaints = deque[str](maxlen=MAX_LINES)
        _start(_listen(process, complaints.append))
        assert process.stdout is not None
        try:
            async with asyncio.timeout(START_SECONDS):
                while line := await process.stdout.readline():
                    if b"Waiting for connections" in line:
                        _start(_drained(process.stdout))
                        return process, port
        except TimeoutError:
            complaints.append(f"no session within {START_SECONDS:g} s")
        await _end(process)
        raise ViaError(_last_line(complaints) or "the session ended")

    async def close(self) -> None:
        for process, _ in self._sessions.values():
            await _end(process)


def read_via(text: str) -> Via:
    """The way for ``text``, the value of `--via`. Raises EarshotError."""
    for prefix, kind in (("ssh://", SshVia), ("kubectl:", KubectlVia), ("ssm:", SsmVia)):
        if text.startswith(prefix):
            way: Via = kind(text)
            return way
    raise _refused(text)


def _refused(text: str) -> EarshotError:
    return EarshotError("--via", observed=f"found {text!r}", allowed=FORMS)


def _program_path(name: str, text: str, remedy: str) -> str:
    path = shutil.which(name)
    if path is None:
        observed = f"there is no {name} on PATH"
        raise EarshotError(f"--via {text}", observed=observed, remedy=remedy)
    return path


def _last_line(lines: Sequence[str]) -> str:
    return lines[-1] if lines else ""


_tasks: Final[set[asyncio.Task[None]]] = set()


def _start(work: Coroutine[None, None, None]) -> None:
    """Runs ``work`` as a task, and keeps a reference to it, which asyncio does not."""
    task = asyncio.get_running_loop().create_task(work)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


async def _listen(process: Process, on_line: Callable[[str], None]) -> None:
    """Calls ``on_line`` with each line of the standard error."""
    assert process.stderr is not None
    with contextlib.suppress(ValueError, OSError):
        while line := await process.stderr.readline():
            if text := line.decode(errors="replace").strip():
                on_line(text)


async def _drained(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(OSError):
        while await reader.read(BUFFER):
            pass


async def _end(process: Process, *, with_group: bool = True) -> None:
    """Ends a command and its children: `aws` runs a session in a child process."""
    if process.returncode is None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                _send(process, number, with_group=with_group)
            if await _has_ended(process):
                break
    # asyncio keeps pipes open that a grandchild has inherited, and Process has no method to close
    process._transport.close()  # type: ignore[attr-defined]


async def _has_ended(process: Process) -> bool:
    """Waits up to `END_SECONDS`. `Process.wait` also waits for the end of grandchildren."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(END_SECONDS):
            while process.returncode is None:
                await asyncio.sleep(_END_INTERVAL)
    return process.returncode is not None


def _send(process: Process, number: signal.Signals, *, with_group: bool) -> None:
    if with_group:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
