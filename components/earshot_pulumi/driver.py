"""The driver of a node: what a kind of host does for it, and what all kinds do with that.

Each kind of host has a driver for its nodes. A node is changed in the same way on all of them: no
other node may be down, the changed one is waited for, and it is put back where it does not come up.
A broker is ready when it serves clients, too: listener by listener, with a real login.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from earshot.errors import EarshotError
from earshot.validation.failure import UNKNOWN_TO_BROKER, Failure

BEHIND: Final = "not in sync with all of its replicas"
"""What a node lacks that serves, and only has to catch up."""
POLL: Final = 0.25
SAY_SECONDS: Final = 5.0
SHOWN: Final = 3
"""Nodes that one message explains."""
BEFORE_USERS: Final = "mechanism"
"""The failure that leaves a secured broker ready: this update may make the users at its end."""
NO_USERS: Final = (UNKNOWN_TO_BROKER, BEFORE_USERS)
"""Failures of a login by which a broker says that it does not know the user."""
Say = Callable[[str], None]
T = TypeVar("T")


class Disturbed(EarshotError):
    """A node was stopped, paused or removed by hand: its settings are not the cause."""


class CatchingUp(EarshotError):
    """Brokers serve, but are not in sync yet."""


class NodeDriver(ABC):
    """One node on its host."""

    name: str
    """Of the node, for messages."""
    place = ""
    """Where it is, for messages; empty: ``name`` says it."""

    @abstractmethod
    def check_alive(self) -> None:
        """Raises EarshotError, with the cause, if the node has ended."""

    @abstractmethod
    def lacks(self) -> str:
        """Why the node is not ready; empty if it is."""

    @abstractmethod
    def last_lines(self, count: int) -> str:
        """The end of the node's log; empty if it cannot be read from here."""


class ListeningNode(NodeDriver):
    """A node whose listeners for clients are asked from here."""

    def __init__(self, name: str, listeners: Iterable[str], say: Say, place: str = "") -> None:
        self.name, self.place, self.say = name, place, say
        self._unserved, self._given_again = list(listeners), False

    @abstractmethod
    def asked(self, listener: str) -> Failure | None:
        """Why ``listener`` does not serve a client that logs in; None if it does."""

    @abstractmethod
    def elsewhere(self, listener: str) -> Iterator[Failure | None]:
        """What the same login meets at each other broker that runs."""

    @abstractmethod
    def give_again(self) -> None:
        """Gives the cluster's users the passwords again that this broker has lost."""

    def shown(self, listener: str) -> str:
        """What messages call ``listener``."""
        return listener

    def unserved(self) -> str:
        """Why a client is not served; empty if all are. A listener that serves is not asked again.

        If another broker accepts the login that this one refuses, this broker has lost its users
        (KAFKA-20774), and they get their passwords again, once.
        """
        for listener in [*self._unserved]:
            if reason := self._refusal(listener):
                return f"{self.shown(listener)}: {reason}"
            self._unserved.remove(listener)
        return ""

    def _refusal(self, listener: str) -> str:
        failure = self.asked(listener)
        if failure is None or failure.error == BEFORE_USERS:
            return ""
        if failure.error != UNKNOWN_TO_BROKER:
            return short(failure)
        is_answered = True
        for other in self.elsewhere(listener):
            if other is None:
                if not self._given_again:
                    self._given_again = True
                    self.say(
                        f"{self.name} does not know its users any more: they get their passwords "
                        "again"
                    )
                    self.give_again()
                return f"refuses a user that other brokers accept ({failure.text})"
            is_answered = is_answered and other.error in NO_USERS
        if not is_answered:
            return f"refuses a user, and another broker gives no answer ({failure.text})"
        return ""  # users may be made by the end of this update


def short(failure: Failure) -> str:
    """``failure`` in one line of at most 80 characters."""
    if failure.error == "refused":
        return "not listening yet"
    words = " ".join(failure.text.split())
    return words if len(words) <= 80 else f"{words[:77]}..."


def wait_for(
    nodes: Sequence[NodeDriver],
    deadline: float,
    progress: Say,
    remedy: str,
    begin_round: Callable[[Sequence[NodeDriver]], None] = lambda _: None,
    poll: float = POLL,
) -> None:
    """Returns when all ``nodes`` are ready; ``begin_round`` gets those that are not, in each round.

    Raises EarshotError if one ends, or with the last lines of the logs after ``deadline`` (s);
    CatchingUp if no more than `BEHIND` is missing then.
    """
    began = shown = time.monotonic()
    waiting, missing = list(nodes), dict[NodeDriver, str]()
    while True:
        before, missing = missing, {}
        ask_all = time.monotonic() - shown > SAY_SECONDS
        begin_round(waiting)
        for node in nodes:
            node.check_alive()
        for node in waiting:
            # one missing node is enough to go on waiting, and asking slows the starting brokers
            known = before.get(node, "") if missing and not ask_all else ""
            if reason := known or node.lacks():
                missing[node] = reason
        waiting = list(missing)
        if not waiting:
            return
        now = time.monotonic()
        if now - began > deadline:
            raise _late(missing, deadline, remedy)
        if now - shown > SAY_SECONDS:
            shown = now
            reasons = [f"{node.name} ({reason})" for node, reason in missing.items()]
            more = f" and {len(reasons) - SHOWN} more" if len(reasons) > SHOWN else ""
            progress(f"waiting for {'; '.join(reasons[:SHOWN])}{more}, {now - began:.0f} s")
        time.sleep(poll)


def _late(missing: dict[NodeDriver, str], deadline: float, remedy: str) -> EarshotError:
    details = ""
    for node, reason in list(missing.items())[:SHOWN]:
        details += f"\n{node.place or node.name}: {reason}"
        if lines := node.last_lines(5):
            details += f"; the last lines of its log:\n{lines}"
    names = ", ".join(node.name for node in missing)
    observed = f"not in sync after {deadline:.0f} s{details}"
    if {*missing.values()} == {BEHIND}:
        again = "wait until it has caught up, then run the same command again"
        return CatchingUp(names, observed=observed, remedy=again)
    return EarshotError(names, observed=observed, remedy=remedy)


def or_put_back(change: Callable[[], T], put_back: Callable[[], str | None]) -> T:
    """The result of ``change``; where it fails, the error says how ``put_back`` has left the node.

    Nothing is put back that was disturbed by hand, or where ``put_back`` knows nothing (None).
    Raises EarshotError.
    """
    try:
        return change()
    except Disturbed:
        raise
    except EarshotError as error:
        if (left := put_back()) is None:
            raise
        text = f"{error.observed}\n  {left}"
        raise EarshotError(error.object, observed=text, remedy=error.remedy) from None


def as_it_was(
    start: Callable[[], T], serves: Callable[[T], None], verb: str, more: str = ""
) -> str:
    """How a node is left after an attempt to ``start`` it as it was, which ``verb`` names.

    ``serves`` returns once it serves; ``more`` is said then. Both raise EarshotError.
    """
    try:
        node = start()
    except EarshotError as error:
        return f"it could not be {verb} again as it was: {error.line}"
    try:
        serves(node)
    except EarshotError as error:
        return f"it was {verb} again as it was, and {error.line}"
    return f"it was {verb} again as it was and serves; the nodes after it were not touched{more}"


def not_stopped(name: str, what: str, others: str, remedy: str) -> EarshotError:
    """The error that keeps ``name`` running while ``others`` are away, which ``what`` says."""
    return EarshotError(
        f"{name} was not stopped",
        observed=f"{what}: {others}; with one more away, brokers could take no records",
        remedy=remedy,
    )
