"""What a missing topic means for a cell, by the failure of its creation."""

import pytest

from earshot.doctor.diagnosis import diagnose
from earshot.doctor.missing_topic import without_topic
from earshot.doctor.observation import CellTarget, Observation
from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol
from earshot.validation.client import Failure
from earshot.validation.terms import Verdict

FACTS = Observation(CellTarget("L", Protocol.PLAINTEXT, 1, Address("127.0.0.1", 9092)))


@pytest.mark.parametrize(
    ("error", "given", "has_quorum"),
    [("timeout", 10.0, False), ("timeout", 0.1, True), ("disconnected", 10.0, True)],
)
def test_the_quorum_needs_time_to_be_missing(error: str, given: float, has_quorum: bool) -> None:
    facts = without_topic(FACTS, Failure(error, "said so"), given)
    if has_quorum:
        assert (facts.no_record_reason, facts.produced) == (
            "no topic could be created here: said so",
            None,
        )
        assert facts.refusal is None
    else:
        assert isinstance(facts.produced, Failure) and facts.produced.error == "no-quorum"


def test_a_topic_that_waits_for_api_versions_is_no_lost_quorum() -> None:
    at, other = Address("127.0.0.1", 9092), Address("127.0.0.1", 9093)
    silences = {at: Failure("timeout", "no answer within 2.0 s")}
    cells = [
        diagnose(
            without_topic(
                Observation(CellTarget("L", Protocol.PLAINTEXT, 1, place)),
                Failure("timeout", "said so"),
                10.0,
                silences,
            ),
            "host",
        )
        for place in (at, other)
    ]
    assert cells[0].cause is not None and cells[0].cause.kind == "no-api-versions"
    assert "but not ApiVersions: no answer within 2.0 s" in cells[0].cause.observed
    assert (cells[1].verdict, cells[1].reason) == (
        Verdict.SKIP,
        f"no topic could be created here: ApiVersions got no answer at {at}",
    )


def test_a_cluster_that_refuses_a_topic_says_why() -> None:
    facts = without_topic(FACTS, Failure("policy-violation", "at least two replicas"), 10.0)
    reason = "the cluster refused a topic for the records, so none were sent"
    assert (facts.no_record_reason, facts.produced) == (reason, None)
    assert facts.refusal is not None
    assert (facts.refusal.kind, facts.refusal.observed) == ("topic-policy", "at least two replicas")
