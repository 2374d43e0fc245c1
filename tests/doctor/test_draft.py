"""A report as far as it has come, and the threads that a run may have."""

from earshot.doctor.draft import MAX_CLIENTS, OWN_THREADS, Draft
from earshot.doctor.targets import targets_of
from earshot.validation.terms import Verdict
from earshot.validation.wire import MAX_BROKERS
from tests.doubles.answers import contract
from tests.report import samples

TWO = contract(INTERNAL=["i:1", "i:2"])


def test_targets_without_a_cell_are_inconclusive_for_the_reason() -> None:
    begun = Draft(contract=TWO, targets=targets_of(TWO), cells={1: samples.cell("INTERNAL", 2)})
    report = begun.report("terminated")
    assert [(cell.broker, cell.verdict, cell.reason) for cell in report.cells] == [
        (1, Verdict.INCONCLUSIVE, "terminated"),
        (2, Verdict.PASS, ""),
    ]
    assert report.vantages[0].reason == "terminated" and report.exit_code == 3
    assert (report.cluster, report.placement, report.run) == ("dev", "local", begun.run)


def test_before_anything_is_known_nothing_passes() -> None:
    report = Draft().report("terminated")
    assert (report.cells, report.cluster, report.exit_code) == ((), "unknown", 3)


def test_a_small_cluster_may_have_few_threads_and_a_large_one_many() -> None:
    """An honest one of a thousand brokers needs a thousand per client of librdkafka."""
    assert 0 < Draft(targets=targets_of(TWO), brokers=3).most_threads - OWN_THREADS < 100
    assert Draft(targets=targets_of(TWO), brokers=1000).most_threads >= 8 * 1000
    assert Draft().most_threads <= OWN_THREADS + MAX_CLIENTS * (MAX_BROKERS + 3)
