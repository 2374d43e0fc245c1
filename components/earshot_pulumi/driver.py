"""The driver of a node: what a kind of host does for it, and what all kinds do with that.

Each kind of host has a driver for its nodes. A node is changed in the same way on all of them: no
other node may be down, the changed one is waited for, and it is put back where it does not come up.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from earshot.errors import EarshotError

BEHIND: Final = "not in sync with all of its replicas"
"""What a node lacks that serves, and only has to catch up."""
POLL: Final = 0.25
SAY_SECONDS: Final = 5.0
SHOWN: Final = 3
"""Nodes that one message explains."""
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


def wait_for(
    nodes: Sequence[NodeDriver],
    deadline: float,
    progress: Callable[[str], None],
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
