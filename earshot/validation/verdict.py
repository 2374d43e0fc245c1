"""Compares the acknowledged records with those that came back. No input or output.

Records are counted near the data (`earshot.spark.records`). This module gets only the counts, as
`Tally` objects.

Rules:
- Lost: an acknowledged sequence number that never came back.
- Duplicate: a record that came back more than once, which at-least-once delivery allows.
- Out of order: within a partition, by each record's first occurrence, so that a duplicate does not
  count twice.
- Corrupt and misrouted records came back, and are not lost.
- Unknown: a record of a failed write, which may exist or not. It is never lost.
- Records of other runs are only counted.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from earshot.validation.result import Delivery

EXAMPLES = 20
"""The maximum number of examples of a delivery. Its counts are complete."""


@dataclass(frozen=True)
class Share:
    """The records of one write to the partition of a (listener, broker), with sequence numbers from
    0 to ``records`` - 1."""

    listener: str
    broker: int
    attempt: int
    """The attempt's number. A failed share is written again with the next one."""
    partition: int
    records: int
    acknowledged: bool


@dataclass(frozen=True)
class Tally:
    """The counts of one share's records that came back through one listener from one partition.

    Without a share: records of another run (``own`` is False), or of this run with headers that
    match no written record.
    """

    read_through: str
    share: Share | None
    partition: int
    records: int
    own: bool = True
    distinct: int = 0
    """Distinct sequence numbers. One that is in several partitions counts in one of them."""
    descents: int = 0
    """First occurrences whose sequence number is below the previous one."""
    corrupt: int = 0
    missing: tuple[int, ...] = ()
    """Sequence numbers that came back from no partition; the lowest, at most `EXAMPLES`."""


def verdict_of(
    shares: Sequence[Share], tallies: Sequence[Tally], reads: Collection[tuple[str, int]]
) -> tuple[Delivery, ...]:
    """One delivery per (written through, read through, broker) that was read.

    ``reads`` are the (listener, partition) pairs that were read to the end. Others are a failure of
    the reading listener, not a loss. The order is that of ``shares``, then of the readers.
    """
    readers = sorted({reader for reader, _ in reads})
    shares_by_route: dict[tuple[str, int], list[Share]] = defaultdict(list)
    for share in shares:
        shares_by_route[share.listener, share.broker].append(share)
    return tuple(
        _deliver(reader, route_shares, [tally for tally in tallies if tally.read_through == reader])
        for route_shares in shares_by_route.values()
        for reader in readers
        if (reader, route_shares[0].partition) in reads
    )


def _deliver(reader: str, shares: Sequence[Share], tallies: Sequence[Tally]) -> Delivery:
    home = shares[0].partition
    own_tallies = [tally for tally in tallies if tally.share in shares]
    acknowledged_tallies = [
        tally for tally in own_tallies if tally.share is not None and tally.share.acknowledged
    ]
    strays = [tally for tally in tallies if tally.share is None and tally.partition == home]
    acknowledged = sum(share.records for share in shares if share.acknowledged)
    distinct = sum(tally.distinct for tally in acknowledged_tallies)
    return Delivery(
        written_through=shares[0].listener,
        read_through=reader,
        broker=shares[0].broker,
        acknowledged=acknowledged,
        unknown=sum(share.records for share in shares if not share.acknowledged),
        read=sum(tally.records for tally in own_tallies),
        lost=acknowledged - distinct,
        duplicated=sum(tally.records for tally in acknowledged_tallies) - distinct,
        out_of_order=sum(tally.descents for tally in acknowledged_tallies),
        corrupt=sum(tally.corrupt for tally in [*own_tallies, *strays]),
        misrouted=sum(tally.records for tally in own_tallies if tally.partition != home),
        foreign=sum(stray.records for stray in strays if not stray.own),
        examples=tuple(islice(_examples(shares, own_tallies, strays), EXAMPLES)),
    )


def _examples(
    shares: Sequence[Share], own_tallies: Sequence[Tally], strays: Sequence[Tally]
) -> Iterator[str]:
    home = shares[0].partition
    for share in shares:
        share_tallies = [tally for tally in own_tallies if tally.share == share]
        missing = share_tallies[0].missing if share_tallies else range(min(share.records, EXAMPLES))
        if share.acknowledged:
            yield from (f"record {number} never came back" for number in missing)
    for tally in own_tallies:
        if tally.corrupt:
            yield f"{tally.corrupt} records in partition {tally.partition} with another value"
    for tally in own_tallies:
        if tally.partition != home:
            yield f"{tally.records} records in partition {tally.partition} instead of {home}"
    for tally in strays:
        if tally.own:
            yield f"{tally.records} records whose headers name no record that was written"
