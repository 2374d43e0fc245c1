"""What the job decides by itself; what Spark does with it is tested on real brokers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from earshot.listeners.model import Protocol
from earshot.validation.deadline import Deadline
from earshot.validation.result import Reached, Vantage
from earshot.validation.spark_job import (
    FAIL_FAST,
    Entrance,
    Job,
    Outcome,
    Problem,
    Route,
    Trouble,
    _failed,
    _reachable,
)


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


class Cancelled:
    """A double of the Spark context: it only notes that jobs were to be cancelled."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def cancelAllJobs(self) -> None:
        self.event.set()


def job(context: Cancelled, seconds: float = 30.0) -> Job:
    session = SimpleNamespace(spark=SimpleNamespace(sparkContext=context))
    return Job(cast(Any, session), {}, "topic", "run", Deadline(seconds))


def test_each_listener_is_one_attempt_where_all_is_well(port: int) -> None:
    called: list[tuple[tuple[Route, ...], int]] = []
    found = job(Cancelled())._attempts(
        routes(port), lambda group, attempt: called.append((group, attempt))
    )
    assert [(len(group), attempt) for group, attempt in called] == [(2, 1), (2, 1)]
    assert all(item.problem is None for item in found)


def test_what_failed_is_tried_route_by_route_and_the_bad_one_named(port: int) -> None:
    def action(group: tuple[Route, ...], attempt: int) -> str:
        if any(route.key == ("EXTERNAL", 2) for route in group):
            raise RuntimeError("org.apache.kafka.common.errors.TimeoutException: expired")
        return "done"

    found = job(Cancelled())._attempts(routes(port), action)
    assert _failed(found) == {("EXTERNAL", 2): Problem(Trouble.FAILED, "TimeoutException: expired")}
    assert [item.attempt for item in found if item.problem is None] == [1, 2]


def test_what_refuses_connections_is_not_tried_again(port: int, dead: int) -> None:
    every = routes(port)
    every[3] = Route("EXTERNAL", 2, "127.0.0.1", dead, 3)
    tried: list[Route] = []

    def action(group: tuple[Route, ...], attempt: int) -> None:
        tried.extend(group)
        if every[3] in group:
            raise RuntimeError("refused")

    problems = _failed(job(Cancelled())._attempts(every, action))
    assert {key: item.trouble for key, item in problems.items()} == {
        ("EXTERNAL", 2): Trouble.REFUSED
    }
    assert tried.count(every[3]) == 1 and tried.count(every[2]) == 2


def test_a_dead_broker_cancels_what_waits_for_it(port: int, dead: int) -> None:
    every = routes(port)
    every[0] = Route("INTERNAL", 1, "127.0.0.1", dead, 0)
    context = Cancelled()

    def action(group: tuple[Route, ...], attempt: int) -> None:
        if every[0] in group:
            context.event.wait(60)
            raise RuntimeError("cancelled")

    assert set(_failed(job(context, 60)._attempts(every, action))) == {("INTERNAL", 1)}
    assert context.event.is_set()


def test_what_is_not_done_at_the_deadline_is_late(port: int) -> None:
    context = Cancelled()

    def action(group: tuple[Route, ...], attempt: int) -> None:
        context.event.wait(60)
        raise RuntimeError("cancelled")

    found = job(context, 0.5)._attempts(routes(port), action)
    assert {item.trouble for item in _failed(found).values()} == {Trouble.LATE}
    assert "deadline of 0.5 s" in next(iter(_failed(found).values())).reason


def test_a_later_success_forgives_an_earlier_failure(port: int) -> None:
    one = routes(port)[0]
    bad = Outcome[None]((one,), 1, None, Problem(Trouble.FAILED, "once"))
    assert _failed([bad]) == {one.key: Problem(Trouble.FAILED, "once")}
    assert _failed([bad, Outcome((one,), 2)]) == {}


def test_options_fail_fast_unless_the_user_says_otherwise() -> None:
    plain = Entrance("a:1,b:2", Protocol.SASL_SSL).options
    assert plain["kafka.bootstrap.servers"] == "a:1,b:2"
    assert plain["kafka.security.protocol"] == "SASL_SSL"
    assert plain["kafka.request.timeout.ms"] == FAIL_FAST["kafka.request.timeout.ms"]
    given = {"request.timeout.ms": "60000", "security.protocol": "PLAINTEXT"}
    chosen = Entrance("a:1", Protocol.SSL, given).options
    assert chosen["kafka.request.timeout.ms"] == "60000"
    assert chosen["kafka.security.protocol"] == "SSL"


def test_a_route_is_left_out_only_where_no_executor_reaches_it() -> None:
    route = Route("INTERNAL", 1, "kafka-1", 9092, 0)

    def seen(reached: bool) -> Vantage:
        it = Reached(listener="INTERNAL", broker=1, address="kafka-1:9092", reached=reached)
        return Vantage(name="executor", kind="executor", reached=(it,))

    assert _reachable(route, ())
    assert _reachable(route, (seen(False), seen(True)))
    assert not _reachable(route, (seen(False), seen(False)))
