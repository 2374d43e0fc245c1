"""`python -m earshot.cli.ends_with_stdin …`: the earshot command that ends with its standard input.

The process that starts it keeps the other end of the pipe open. If that process ends, for whatever
reason, this command ends as after SIGTERM, and removes what it made.
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
