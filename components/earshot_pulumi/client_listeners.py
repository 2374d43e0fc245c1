"""Whether a broker serves clients, listener by listener, with a real login.

Each placement connects to a listener in its own way; the conclusions are the same for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from earshot.users.access import UNKNOWN_TO_BROKER
from earshot.validation.client import Failure

BEFORE_USERS: Final = "mechanism"
"""The failure that leaves a secured broker ready: this update may make the users at its end."""
NO_USERS: Final = (UNKNOWN_TO_BROKER, BEFORE_USERS)
"""Failures of a login by which a broker says that it does not know the user."""


class ClientListeners(ABC):
    """The listeners of one broker that no other node uses."""

    def __init__(self, broker: str, names: Iterable[str], progress: Callable[[str], None]) -> None:
        self._broker, self._waiting, self._progress = broker, list(names), progress
        self._given_again = False

    def problem(self) -> str:
        """Why a client is not served; empty if all are. A listener that serves is not asked again.

        If another broker accepts the login that this one refuses, this broker has lost its users
        (KAFKA-20774), and they get their passwords again, once.
        """
        for name in [*self._waiting]:
            if reason := self._problem(name):
                return f"{self.shown(name)}: {reason}"
            self._waiting.remove(name)
        return ""

    def _problem(self, name: str) -> str:
        failure = self.asked(name)
        if failure is None or failure.error == BEFORE_USERS:
            return ""
        if failure.error != UNKNOWN_TO_BROKER:
            return short(failure)
        is_answered = True
        for other in self.elsewhere(name):
            if other is None:
                if not self._given_again:
                    self._given_again = True
                    self.give_again()
                return f"refuses a user that other brokers accept ({failure.text})"
            is_answered = is_answered and other.error in NO_USERS
        if not is_answered:
            return f"refuses a user, and another broker gives no answer ({failure.text})"
        return ""  # users may be made by the end of this update

    def shown(self, name: str) -> str:
        """What messages call listener ``name``."""
        return name

    @abstractmethod
    def asked(self, name: str) -> Failure | None:
        """Why listener ``name`` does not serve; None if it does."""

    @abstractmethod
    def elsewhere(self, name: str) -> Iterator[Failure | None]:
        """What the same login meets at each other broker that runs."""

    def give_again(self) -> None:
        """Gives the users their passwords again."""
        self._progress(
            f"{self._broker} does not know its users any more: they get their passwords again"
        )


def short(failure: Failure) -> str:
    """``failure`` in one line of at most 80 characters."""
    if failure.error == "refused":
        return "not listening yet"
    words = " ".join(failure.text.split())
    return words if len(words) <= 80 else f"{words[:77]}..."
