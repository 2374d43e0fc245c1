"""The process of the dynamic providers: Pulumi's own module, ended together with the engine.

Run as a script under the program's interpreter, which need not have this project: standard library
only. The CLI starts it through the wrapper ``pulumi-resource-pulumi-python``.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

POLL_SECONDS = 0.5
GRACE_SECONDS = 2.0

orphaned = threading.Event()


def follow(engine: int) -> None:
    """End this process and its group once its parent is no longer ``engine``.

    Without this a killed engine leaves the plugin behind, and whatever it was waiting for. What is
    meant to stay, such as a broker, leads a process group of its own.
    """
    while os.getppid() == engine:
        time.sleep(POLL_SECONDS)
    orphaned.set()
    os.killpg(0, signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os.killpg(0, signal.SIGKILL)


def terminate(*_: object) -> None:
    """SIGTERM ends the process, except when it is the one that was just sent to the group."""
    if not orphaned.is_set():
        os._exit(128 + signal.SIGTERM)


def main() -> None:
    engine = int(sys.argv.pop(1))
    # As with `python -m`: providers are modules of the project, which is the working directory.
    sys.path[0] = os.getcwd()  # noqa: PTH109
    signal.signal(signal.SIGTERM, terminate)
    # the wrapper held it off while Python started; from here it ends the plugin without a word
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=follow, args=(engine,), daemon=True).start()
    runpy.run_module("pulumi.dynamic", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
