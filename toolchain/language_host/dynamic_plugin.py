"""The process of the dynamic providers: runs Pulumi's own module, and ends with the engine.

It is a script for the program's interpreter, which may not have this project: standard library
only. The CLI starts it through the wrapper ``pulumi-resource-pulumi-python``.
"""

import gc
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

    Without this, the plugin and its children would outlive a killed engine. What is meant to stay,
    such as a broker, has a process group of its own.
    """
    while os.getppid() == engine:
        time.sleep(POLL_SECONDS)
    orphaned.set()
    os.killpg(0, signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os.killpg(0, signal.SIGKILL)


def terminate(*_: object) -> None:
    """Handle SIGTERM: end the process, unless `follow` has sent the signal to the group."""
    if not orphaned.is_set():
        os._exit(128 + signal.SIGTERM)


def main() -> None:
    gc.set_threshold(20_000, 20, 20)  # what a provider loads stays: few searches for garbage
    engine = int(sys.argv.pop(1))
    # As with `python -m`: providers are modules of the project, which is the working directory.
    sys.path[0] = os.getcwd()  # noqa: PTH109
    signal.signal(signal.SIGTERM, terminate)
    # the wrapper ignored it while Python started; now it ends the plugin without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=follow, args=(engine,), daemon=True).start()
    runpy.run_module("pulumi.dynamic", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
