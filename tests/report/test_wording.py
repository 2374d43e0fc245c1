"""The words that all formats share."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest

from earshot.report.wording import counted, moment, outcome, standpoint, subject, tally
from earshot.validation.result import Replication, Vantage
from earshot.validation.terms import Stage, Verdict
from tests.report import samples


@pytest.fixture
def far_from_greenwich(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC-9")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(("changes", "expected"), [
    ({"cluster_id": "ID"}, "cluster local (id ID), placement local, Kafka 4.1.1"),
    ({"cluster_id": ""}, "cluster local, placement local, Kafka 4.1.1"),
    ({"cluster_id": "local"}, "cluster local, placement local, Kafka 4.1.1"),
    ({"cluster_id": "", "placement": ""}, "cluster local, Kafka 4.1.1"),
    ({"cluster_id": "", "kafka_version": ""}, "cluster local, placement local"),
    ({"cluster": "two\n words", "cluster_id": "", "placement": ""},
     "cluster two words, Kafka 4.1.1"),
])  # fmt: skip
def test_unknown_facts_of_the_cluster_are_left_out(
    changes: dict[str, object], expected: str
) -> None:
    assert subject(samples.report([], **changes)) == expected


@pytest.mark.usefixtures("far_from_greenwich")
@pytest.mark.parametrize("when", [
    datetime(2025, 3, 1, 12, 30, 15),
    datetime(2025, 3, 1, 12, 30, 15, tzinfo=UTC),
    datetime(2025, 3, 1, 14, 30, 15, tzinfo=timezone(timedelta(hours=2))),
], ids=["without a zone", "in UTC", "elsewhere"])  # fmt: skip
def test_every_moment_is_shown_in_utc(when: datetime) -> None:
    assert moment(when) == "2025-03-01 12:30:15 UTC"


def test_a_cell_shows_its_latency_the_stage_that_failed_or_its_verdict() -> None:
    good = samples.cell("EXTERNAL", 2)
    assert outcome(good) == "2.0 ms"
    assert outcome(good.model_copy(update={"latency_ms": None})) == ""
    bad = good.model_copy(update={"verdict": Verdict.FAIL, "stages": samples.stages(Stage.TCP)})
    assert outcome(bad) == "tcp"
    assert outcome(bad.model_copy(update={"stages": ()})) == "failed"
    assert outcome(bad.model_copy(update={"verdict": Verdict.SKIP})) == "skipped"
    assert outcome(bad.model_copy(update={"verdict": Verdict.INCONCLUSIVE})) == "inconclusive"


@pytest.mark.parametrize(("vantage", "expected"), [
    (Vantage(name="host", kind="host"), "host"),
    (Vantage(name="host", kind="host", where="host"), "host"),
    (Vantage(name="host", kind="host", where="devbox"), "host (machine devbox)"),
    (Vantage(name="e-1", kind="executor", where="w", resolvers=("192.0.2.1", "192.0.2.2")),
     "e-1 (executor, machine w, resolvers 192.0.2.1, 192.0.2.2)"),
])  # fmt: skip
def test_a_vantage_is_shown_with_its_place(vantage: Vantage, expected: str) -> None:
    assert standpoint(vantage) == expected


@pytest.mark.parametrize(("verdicts", "expected"), [
    ([], "no delivery was checked"),
    ([Verdict.PASS], "1 of 1 delivery passed"),
    ([Verdict.FAIL, Verdict.PASS, Verdict.SKIP], "1 of 3 deliveries passed, 1 failed, 1 skipped"),
])  # fmt: skip
def test_what_passed_is_counted_and_so_is_the_rest(verdicts: list[Verdict], expected: str) -> None:
    assert counted("delivery", verdicts, "deliveries") == expected
    assert counted("delivery", verdicts) == expected.replace("ies", "ys")


def test_pairs_of_brokers_that_were_not_tried_are_counted() -> None:
    pairs = [
        (leader, follower)
        for leader in range(1, 8)
        for follower in range(1, 8)
        if leader != follower
    ]

    def summary(tried_pairs: list[tuple[int, int]]) -> str:
        replication = tuple(
            Replication(leader=leader, follower=follower, verdict=Verdict.PASS)
            for leader, follower in tried_pairs
        )
        report = samples.all_pass().model_copy(update={"replication": replication})
        return tally(report).rpartition("; ")[2]

    assert summary(pairs) == "42 of 42 replications passed"
    ring = [(leader, follower) for leader, follower in pairs if (follower - leader) % 7 in (1, 2)]
    assert summary(ring) == "14 of 14 replications passed, of 42 pairs of brokers"
