"""A double of `time.sleep`: no time passes, and an endless wait fails."""

from collections.abc import Callable

MOST = 1000


class Naps:
    """Calls ``meanwhile`` in place of each sleep; fails the test at the ``MOST``-th."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self._meanwhile = meanwhile
        self._taken = 0

    def __call__(self, seconds: float) -> None:
        self._taken += 1
        assert self._taken < MOST, f"has waited {MOST} times, and what was to be seen has happened"
        self._meanwhile()
