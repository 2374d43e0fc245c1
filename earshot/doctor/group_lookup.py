"""Checks that a consumer group finds its coordinator through each listener.

Records are read without a group, so they pass in a cluster in which no group works. The result is a
note, because not every client uses groups.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from earshot.doctor.asking import ReachableAddress
from earshot.doctor.exchange import GROUP
from earshot.listeners.address import Address
from earshot.listeners.listed import shortened
from earshot.validation.deadline import Deadline
from earshot.validation.wire import ExchangeError, find_coordinator

LOOKUP_LIMIT: Final = 5.0
"""Seconds until a lookup counts as failed. The first lookup makes a new cluster create
`__consumer_offsets`, and fails until then."""
WORKERS: Final = 8
MAX_LOOKUPS: Final = 32
"""The maximum number of addresses at which a coordinator is looked up."""
AGAIN_AFTER: Final = 0.2
"""Seconds between two attempts."""
_UNAUTHORIZED: Final = frozenset({29, 30, 31})
"""Kafka's error codes for a missing right (topic, group, cluster): the user needs no group."""
_TEMPORARY: Final[Mapping[int, str]] = {
    14: "COORDINATOR_LOAD_IN_PROGRESS",
    15: "COORDINATOR_NOT_AVAILABLE",
}
_REMEDY: Final = (
    "a new cluster may need another run. If the next one notes the same, consumer groups do not "
    "work: see that offsets.topic.replication.factor is at most the number of brokers, that "
    "__consumer_offsets has leaders, and that a proxy passes FindCoordinator"
)


class GroupLookups:
    """Lookups at several addresses, all until `LOOKUP_LIMIT` after the first one began."""

    def __init__(self, end: Deadline) -> None:
        self._end = end
        self._deadline: Deadline | None = None
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="groups")
        self._futures: dict[Address, Future[str]] = {}

    def start(self, peers: Iterable[ReachableAddress | None]) -> None:
        """Starts a lookup at each of ``peers``, at most `MAX_LOOKUPS` in all."""
        self._deadline = self._deadline or self._end.within(LOOKUP_LIMIT)
        for peer in peers:
            if peer is not None and len(self._futures) < MAX_LOOKUPS:
                future = self._pool.submit(failed_lookup, peer, self._deadline)
                self._futures[peer.address] = future

    def reason(self, address: Address) -> str:
        """Why no coordinator is found at ``address``; empty if one is, or nothing is known."""
        future = self._futures.get(address)
        return "" if future is None else future.result()

    def notes(self) -> list[str]:
        """The notes for the report, after the last lookup."""
        try:
            return group_notes({str(address): self.reason(address) for address in self._futures})
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)


def failed_lookup(peer: ReachableAddress, deadline: Deadline) -> str:
    """Why no coordinator is found at ``peer`` until ``deadline``; empty if one is found, or if
    nothing is known."""
    seconds_left, reason = deadline.left(), ""
    while deadline.left():
        # without a connection, or without its login, nothing is known about groups
        with contextlib.suppress(ExchangeError), peer.connect_again(0, deadline) as exchange:
            try:
                error = find_coordinator(exchange, GROUP)
            except ExchangeError as failure:
                reason = reason or f"FindCoordinator fails: {failure.failure.text}"
            else:
                if error == 0 or error in _UNAUTHORIZED:
                    return ""
                if error not in _TEMPORARY:
                    return f"FindCoordinator was answered with the error code {error}"
                answer = f"{_TEMPORARY[error]} for {LOOKUP_LIMIT:g} s"
                reason = f"FindCoordinator was answered with {answer}"
        deadline.stop.wait(min(AGAIN_AFTER, deadline.left()))
    is_cut_short = deadline.stop.is_set() or seconds_left < LOOKUP_LIMIT / 2
    return "" if is_cut_short else reason


def group_notes(reasons: Mapping[str, str]) -> list[str]:
    """A note about the addresses whose lookup failed, from the reason of each, or no note."""
    places = [place for place, reason in reasons.items() if reason]
    if not places:
        return []
    reason = reasons[places[0]]
    return [f"no consumer group finds its coordinator at {shortened(places)}: {reason}; {_REMEDY}"]
