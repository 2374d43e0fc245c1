"""`python -m earshot.cli.guarded …`: the earshot command, which ends when its standard input does.

Its starter holds the other end of the pipe, so that the command never outlives it, however it ends;
what the command has begun is cleaned up, as after SIGTERM.
"""

import os
import signal
import threading

from earshot.cli import main


def _watch() -> None:
    while os.read(0, 1):  # not sys.stdin, whose lock would be in the way when Python ends
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_watch, daemon=True).start()
    main()
