"""`python -m earshot.cli.ends_with_stdin …`: an earshot command that ends with its standard input.

Its parent keeps the other end of the pipe open. If the parent ends for any reason, the command ends
as after SIGTERM, and cleans up.
"""

import os
import signal
import threading

from earshot.cli import main


def _watch() -> None:
    while os.read(0, 1):  # not sys.stdin, whose lock would block the end of Python
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_watch, daemon=True).start()
    main()
