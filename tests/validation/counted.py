"""What the Spark job counts, counted once more from plain rows: the reference for its SQL."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from earshot.validation.verdict import EXAMPLES, Share, Tally


@dataclass(frozen=True)
class Received:
    """One record that came back; None where its headers could not be read."""

    read_through: str
    run: str | None
    listener: str | None
    broker: int | None
    attempt: int | None
    sequence: int | None
    partition: int
    offset: int
    intact: bool
    """Its value is the one that was written with its headers."""


def tally(rows: Iterable[Received], run: str, shares: Collection[Share]) -> tuple[Tally, ...]:
    """Counts ``rows`` for ``run``, without an order."""
    groups: dict[tuple[str, Share | None, bool], list[Received]] = defaultdict(list)
    for row in rows:
        own = row.run == run
        share = next((item for item in shares if own and _belongs(row, item)), None)
        groups[row.read_through, share, own].append(row)
    found: list[Tally] = []
    for (reader, share, own), members in groups.items():
        for partition, count in Counter(row.partition for row in members).items():
            if share is None:
                found.append(Tally(reader, None, partition, count, own, corrupt=count * own))
        if share is not None:
            found += _tally(reader, share, members)
    return tuple(found)


def _belongs(row: Received, share: Share) -> bool:
    names = (row.listener, row.broker, row.attempt)
    return (
        names == (share.listener, share.broker, share.attempt)
        and row.sequence is not None
        and 0 <= row.sequence < share.records
    )


def _tally(reader: str, share: Share, members: Sequence[Received]) -> Iterator[Tally]:
    first: dict[int, list[int]] = defaultdict(list)
    seen: set[int | None] = set()
    home_first = sorted(
        members, key=lambda row: (row.partition != share.partition, row.partition, row.offset)
    )
    for row in home_first:
        if row.sequence not in seen:
            seen.add(row.sequence)
            first[row.partition].append(row.sequence or 0)
    missing = tuple(islice((n for n in range(share.records) if n not in seen), EXAMPLES))
    for partition in {row.partition for row in members}:
        here = [row for row in members if row.partition == partition]
        order = first[partition]
        yield Tally(
            reader,
            share,
            partition,
            records=len(here),
            distinct=len(order),
            descents=sum(later < sooner for sooner, later in pairwise(order)),
            corrupt=sum(not row.intact for row in here),
            missing=missing,
        )
