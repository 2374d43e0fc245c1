from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from earshot.validation.result import Delivery
from earshot.validation.terms import Verdict
from earshot.validation.verdict import EXAMPLES, Share, verdict_of
from tests.validation.counted import Received, tally

RUN = "c0ffee00"
READERS = ("INTERNAL", "EXTERNAL")


def all_of(shares: Sequence[Share], readers: Sequence[str] = READERS) -> list[Received]:
    """What comes back when nothing goes wrong."""
    return [
        Received(
            reader,
            RUN,
            share.listener,
            share.broker,
            share.attempt,
            number,
            share.partition,
            number,
            True,
        )
        for reader in readers
        for share in shares
        for number in range(share.records)
    ]


def deliver(shares: Sequence[Share], rows: Sequence[Received]) -> list[Delivery]:
    reads = {(reader, share.partition) for reader in READERS for share in shares}
    return list(verdict_of(shares, tally(rows, RUN, shares), reads))


def findings(delivery: Delivery) -> tuple[int, int, int, int, int]:
    lost, duplicated = delivery.lost, delivery.duplicated
    return lost, duplicated, delivery.out_of_order, delivery.corrupt, delivery.misrouted


def through_internal(deliveries: Sequence[Delivery]) -> Delivery:
    return next(delivery for delivery in deliveries if delivery.read_through == "INTERNAL")


def record(sequence: int | None, partition: int, offset: int, intact: bool = True) -> Received:
    """A record of INTERNAL at broker 1, read through INTERNAL."""
    return Received("INTERNAL", RUN, "INTERNAL", 1, 1, sequence, partition, offset, intact)


@st.composite
def layouts(draw: st.DrawFn) -> list[Share]:
    """Acknowledged shares, each with a partition of its own."""
    keys = [(listener, broker) for listener in READERS for broker in (1, 2, 3)]
    chosen = draw(st.lists(st.sampled_from(keys), unique=True, min_size=1))
    records = draw(st.integers(1, 12))
    return [
        Share(listener, broker, 1, partition, records, True)
        for partition, (listener, broker) in enumerate(chosen)
    ]


def chosen_rows(draw: st.DrawFn, rows: Sequence[Received], least: int = 1) -> list[int]:
    indices = st.integers(0, len(rows) - 1)
    return sorted(draw(st.lists(indices, unique=True, min_size=least, max_size=len(rows))))


def count(rows: Sequence[Received], item: Delivery) -> int:
    return sum(
        (row.read_through, row.listener, row.broker)
        == (item.read_through, item.written_through, item.broker)
        for row in rows
    )


@given(layouts())
def test_all_back_is_all_well(shares: list[Share]) -> None:
    deliveries = deliver(shares, all_of(shares))
    assert len(deliveries) == len(shares) * len(READERS)
    assert {findings(item) for item in deliveries} == {(0, 0, 0, 0, 0)}
    assert all(item.verdict is Verdict.PASS and not item.examples for item in deliveries)
    assert all(item.read == item.acknowledged == shares[0].records for item in deliveries)


@given(layouts(), st.data())
def test_dropped_records_are_lost(shares: list[Share], data: st.DataObject) -> None:
    rows = all_of(shares)
    gone = [rows[index] for index in data.draw(st.composite(chosen_rows)(rows))]
    for item in deliver(shares, [row for row in rows if row not in gone]):
        lost = count(gone, item)
        assert findings(item) == (lost, 0, 0, 0, 0)
        assert item.verdict is (Verdict.FAIL if lost else Verdict.PASS)
        assert len(item.examples) == min(lost, EXAMPLES)


@given(layouts(), st.data())
def test_a_second_copy_is_a_duplicate_and_passes(shares: list[Share], data: st.DataObject) -> None:
    rows = all_of(shares)
    copies = [rows[index] for index in data.draw(st.composite(chosen_rows)(rows))]
    deliveries = deliver(shares, rows + [replace(row, offset=row.offset + 1000) for row in copies])
    for item in deliveries:
        assert findings(item) == (0, count(copies, item), 0, 0, 0)
        assert item.verdict is Verdict.PASS


@given(layouts(), st.data())
def test_a_changed_payload_is_only_corrupt(shares: list[Share], data: st.DataObject) -> None:
    rows = all_of(shares)
    changed = data.draw(st.composite(chosen_rows)(rows))
    mixed = [replace(row, intact=index not in changed) for index, row in enumerate(rows)]
    for item in deliver(shares, mixed):
        assert findings(item) == (0, 0, 0, count([rows[i] for i in changed], item), 0)


@given(layouts(), st.integers(1, 11))
def test_two_swapped_neighbours_are_one_descent(shares: list[Share], place: int) -> None:
    assume(place < shares[0].records)
    moved = {place: place - 1, place - 1: place}
    rows = [
        replace(row, offset=moved.get(row.offset, row.offset))
        if row.partition == 0 and row.read_through == "EXTERNAL"
        else row
        for row in all_of(shares)
    ]
    for item in deliver(shares, rows):
        hit = (item.written_through, item.broker) == (shares[0].listener, shares[0].broker)
        assert findings(item) == (0, 0, int(hit and item.read_through == "EXTERNAL"), 0, 0)


