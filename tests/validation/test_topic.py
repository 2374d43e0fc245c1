"""The name of a run's topic: whose it is, until when, and which of them may be removed."""

import re

from hypothesis import given
from hypothesis import strategies as st

from earshot.validation.topic import CLOCK_SLACK, leftovers, run_id, topic_name

NOW = 1_800_000_000.0
CLUSTERS = st.text(min_size=1, max_size=300)


def test_run_ids_differ() -> None:
    ids = {run_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(re.fullmatch(r"[0-9a-f]{8}", id) for id in ids)


def test_the_name_says_cluster_end_and_run() -> None:
    assert (
        topic_name("dev", "0a1b2c3d", 60, NOW)
        == f"__earshot-dev-{1_800_000_060 + CLOCK_SLACK}-0a1b2c3d"
    )


@given(CLUSTERS)
def test_kafka_accepts_every_name(cluster: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic_name(cluster, run_id(), 60, NOW))


@given(CLUSTERS, st.floats(min_value=0, max_value=10_000))
def test_a_run_that_may_be_alive_is_left_alone(cluster: str, later: float) -> None:
    name = topic_name(cluster, run_id(), 10_000, NOW)
    assert leftovers([name], cluster, NOW + later) == []


@given(CLUSTERS)
def test_an_expired_run_of_this_cluster_is_a_leftover(cluster: str) -> None:
    name = topic_name(cluster, run_id(), 60, NOW)
    both = [name, f"{name}-copies"]
    assert leftovers(both, cluster, NOW + 60 + CLOCK_SLACK + 1) == both


def test_topics_of_others_are_not_touched() -> None:
    names = [
        topic_name("dev-2", run_id(), 60, NOW),
        topic_name("dev-1234567890", run_id(), 60, NOW),
        "__earshot-dev-notes",
        "__earshot-dev-1799999999-RUN",
        "earshot-dev-1799999999-0a1b2c3d",
        "__earshot-dev-1799999999-0a1b2c3d-copy",
        "__consumer_offsets",
        "orders",
    ]
    assert leftovers(names, "dev", NOW + 1e6) == []
