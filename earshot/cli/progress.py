"""Progress of a long command on stderr: a live line on a terminal, else a line per step."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from rich import progress
from rich.console import Console

from earshot.files.streams import to_stderr
from earshot.visible import visible

Step = Callable[[str], None]


@contextlib.contextmanager
def steps() -> Iterator[Step]:
    """Yields a function to call with a text at the beginning of each step."""
    console = Console(stderr=True)
    if not sys.stderr.isatty() or console.is_dumb_terminal:
        yield to_stderr
        return
    columns = (
        progress.SpinnerColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("{task.description}", markup=False),
    )
    with progress.Progress(*columns, console=console, transient=True) as live:
        current = _Live(live)
        yield current.begin
        current.end()


class _Live:
    """Shows the running step below the finished ones with their seconds."""

    def __init__(self, live: progress.Progress) -> None:
        self._live = live
        self._text = ""
        self._since = 0.0
        self._task = live.add_task("", total=None)

    def begin(self, text: str) -> None:
        self.end()
        self._text, self._since = visible(text), time.monotonic()
        self._live.reset(self._task, description=self._text)

    def end(self) -> None:
        if self._text:
            spent = time.monotonic() - self._since
            self._live.console.print(f"{self._text} ({spent:.1f} s)", markup=False, highlight=False)
            self._text = ""