@given(layouts(), st.data())
def test_a_record_in_another_partition(shares: list[Share], data: st.DataObject) -> None:
    rows = all_of(shares)
    moved = data.draw(st.composite(chosen_rows)(rows))
    strayed = [
        replace(row, partition=99) if index in moved else row for index, row in enumerate(rows)
    ]
    for item in deliver(shares, strayed):
        expected = count([rows[index] for index in moved], item)
        assert findings(item) == (0, 0, 0, 0, expected)


@given(layouts(), st.lists(st.sampled_from(["", "deadbeef", None]), min_size=1, max_size=9))
def test_records_of_other_runs_are_counted(shares: list[Share], runs: list[str | None]) -> None:
    others = [
        Received("INTERNAL", run, "INTERNAL", 1, 1, number, 0, 500 + number, False)
        for number, run in enumerate(runs)
    ]
    deliveries = deliver(shares, all_of(shares) + others)
    assert {findings(item) for item in deliveries} == {(0, 0, 0, 0, 0)}
    assert sum(item.foreign for item in deliveries) == len(runs)


@given(layouts(), st.data())
def test_records_of_a_failed_write_are_unknown(shares: list[Share], data: st.DataObject) -> None:
    failed = [replace(share, acknowledged=False) for share in shares]
    again = [replace(item, attempt=2) for item in shares]
    rows = all_of(failed)
    seen = [rows[index] for index in data.draw(st.composite(chosen_rows)(rows, 0))]
    later = [replace(row, offset=row.offset + 1000) for row in all_of(again)]
    for item in deliver(failed + again, seen + later):
        assert findings(item) == (0, 0, 0, 0, 0)
        assert item.unknown == item.acknowledged == shares[0].records
        assert item.read == item.acknowledged + count(seen, item)


def test_a_share_of_which_nothing_came_back() -> None:
    (delivery, _) = deliver([Share("INTERNAL", 1, 1, 0, 100, True)], [])
    assert delivery.lost == 100
    assert delivery.examples[0] == "record 0 never came back"
    assert len(delivery.examples) == EXAMPLES
    (delivery, _) = deliver([Share("INTERNAL", 1, 1, 0, 10, False)], [])
    assert (delivery.acknowledged, delivery.unknown, delivery.lost) == (0, 10, 0)
    assert delivery.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("sequence", [-1, 2, 7, None])
def test_headers_that_name_no_written_record_are_corrupt(sequence: int | None) -> None:
    share = Share("INTERNAL", 1, 1, 0, 2, True)
    delivery = through_internal(deliver([share], [*all_of([share]), record(sequence, 0, 2)]))
    assert findings(delivery) == (0, 0, 0, 1, 0)
    examples = ("1 records whose headers name no record that was written",)
    assert (delivery.foreign, delivery.examples) == (0, examples)


def test_a_record_in_several_partitions_counts_where_it_belongs_else_in_the_first() -> None:
    share = Share("INTERNAL", 1, 1, 5, 2, True)
    copies = [(5, 0, 100), (3, 0, 0), (9, 0, 1), (9, 1, 2), (3, 1, 50)]
    rows = [record(sequence, partition, offset) for partition, sequence, offset in copies]
    counts = {it.partition: (it.records, it.distinct) for it in tally(rows, RUN, [share])}
    assert counts == {5: (1, 1), 3: (2, 1), 9: (2, 0)}


def test_findings_are_told_by_share_and_partition() -> None:
    failed = Share("INTERNAL", 1, 1, 0, 3, False)
    again = replace(failed, attempt=2, acknowledged=True)
    lost, corrupt, strayed = all_of([again], ["INTERNAL"])
    rows = [
        all_of([failed], ["INTERNAL"])[0],  # the others of that write are not missed
        replace(corrupt, intact=False, offset=10),
        replace(strayed, partition=7, offset=11),
    ]
    delivery = through_internal(deliver([failed, again], rows))
    assert (lost.sequence, corrupt.sequence) == (0, 1)
    assert delivery.examples == (
        "record 0 never came back",
        "1 records in partition 0 with another value",
        "1 records in partition 7 instead of 0",
    )
    assert findings(delivery) == (1, 0, 0, 1, 1)


def test_what_was_not_read_is_not_checked() -> None:
    shares = [Share("INTERNAL", 1, 1, 0, 3, True), Share("INTERNAL", 2, 1, 1, 3, True)]
    rows = [row for row in all_of(shares) if row.partition == 0]
    deliveries = verdict_of(shares, tally(rows, RUN, shares), {("INTERNAL", 0), ("EXTERNAL", 0)})
    assert [(item.read_through, item.broker, item.lost) for item in deliveries] == [
        ("EXTERNAL", 1, 0),
        ("INTERNAL", 1, 0),
    ]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (3, 2, 1, 0)])
def test_order_is_checked_by_first_occurrence(order: tuple[int, ...]) -> None:
    share = Share("INTERNAL", 1, 1, 0, 4, True)
    numbers = [*order, *range(4)]
    rows = [record(number, 0, offset) for offset, number in enumerate(numbers)]
    delivery = through_internal(deliver([share], rows))
    descents = sum(later < sooner for sooner, later in pairwise(order))
    assert (delivery.out_of_order, delivery.duplicated) == (descents, 4)
