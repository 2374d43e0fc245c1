"""Why a cluster refused a topic, and what to do: each with a kind of its own."""

import re
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from earshot.validation.client import failure_of
from earshot.validation.refusals import KINDS, refusal


@pytest.mark.parametrize(
    ("code", "kind", "remedy"),
    [
        (KafkaError.POLICY_VIOLATION, "topic-policy", "create.topic.policy.class.name"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "topic-authorization", "allow this user Create"),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, "topic-authorization", "allow this user Create"),
        (KafkaError.INVALID_REPLICATION_FACTOR, "topic-replicas", "one replica"),
        (KafkaError.INVALID_REPLICA_ASSIGNMENT, "topic-replicas", "registered"),
        (KafkaError.INVALID_CONFIG, "topic-settings", "refused setting"),
        (KafkaError.THROTTLING_QUOTA_EXCEEDED, "topic-quota", "controller_mutation_rate"),
        (KafkaError.LEADER_NOT_AVAILABLE, "topic-leaderless", "fenced"),
        (KafkaError.UNKNOWN, "topic-refused", "log of the active controller"),
    ],
)
def test_every_refusal_says_what_to_do(code: int, kind: str, remedy: str) -> None:
    cause = refusal(failure_of(KafkaError(code, "its own words")))
    assert cause is not None and cause.kind == kind
    assert cause.observed == "its own words"
    assert cause.expected == "the cluster creates a topic whose name begins with __earshot-"
    assert remedy in cause.remedy


SILENCE = (KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT, KafkaError._TRANSPORT)


@pytest.mark.parametrize("code", [*SILENCE, KafkaError._ALL_BROKERS_DOWN])
def test_a_missing_answer_refuses_nothing(code: int) -> None:
    text = "Failed while waiting for response from broker: Local: Broker transport failure"
    assert refusal(failure_of(KafkaError(code, text))) is None


def test_the_runbook_names_them_all() -> None:
    text = (Path(__file__).parents[2] / "docs" / "runbook.md").read_text()
    assert {kind for kind, _ in KINDS.values()} <= set(re.findall(r"`(topic-[a-z]+)`", text))
