"""The topic of a run: how many clients create it, and through which brokers."""

from collections.abc import Sequence
from typing import Any

import pytest

from earshot.doctor import run_topic
from earshot.doctor.run_topic import Partitions, ReachedBrokers, RunTopic
from earshot.listeners.terms import Protocol
from earshot.validation.client import Failure
from earshot.validation.deadline import Deadline
from earshot.validation.topic import TopicError
from tests.doubles.answers import address

ACCESS = ReachedBrokers(
    Protocol.SASL_SSL, {1: address("b1:1"), 2: address("b2:1")}, {"sasl.mechanism": "X"}
)


class ClusterDouble:
    """What clients are made and asked for, in order; ``refusals`` of the first requests."""

    def __init__(self, *refusals: Failure) -> None:
        self.made: list[tuple[object, ...]] = []
        self.asked: list[tuple[str, int]] = []
        self._refusals = list(refusals)
        self.undeleted: Failure | None = None
        """Why no topic can be deleted any more."""

    def admin_client(self, *given: object) -> int:
        """A client, known by its number."""
        self.made.append(given)
        return len(self.made)

    def steer(self, admin: int, reachable: Any, limit: float) -> None:
        self.asked.append(("steer", admin))
        assert limit == run_topic.STEER_LIMIT
        assert [broker for broker in (1, 2, 3) if reachable(broker)] == [1]

    def create_topic(self, admin: int, *rest: object) -> None:
        self.asked.append(("create", admin))
        if self._refusals:
            raise TopicError(self._refusals.pop(0))

    def undeletable(self, admin: int, *rest: object) -> None:
        self.asked.append(("undeletable", admin))

    def delete_topic(self, admin: int, *rest: object) -> Failure | None:
        self.asked.append(("delete", admin))
        return self.undeleted

    def delete_leftovers(self, admin: int, *rest: object) -> list[str]:
        self.asked.append(("sweep", admin))
        return ["old"]


def topic_on(cluster: ClusterDouble, monkeypatch: pytest.MonkeyPatch) -> RunTopic:
    for name in (
        "admin_client",
        "steer",
        "create_topic",
        "undeletable",
        "delete_topic",
        "delete_leftovers",
    ):
        monkeypatch.setattr(run_topic, name, getattr(cluster, name))
    monkeypatch.setattr(run_topic, "connects", lambda at, limit: str(at) == "b1:1")
    return RunTopic("dev", "0a1b2c3d", 60.0, ACCESS, Deadline(60))


def steps(asked: Sequence[tuple[str, int]], client: int) -> list[str]:
    return [step for step, by in asked if by == client]


def test_one_client_steers_before_every_request(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = ClusterDouble()
    topic = topic_on(cluster, monkeypatch)
    created = topic.create([(1,), (2,)])
    assert isinstance(created, Partitions) and created.numbers == (0, 1)
    assert topic.sweep() == ["old"]
    assert topic.delete() == ""
    assert cluster.made == [("b1:1,b2:1", Protocol.SASL_SSL, {"sasl.mechanism": "X"})]
    wanted = ["steer", "undeletable", "create", "steer", "sweep", "steer", "delete"]
    assert steps(cluster.asked, 1) == wanted


@pytest.mark.parametrize("error", ["timeout", "disconnected"])
def test_a_client_without_answer_is_replaced(monkeypatch: pytest.MonkeyPatch, error: str) -> None:
    cluster = ClusterDouble(Failure(error, "none"))
    assert isinstance(topic_on(cluster, monkeypatch).create([(1,)]), Partitions)
    assert steps(cluster.asked, 1) == ["steer", "undeletable", "create"]
    assert steps(cluster.asked, 2) == ["steer", "create"]


def test_a_refusal_is_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Failure("policy-violation", "no")
    cluster = ClusterDouble(refused)
    assert topic_on(cluster, monkeypatch).create([(1,)]) == refused
    assert len(cluster.made) == 1


def test_a_topic_never_created_is_not_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = ClusterDouble(Failure("authorization", "may not create topics"))
    cluster.undeleted = Failure("authorization", "may not delete topics")
    topic = topic_on(cluster, monkeypatch)
    assert isinstance(topic.create([(1,)]), Failure)
    assert topic.delete() == ""
    assert "delete" not in steps(cluster.asked, 1)
    assert topic_on(cluster, monkeypatch).delete() == ""


def test_a_topic_that_may_have_been_created_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_topic, "CREATE_TRIES", (2.0, 2.0))
    cluster = ClusterDouble(Failure("timeout", "none"), Failure("authorization", "no"))
    cluster.undeleted = Failure("timeout", "no answer")
    topic = topic_on(cluster, monkeypatch)
    assert topic.create([(1,)]) == Failure("authorization", "no")
    assert topic.delete() == (
        f"topic {topic._name} may have been created, and could not be deleted "
        "(no answer); the next run removes it when it has expired"
    )


def test_brokers_that_were_not_asked_for_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = topic_on(ClusterDouble(), monkeypatch)
    pairs = [(1, 2), (2, 1), (1, 3), (3, 1)]
    topic.create(pairs)
    answers = iter([{0: (1, 2)}, {0: (1, 2), 1: (1, 2), 2: (1,), 3: (3, 1)}])
    monkeypatch.setattr(run_topic, "layout", lambda admin, name, limit: next(answers))
    shown = "the metadata shows brokers {} for a partition on brokers {}"
    assert topic.misplaced(pairs) == [
        "", shown.format("1, 2", "2, 1"), shown.format("1", "1, 3"), ""
    ]  # fmt: skip

    def silent(*given: object) -> None:
        raise TopicError(Failure("timeout", "no answer"))

    monkeypatch.setattr(run_topic, "layout", silent)
    assert all(text.startswith("the metadata shows no brokers") for text in topic.misplaced(pairs))
