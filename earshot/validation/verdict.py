"""The verdict: a pure function over what was acknowledged and what came back.

Records are counted near the data (`earshot.spark.records`); here only the counts, a `Tally` each,
are looked at.

The rules: lost are the acknowledged sequences that never came back. A record that came back more
than once is a duplicate, which at-least-once delivery allows. Order is looked at within a partition
and by each record's first occurrence, so that a duplicate is not out of order as well. Corrupt and
misrouted records did come back and are not lost. The records of a write that failed may be there or
not: they are unknown, never lost. Records of other runs are counted and nothing else.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from earshot.validation.result import Delivery

EXAMPLES = 20
"""Findings that a delivery spells out; its counts are complete."""


@dataclass(frozen=True)
class Share:
    """What one write put into the one partition of a (listener, broker): sequences 0..records."""

    listener: str
    broker: int
    attempt: int
    """A share that failed is written again under the next number."""
    partition: int
    records: int
    acknowledged: bool


@dataclass(frozen=True)
class Tally:
    """The records that came back through one listener and from one partition, of one share.

    Without a share they are another run's (``own`` is false), or ours with headers that name no
    record ever written.
    """

    read_through: str
    share: Share | None
    partition: int
    records: int
    own: bool = True
    distinct: int = 0
    """Sequences first seen here; one that was seen in several partitions counts in one of them."""
    descents: int = 0
    """First occurrences whose sequence is below the one before them."""
    corrupt: int = 0
    missing: tuple[int, ...] = ()
    """The first sequences that came back from no partition, at most EXAMPLES."""


def verdict_of(
    shares: Sequence[Share], tallies: Sequence[Tally], reads: Collection[tuple[str, int]]
) -> tuple[Delivery, ...]:
    """One delivery per (written through, read through, broker) that was read back.

    ``reads`` are the (listener, partition) that were read to their end: what could not be read is
    a failure of its reader, not a loss. The order is that of ``shares``, then of the readers.
    """
    readers = sorted({reader for reader, _ in reads})
    written: dict[tuple[str, int], list[Share]] = defaultdict(list)
    for share in shares:
        written[share.listener, share.broker].append(share)
    return tuple(
        _deliver(reader, parts, [tally for tally in tallies if tally.read_through == reader])
        for parts in written.values()
        for reader in readers
        if (reader, parts[0].partition) in reads
    )


def _deliver(reader: str, shares: Sequence[Share], tallies: Sequence[Tally]) -> Delivery:
    home = shares[0].partition
    own = [tally for tally in tallies if tally.share in shares]
    checked = [tally for tally in own if tally.share is not None and tally.share.acknowledged]
    strays = [tally for tally in tallies if tally.share is None and tally.partition == home]
    acknowledged = sum(share.records for share in shares if share.acknowledged)
    distinct = sum(tally.distinct for tally in checked)
    return Delivery(
        written_through=shares[0].listener,
        read_through=reader,
        broker=shares[0].broker,
        acknowledged=acknowledged,
        unknown=sum(share.records for share in shares if not share.acknowledged),
        read=sum(tally.records for tally in own),
        lost=acknowledged - distinct,
        duplicated=sum(tally.records for tally in checked) - distinct,
        out_of_order=sum(tally.descents for tally in checked),
        corrupt=sum(tally.corrupt for tally in [*own, *strays]),
        misrouted=sum(tally.records for tally in own if tally.partition != home),
        foreign=sum(stray.records for stray in strays if not stray.own),
        examples=tuple(islice(_examples(shares, own, strays), EXAMPLES)),
    )


def _examples(
    shares: Sequence[Share], own: Sequence[Tally], strays: Sequence[Tally]
) -> Iterator[str]:
    home = shares[0].partition
    for share in shares:
        met = [tally for tally in own if tally.share == share]
        missing = met[0].missing if met else range(min(share.records, EXAMPLES))
        if share.acknowledged:
            yield from (f"record {number} never came back" for number in missing)
    for tally in own:
        if tally.corrupt:
            yield f"{tally.corrupt} records in partition {tally.partition} with another value"
    for tally in own:
        if tally.partition != home:
            yield f"{tally.records} records in partition {tally.partition} instead of {home}"
    for tally in strays:
        if tally.own:
            yield f"{tally.records} records whose headers name no record that was written"
