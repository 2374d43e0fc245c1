import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from earshot.listeners.address import Address
from earshot.spark import attempts as module
from earshot.spark.attempts import (
    Attempts,
    Group,
    JobAttempt,
    Route,
    RouteFailure,
    RouteProblem,
    unproven,
)
from earshot.validation.deadline import Deadline
from tests.doubles.closed_port import closed_port


@pytest.fixture
def port() -> Iterator[int]:
    """A port that accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def dead_port() -> Iterator[int]:
    with closed_port() as address:
        yield address.port


def routes(port: int) -> list[Route]:
    keys = [(listener, broker) for listener in ("INTERNAL", "EXTERNAL") for broker in (1, 2)]
    local = Address("127.0.0.1", port)
    return [Route(*key, local, partition) for partition, key in enumerate(keys)]


def failing_action(text: str) -> Callable[[Group, int], None]:
    def action(group: Group, attempt: int) -> None:
        raise RuntimeError(text)

    return action


def attempts(cancelled: threading.Event | None = None, seconds: float = 60.0) -> Attempts:
    event = cancelled or threading.Event()
    return Attempts(event.set, Deadline(seconds))


def timeline(outcomes: list[JobAttempt[None]]) -> list[tuple[int, int, bool]]:
    """(attempt, number of routes, whether it succeeded) of each."""
    return [(outcome.attempt, len(outcome.routes), outcome.problem is None) for outcome in outcomes]


def test_each_listener_is_one_attempt_where_all_is_well(port: int) -> None:
    called: list[tuple[int, set[str]]] = []

    def action(group: Group, attempt: int) -> None:
        called.append((attempt, {route.listener for route in group}))

    cancelled = threading.Event()
    outcomes = attempts(cancelled).run(routes(port), action)
    assert sorted(called, key=str) == [(1, {"EXTERNAL"}), (1, {"INTERNAL"})]
    assert not cancelled.is_set()
    assert timeline(outcomes) == [(1, 2, True), (1, 2, True)]
    assert unproven(outcomes) == {}


def test_nothing_to_do_is_done(port: int) -> None:
    assert attempts().run([], lambda group, attempt: None) == []


def test_what_failed_is_tried_broker_by_broker_and_the_bad_one_named(port: int) -> None:
    def action(group: Group, attempt: int) -> None:
        if any(route.key == ("EXTERNAL", 2) for route in group):
            raise RuntimeError("org.apache.kafka.common.errors.TimeoutException: expired")

    outcomes = attempts().run(routes(port), action)
    assert unproven(outcomes) == {
        ("EXTERNAL", 2): RouteProblem(RouteFailure.JOB_FAILED, "TimeoutException: expired")
    }
    assert timeline(outcomes) == [(1, 2, True), (1, 2, False), (2, 1, True), (2, 1, False)]


LIMITS = (
    "java.io.IOException: No space left on device",
    "java.lang.OutOfMemoryError: Java heap space",
    "java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory",
    "java.net.SocketException: Too many open files",
)


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_of_the_machine_is_told_from_a_failure(limit: str, port: int) -> None:
    outcomes = attempts().run(
        routes(port), failing_action(f"An error occurred.\n: {limit}\n\tat x.Y")
    )
    failures = {problem.failure for problem in unproven(outcomes).values()}
    assert failures == {RouteFailure.RESOURCE_LIMIT}


def test_a_dead_broker_is_left_out_of_the_next_attempt(port: int, dead_port: int) -> None:
    all_routes = [*routes(port), Route("EXTERNAL", 3, Address("127.0.0.1", dead_port), 4)]

    def action(group: Group, attempt: int) -> None:
        if all_routes[4] in group:
            raise RuntimeError("refused")

    outcomes = attempts().run(all_routes, action)
    assert {key: problem.failure for key, problem in unproven(outcomes).items()} == {
        ("EXTERNAL", 3): RouteFailure.REFUSED
    }
    assert timeline(outcomes) == [(1, 2, True), (1, 2, False), (1, 1, False), (2, 2, True)]


def test_every_route_has_one_outcome_per_attempt(port: int, dead_port: int) -> None:
    all_routes = [*routes(port), Route("EXTERNAL", 3, Address("127.0.0.1", dead_port), 4)]
    outcomes = attempts().run(all_routes, failing_action("never"))
    tried_keys = [(route.key, outcome.attempt) for outcome in outcomes for route in outcome.routes]
    assert len(tried_keys) == len(set(tried_keys))
    # as one, as one without the dead broker, and one by one
    assert sum(key == ("INTERNAL", 1) for key, _ in tried_keys) == 3
    assert sum(key == ("EXTERNAL", 3) for key, _ in tried_keys) == 1
    assert unproven(outcomes).keys() == {route.key for route in all_routes}


def test_dead_broker_cancels_jobs(
    port: int, dead_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("earshot.spark.attempts.WATCH_SECONDS", 0.2)
    all_routes = routes(port)
    all_routes[0] = Route("INTERNAL", 1, Address("127.0.0.1", dead_port), 0)
    cancelled = threading.Event()

    def action(group: Group, attempt: int) -> None:
        if all_routes[0] in group:
            cancelled.wait(60)
            raise RuntimeError("cancelled")
        assert attempt == 1 or cancelled.is_set()

    assert set(unproven(attempts(cancelled).run(all_routes, action))) == {("INTERNAL", 1)}
    assert cancelled.is_set()


def test_what_is_not_done_at_the_deadline_is_late(port: int) -> None:
    cancelled = threading.Event()

    def action(group: Group, attempt: int) -> None:
        cancelled.wait(60)
        raise RuntimeError("cancelled")

    problems = unproven(attempts(cancelled, 0.5).run(routes(port), action))
    assert {problem.failure for problem in problems.values()} == {RouteFailure.TIMED_OUT}
    assert all("deadline of 0.5 s" in problem.reason for problem in problems.values())


def test_an_answer_that_comes_while_jobs_are_cancelled_still_counts(port: int) -> None:
    cancelled = threading.Event()

    def action(group: Group, attempt: int) -> str:
        cancelled.wait(60)
        time.sleep(0.05)
        return "answer"

    outcomes = attempts(cancelled, 0.05).run(routes(port), action)
    assert [outcome.result for outcome in outcomes] == ["answer", "answer"]


def test_a_later_success_forgives_an_earlier_failure(port: int) -> None:
    route = routes(port)[0]
    failed_attempt = JobAttempt[None](
        (route,), 1, None, RouteProblem(RouteFailure.JOB_FAILED, "once")
    )
    assert unproven([failed_attempt]) == {route.key: RouteProblem(RouteFailure.JOB_FAILED, "once")}
    assert unproven([failed_attempt, JobAttempt((route,), 2)]) == {}


def routes_of_one_listener(count: int) -> list[Route]:
    """Their brokers are numbered from 1, as their ports are."""
    return [
        Route("L", number, Address("127.0.0.1", number), number) for number in range(1, count + 1)
    ]


def test_brokers_that_die_in_turn_do_not_affect_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last attempt is broker by broker, whatever died before it."""
    dead_brokers: set[int] = set()
    monkeypatch.setattr(module, "connects", lambda address, _: address.port not in dead_brokers)
    monkeypatch.setattr(module, "WATCH_SECONDS", 60.0)
    events: list[str] = []

    def action(group: Group, attempt: int) -> None:
        brokers = {route.broker for route in group}
        if attempt < 3:
            dead_brokers.add(attempt)
        if brokers & (dead_brokers | {4}):
            raise RuntimeError("no")

    outcomes = Attempts(lambda: None, Deadline(60), events.append).run(
        routes_of_one_listener(5), action
    )
    refusal = "127.0.0.1:{} accepted connections, but no more while the job ran"
    assert unproven(outcomes) == {
        ("L", 1): RouteProblem(RouteFailure.REFUSED, refusal.format(1)),
        ("L", 2): RouteProblem(RouteFailure.REFUSED, refusal.format(2)),
        ("L", 4): RouteProblem(RouteFailure.JOB_FAILED, "no"),
    }
    assert {outcome.attempt for outcome in outcomes} == {1, 2, 3}
    assert events == [
        "something failed through L: again, without broker 1",
        "something failed through L: again, broker by broker",
    ]


