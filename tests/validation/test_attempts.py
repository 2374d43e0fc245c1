from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from earshot.validation.attempts import (
    Attempts,
    Group,
    Outcome,
    Problem,
    Route,
    Trouble,
    unproven,
)
from earshot.validation.deadline import Deadline


@pytest.fixture
def port() -> Iterator[int]:
    """A port that accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def dead() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def routes(port: int) -> list[Route]:
    keys = [(listener, broker) for listener in ("INTERNAL", "EXTERNAL") for broker in (1, 2)]
    return [Route(*key, "127.0.0.1", port, partition) for partition, key in enumerate(keys)]


def attempts(cancelled: threading.Event | None = None, seconds: float = 60.0) -> Attempts:
    event = cancelled or threading.Event()
    return Attempts(event.set, Deadline(seconds))


def timeline(outcomes: list[Outcome[None]]) -> list[tuple[int, int, bool]]:
    """(attempt, number of routes, whether it succeeded) of each."""
    return [(it.attempt, len(it.routes), it.problem is None) for it in outcomes]


def test_each_listener_is_one_attempt_where_all_is_well(port: int) -> None:
    called: list[tuple[int, set[str]]] = []

    def action(group: Group, attempt: int) -> None:
        called.append((attempt, {route.listener for route in group}))

    found = attempts().run(routes(port), action)
    assert sorted(called, key=str) == [(1, {"EXTERNAL"}), (1, {"INTERNAL"})]
    assert timeline(found) == [(1, 2, True), (1, 2, True)]
    assert unproven(found) == {}


def test_nothing_to_do_is_done(port: int) -> None:
    assert attempts().run([], lambda group, attempt: None) == []


def test_what_failed_is_tried_broker_by_broker_and_the_bad_one_named(port: int) -> None:
    def action(group: Group, attempt: int) -> None:
        if any(route.key == ("EXTERNAL", 2) for route in group):
            raise RuntimeError("org.apache.kafka.common.errors.TimeoutException: expired")

    found = attempts().run(routes(port), action)
    assert unproven(found) == {
        ("EXTERNAL", 2): Problem(Trouble.FAILED, "TimeoutException: expired")
    }
    assert timeline(found) == [(1, 2, True), (1, 2, False), (2, 1, True), (2, 1, False)]


def test_a_dead_broker_is_left_out_and_the_others_are_done_as_one_again(
    port: int, dead: int
) -> None:
    every = [*routes(port), Route("EXTERNAL", 3, "127.0.0.1", dead, 4)]

    def action(group: Group, attempt: int) -> None:
        if every[4] in group:
            raise RuntimeError("refused")

    found = attempts().run(every, action)
    assert {key: item.trouble for key, item in unproven(found).items()} == {
        ("EXTERNAL", 3): Trouble.REFUSED
    }
    assert timeline(found) == [(1, 2, True), (1, 2, False), (1, 1, False), (2, 2, True)]


def test_every_route_has_one_outcome_per_attempt(port: int, dead: int) -> None:
    every = [*routes(port), Route("EXTERNAL", 3, "127.0.0.1", dead, 4)]

    def action(group: Group, attempt: int) -> None:
        raise RuntimeError("never")

    found = attempts().run(every, action)
    tried = [(route.key, item.attempt) for item in found for route in item.routes]
    assert len(tried) == len(set(tried))
    # as one, as one without the dead broker, and one by one
    assert sum(key == ("INTERNAL", 1) for key, _ in tried) == 3
    assert sum(key == ("EXTERNAL", 3) for key, _ in tried) == 1
    assert unproven(found).keys() == {route.key for route in every}


def test_a_dead_broker_cancels_what_waits_for_it(port: int, dead: int) -> None:
    every = routes(port)
    every[0] = Route("INTERNAL", 1, "127.0.0.1", dead, 0)
    cancelled = threading.Event()

    def action(group: Group, attempt: int) -> None:
        if every[0] in group:
            cancelled.wait(60)
            raise RuntimeError("cancelled")

    assert set(unproven(attempts(cancelled).run(every, action))) == {("INTERNAL", 1)}
    assert cancelled.is_set()


def test_what_is_not_done_at_the_deadline_is_late(port: int) -> None:
    cancelled = threading.Event()

    def action(group: Group, attempt: int) -> None:
        cancelled.wait(60)
        raise RuntimeError("cancelled")

    found = unproven(attempts(cancelled, 0.5).run(routes(port), action))
    assert {item.trouble for item in found.values()} == {Trouble.LATE}
    assert all("deadline of 0.5 s" in item.reason for item in found.values())


def test_a_later_success_forgives_an_earlier_failure(port: int) -> None:
    one = routes(port)[0]
    bad = Outcome[None]((one,), 1, None, Problem(Trouble.FAILED, "once"))
    assert unproven([bad]) == {one.key: Problem(Trouble.FAILED, "once")}
    assert unproven([bad, Outcome((one,), 2)]) == {}
