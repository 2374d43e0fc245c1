"""Whether a broker serves clients, listener by listener, with a real login.

Each placement connects to a listener in its own way; the conclusions are the same for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator


class RefusedUser(Exception):
    """A listener does not accept a user; the argument is the broker's own reason."""


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
        try:
            return self.asked(name)
        except RefusedUser as refusal:
            known: bool | None = False
            for accepts in self.elsewhere(name):
                known = accepts if accepts is not False else known
                if known:
                    break
            if known is None:
                return f"refuses a user, and another broker gives no answer ({refusal})"
            if not known:
                return ""  # users may be made by the end of this update
            if not self._given_again:
                self._given_again = True
                self.give_again()
            return f"refuses a user that other brokers accept ({refusal})"

    def shown(self, name: str) -> str:
        """What messages call listener ``name``."""
        return name

    @abstractmethod
    def asked(self, name: str) -> str:
        """Why listener ``name`` does not serve; empty if it does. Raises RefusedUser."""

    @abstractmethod
    def elsewhere(self, name: str) -> Iterator[bool | None]:
        """Whether each other broker accepts the login; None if one that runs gives no answer."""

    def give_again(self) -> None:
        """Gives the users their passwords again."""
        self._progress(
            f"{self._broker} does not know its users any more: they get their passwords again"
        )