def test_where_all_died_nothing_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "connects", lambda address, _: False)
    events: list[str] = []
    all_attempts = Attempts(lambda: None, Deadline(60), events.append)
    outcomes = all_attempts.run(routes_of_one_listener(2), failing_action("no"))
    assert timeline(outcomes) == [(1, 1, False), (1, 1, False)]
    assert events == []


def test_after_the_deadline_nothing_is_blamed_or_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "connects", lambda address, _: False)
    end = Deadline(60)

    def action(group: Group, attempt: int) -> None:
        end.stop.set()
        raise RuntimeError("cancelled")

    timed_out = RouteProblem(RouteFailure.TIMED_OUT, "not done when the deadline of 60 s passed")
    routes = routes_of_one_listener(2)
    assert Attempts(lambda: None, end).run(routes, action) == [
        JobAttempt(tuple(routes), 1, None, timed_out)
    ]


@pytest.mark.parametrize(("count", "jobs", "connections"), [(2, 2, 2), (40, 8, 32)])
def test_no_more_than_a_session_and_a_machine_bear_is_done_at_a_time(
    count: int, jobs: int, connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers: list[int] = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, max_workers: int, **options: Any) -> None:
            workers.append(max_workers)
            super().__init__(max_workers, **options)

    def action(group: Group, attempt: int) -> None:
        if attempt == 1:
            raise RuntimeError("once")

    monkeypatch.setattr(module, "connects", lambda address, _: True)
    monkeypatch.setattr(module, "ThreadPoolExecutor", Pool)
    all_routes = [
        Route(f"L{number}", number, Address("127.0.0.1", 1), number) for number in range(count)
    ]
    assert unproven(attempts().run(all_routes, action)) == {}
    assert (workers[0], workers[-1]) == (jobs, jobs)
    assert set(workers[1:-1]) == {connections}
