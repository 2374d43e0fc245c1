"""Repeated work during a test."""

import contextlib
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def watching(
    look: Callable[[], object], seconds: float, passing: tuple[type[BaseException], ...] = ()
) -> Iterator[None]:
    """Within, a thread calls ``look`` every ``seconds``.

    An error ends the thread and fails the test in the end, unless it is one of ``passing``.
    """
    has_ended = threading.Event()
    failures: list[BaseException] = []

    def watch() -> None:
        while not has_ended.wait(seconds):
            try:
                look()
            except passing:
                continue
            except BaseException as error:
                failures.append(error)
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join(120)
    assert not failures, failures
    assert not thread.is_alive(), "its last call has not returned"
