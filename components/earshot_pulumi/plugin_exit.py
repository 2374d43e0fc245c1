"""Ends a plugin's process and its children when the engine that started it ends.

The engine signals the end of a run to a plugin, but cannot signal its own death. So the process
watches its parent.
"""

import contextlib
import os
import threading
import time
from typing import NoReturn

import psutil

POLL_SECONDS = 0.5


def exit_with_parent() -> None:
    """Starts a thread that ends this process when its engine has ended."""
    threading.Thread(target=_watch, args=(_engine(),), daemon=True).start()


def end(code: int) -> NoReturn:
    """Ends this process with ``code``, and its children in its process group.

    Children such as Kafka's check of settings are in the group; brokers have sessions of their own.
    """
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                if os.getpgid(child.pid) == os.getpgrp():
                    child.terminate()
    os._exit(code)


def _engine() -> psutil.Process | None:
    # the plugin's direct parent may be a shell, whose parent is the engine
    parents = psutil.Process().parents()
    engines = (process for process in parents if process.name() == "pulumi")
    return next(engines, parents[0] if parents else None)


def _watch(engine: psutil.Process | None) -> None:
    while engine is not None and _is_alive(engine):
        time.sleep(POLL_SECONDS)
    end(1)


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
