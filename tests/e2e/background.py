"""Threads that run while a context is open."""

import threading
from collections.abc import Callable, Sequence
from typing import Self


class Background:
    """Runs each of some functions in a thread, until `over` is set."""

    def __init__(self, name: str, work: Sequence[Callable[[], None]], patience: float) -> None:
        """``patience`` is the maximum number of seconds that a thread needs to end."""
        self.over = threading.Event()
        self._patience = patience
        self._threads = [
            threading.Thread(target=function, name=f"{name} {number}")
            for number, function in enumerate(work)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join(self._patience)
            assert not thread.is_alive(), thread.name
        self.leave()

    def leave(self) -> None:
        """Releases resources after all threads have ended."""
