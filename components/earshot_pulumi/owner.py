"""Ends a dynamic provider's process together with the engine that started it.

The engine signals an interrupt to a provider, but cannot signal its own death, and does not pass on
a provider's `Cancel`. So the process watches its parent itself.
"""

import logging
import os
import threading
import time

import psutil

POLL_SECONDS = 0.5
_lock = threading.Lock()
_watching = False


def exit_with_parent() -> None:
    """From now on this process ends when the engine above it is gone."""
    global _watching
    with _lock:
        if _watching:
            return
        _watching = True
    # the user sees a provider's exception as a message; grpc would add a stack trace on stderr
    logging.getLogger("grpc").addHandler(logging.NullHandler())
    logging.getLogger("grpc").propagate = False
    threading.Thread(target=_watch, args=(_engine(),), daemon=True).start()


def _engine() -> psutil.Process | None:
    # the plugin's direct parent may be a shell that waits for it: the engine is further up
    parents = psutil.Process().parents()
    engines = (process for process in parents if process.name() == "pulumi")
    return next(engines, parents[0] if parents else None)


def _watch(engine: psutil.Process | None) -> None:
    while engine is not None and _alive(engine):
        time.sleep(POLL_SECONDS)
    os._exit(1)


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
