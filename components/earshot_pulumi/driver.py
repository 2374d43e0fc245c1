"""The interface of a node's driver, and the steps of a change that all placements share.

Each placement has a driver for its nodes. All change a node in the same way: no other node may be
down, the change waits for the node, and a node that does not come up is put back. A broker must
also serve clients: each listener is tried with a real login.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from earshot.errors import EarshotError
from earshot.validation.failure import UNKNOWN_TO_BROKER, Failure

BEHIND: Final = "not in sync with all of its replicas"
"""The reason for a node that accepts clients but whose replicas are not in sync."""
POLL: Final = 0.25
SAY_SECONDS: Final = 5.0
MAX_SHOWN: Final = 3
"""Maximum number of nodes in one message."""
BEFORE_USERS: Final = "mechanism"
"""Failure of a login at a broker without users yet: the end of this update may create them."""
NO_USERS: Final = (UNKNOWN_TO_BROKER, BEFORE_USERS)
"""Failures of a login that mean: the broker does not know this user."""
Say = Callable[[str], None]
T = TypeVar("T")


class DisturbedNode(EarshotError):
    """A node was stopped, paused or removed by hand: its settings are not the cause."""


class CatchingUp(EarshotError):
    """Brokers serve, but are not in sync yet."""


class NodeDriver(ABC):
    """One node on its host."""

    name: str
    """The node's name, for messages."""
    place = ""
    """The node's place for messages; if it is empty, they use ``name``."""

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
    """A node whose listeners for clients are tried with a login."""

    def __init__(self, name: str, listeners: Iterable[str], say: Say, place: str = "") -> None:
        self.name, self.place, self.say = name, place, say
        self._unserved, self._has_reset_passwords = list(listeners), False

    @abstractmethod
    def login_failure(self, listener: str) -> Failure | None:
        """The failure of a login through ``listener``; None if it succeeds."""

    @abstractmethod
    def other_logins(self, listener: str) -> Iterator[Failure | None]:
        """The result of the same login at each other running broker."""

    @abstractmethod
    def reset_passwords(self) -> None:
        """Sets again the passwords that this broker has lost."""

    def label(self, listener: str) -> str:
        """The name of ``listener`` in messages."""
        return listener

    def unserved(self) -> str:
        """Why a listener does not serve clients; empty if all do.

        A listener that serves is not tried again. If another broker accepts the login that this
        one refuses, this broker has lost its users (KAFKA-20774), and their passwords are set again
        once.
        """
        for listener in [*self._unserved]:
            if reason := self._refusal(listener):
                return f"{self.label(listener)}: {reason}"
            self._unserved.remove(listener)
        return ""

    def _refusal(self, listener: str) -> str:
        failure = self.login_failure(listener)
        if failure is None or failure.error == BEFORE_USERS:
            return ""
        if failure.error != UNKNOWN_TO_BROKER:
            return short(failure)
        all_answer = True
        for other_failure in self.other_logins(listener):
            if other_failure is None:
                if not self._has_reset_passwords:
                    self._has_reset_passwords = True
                    self.say(f"{self.name} has lost its users: earshot sets their passwords again")
                    self.reset_passwords()
                return f"refuses a user that other brokers accept ({failure.text})"
            all_answer = all_answer and other_failure.error in NO_USERS
        if not all_answer:
            return f"refuses a user, and another broker gives no answer ({failure.text})"
        return ""  # the end of this update may create the users


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
    """Returns when all ``nodes`` are ready.

    ``begin_round`` gets the nodes that are not ready, in each round. Raises EarshotError if a node
    ends, or with the last lines of the logs after ``deadline`` seconds; CatchingUp if all nodes
    that are missing then only lack `BEHIND`.
    """
    began = last_shown = time.monotonic()
    waiting, reasons = list(nodes), dict[NodeDriver, str]()
    while True:
        former_reasons, reasons = reasons, {}
        ask_all = time.monotonic() - last_shown > SAY_SECONDS
        begin_round(waiting)
        for node in nodes:
            node.check_alive()
        for node in waiting:
            # one node that is not ready is enough to wait, and requests slow down starting brokers
            former_reason = former_reasons.get(node, "") if reasons and not ask_all else ""
            if reason := former_reason or node.lacks():
                reasons[node] = reason
        waiting = list(reasons)
        if not waiting:
            return
        now = time.monotonic()
        if now - began > deadline:
            raise _deadline_error(reasons, deadline, remedy)
        if now - last_shown > SAY_SECONDS:
            last_shown = now
            texts = [f"{node.name} ({reason})" for node, reason in reasons.items()]
            more_text = f" and {len(texts) - MAX_SHOWN} more" if len(texts) > MAX_SHOWN else ""
            progress(f"waiting for {'; '.join(texts[:MAX_SHOWN])}{more_text}, {now - began:.0f} s")
        time.sleep(poll)


def _deadline_error(reasons: dict[NodeDriver, str], deadline: float, remedy: str) -> EarshotError:
    """The error that nodes were not ready in time; ``reasons`` are by node."""
    details = ""
    for node, reason in list(reasons.items())[:MAX_SHOWN]:
        details += f"\n{node.place or node.name}: {reason}"
        if lines := node.last_lines(5):
            details += f"; the last lines of its log:\n{lines}"
    names = ", ".join(node.name for node in reasons)
    observed = f"not ready after {deadline:.0f} s{details}"
    if {*reasons.values()} == {BEHIND}:
        again = "wait until it has caught up, then run the same command again"
        return CatchingUp(names, observed=observed, remedy=again)
    return EarshotError(names, observed=observed, remedy=remedy)


def change_or_restore(change: Callable[[], T], restore: Callable[[], str | None]) -> T:
    """The result of ``change``. If it fails, calls ``restore`` and adds its text to the error.

    ``restore`` starts the former node and returns its state as text, or None if it cannot restore
    it. It is not called for a node that was disturbed by hand. Raises EarshotError.
    """
    try:
        return change()
    except DisturbedNode:
        raise
    except EarshotError as error:
        if (outcome := restore()) is None:
            raise
        text = f"{error.observed}\n  {outcome}"
        raise EarshotError(error.object, observed=text, remedy=error.remedy) from None


def start_with_former_settings(
    start: Callable[[], T], serves: Callable[[T], None], verb: str, addition: str = ""
) -> str:
    """Starts a node with its former settings. Returns its state as text, for a message.

    ``start`` starts the node, and ``serves`` returns once it serves; both raise EarshotError.
    ``verb`` names the start in the message, which ends with ``addition`` if the node serves.
    """
    try:
        node = start()
    except EarshotError as error:
        return f"it could not be {verb} again with its former settings: {error.line}"
    try:
        serves(node)
    except EarshotError as error:
        return f"it was {verb} again with its former settings, and {error.line}"
    return (
        f"it was {verb} again with its former settings and serves; the nodes after it did not "
        f"change{addition}"
    )


def not_stopped(name: str, state: str, others: str, remedy: str) -> EarshotError:
    """The error for a node that keeps running because of the ``state`` of ``others``.

    ``state`` is a text such as `down already`.
    """
    return EarshotError(
        f"{name} was not stopped",
        observed=f"{state}: {others}; with one more node down, brokers could refuse writes",
        remedy=remedy,
    )
