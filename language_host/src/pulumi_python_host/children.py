"""Commands that this process has started, which never outlive it."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

# The CLI kills a language host five seconds after SIGINT; its children must be gone by then.
GRACE_SECONDS = 2.0


class Children:
    """Started processes, each the leader of a process group.

    A stop ends the whole group, and so what a child has started in turn. The engine's SIGINT to a
    language host does not reach the group: user code would print a traceback.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._living: set[subprocess.Popen[bytes]] = set()
        self.closed = False
        """True if `stop_all` was called."""

    def start(
        self,
        command: Sequence[str | Path],
        *,
        cwd: Path | None,
        environment: Mapping[str, str] | None,
        piped: bool = False,
    ) -> subprocess.Popen[bytes]:
        """Start ``command``; its output can be read with ``piped``, else it is that of this
        process.

        Raises OSError where it cannot be started, and ChildProcessError after `stop_all`.
        """
        pipe = subprocess.PIPE if piped else None
        with self._lock:
            if self.closed:
                raise ChildProcessError("this process is ending")
            child = subprocess.Popen(
                command,
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=pipe,
                stderr=pipe,
                bufsize=0,
                process_group=0,
            )
            self._living.add(child)
        return child

    def wait(self, child: subprocess.Popen[bytes]) -> int:
        """The exit status of ``child``: negative for a signal, as in ``subprocess``."""
        code = child.wait()
        with self._lock:
            self._living.discard(child)
        return code

    def stop(self, child: subprocess.Popen[bytes], grace: float = GRACE_SECONDS) -> None:
        """End ``child`` and its group: SIGTERM, then SIGKILL after ``grace`` seconds."""
        with self._lock:
            if child not in self._living:
                return
        _signal_group(child, signal.SIGTERM)
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(grace)
        finally:
            _signal_group(child, signal.SIGKILL)
            self.wait(child)

    def stop_all(self, grace: float = GRACE_SECONDS) -> None:
        """End all of them in parallel, and refuse to start more."""
        with self._lock:
            self.closed = True
            living = list(self._living)
        stoppers = [threading.Thread(target=self.stop, args=(child, grace)) for child in living]
        for stopper in stoppers:
            stopper.start()
        for stopper in stoppers:
            stopper.join()


def _signal_group(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    # the group is gone (macOS says it the second way)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)
