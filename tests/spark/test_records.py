"""Spark's counting against the reference in `verdict`, on static rows: no broker."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from earshot.spark import records as spark_records
from earshot.spark.session import SessionStart, SparkSettings
from earshot.validation.verdict import Share
from tests.rest import with_combinations
from tests.validation.counted import Received, tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
    # PySpark leaves the sockets that it collects rows from to the garbage collector
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

RUN = "c0ffee00"
READER = "INTERNAL"
SCHEMA = (
    "value binary, headers array<struct<key: string, value: binary>>, partition int, offset long"
)
SHARES = [
    Share(listener, broker, 1, partition, 20, True)
    for partition, (listener, broker) in enumerate(
        (listener, broker) for listener in ("INTERNAL", "EXTERNAL") for broker in (1, 2)
    )
]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    opening = SessionStart(SparkSettings(conf={"spark.master": "local[2]"}))
    try:
        yield opening.session(120)
    finally:
        opening.close()


class Log:
    """Partitions that are appended to, as rows of the connector and as the reference takes them."""

    def __init__(self) -> None:
        self._ends: dict[int, int] = {}
        self.rows: list[tuple[bytes, list[tuple[str, bytes]] | None, int, int]] = []
        self.reference: list[Received] = []

    def append(self, share: Share, number: object, *, partition: int, intact: bool = True) -> None:
        origin = spark_records.origin(RUN, share)
        filled = f"{origin}/{number}/" + "earshot." * 13
        payload = filled[: spark_records.PAYLOAD - (not intact)].encode()
        headers = [("origin", origin.encode()), ("sequence", str(number).encode())]
        self._append(payload, headers, partition)
        self.reference.append(
            Received(
                READER,
                RUN,
                share.listener,
                share.broker,
                share.attempt,
                number if isinstance(number, int) else None,
                partition,
                self._ends[partition] - 1,
                intact,
            )
        )

    def append_foreign(self, headers: list[tuple[str, bytes]] | None, partition: int) -> None:
        self._append(b"somebody else's", headers, partition)
        offset = self._ends[partition] - 1
        self.reference.append(
            Received(READER, None, None, None, None, None, partition, offset, False)
        )

    def _append(
        self, value: bytes, headers: list[tuple[str, bytes]] | None, partition: int
    ) -> None:
        offset = self._ends.get(partition, 0)
        self._ends[partition] = offset + 1
        self.rows.append((value, headers, partition, offset))

    def frame(self, spark: SparkSession) -> DataFrame:
        return spark_records.parsed_records(spark.createDataFrame(self.rows, SCHEMA), RUN)


def disturbed_log(seed: int) -> Log:
    """A log with everything that may happen to records, at random."""
    chance = random.Random(seed)
    log = Log()
    for share in SHARES:
        numbers: list[object] = list(range(share.records))
        for _ in range(chance.randrange(4)):
            first_index, second_index = chance.randrange(20), chance.randrange(20)
            numbers[first_index], numbers[second_index] = (
                numbers[second_index],
                numbers[first_index],
            )
        numbers = [number for number in numbers if chance.random() > 0.1]
        numbers += chance.sample(numbers, chance.randrange(4))
        numbers += chance.sample([20, 999, -1, "seven", ""], chance.randrange(3))
        for number in numbers:
            astray = chance.random() < 0.1
            log.append(
                share,
                number,
                partition=chance.randrange(len(SHARES)) if astray else share.partition,
                intact=chance.random() > 0.1,
            )
            if chance.random() < 0.1:
                foreign = [None, [], [("origin", b"deadbeef/INTERNAL/1/1")], [("x", b"y")] * 4]
                log.append_foreign(chance.choice(foreign), share.partition)
    return log


@pytest.mark.parametrize("seed", with_combinations("0", "01234"))
def test_spark_counts_what_the_reference_counts(spark: SparkSession, seed: str) -> None:
    log = disturbed_log(int(seed))
    expected = set(tally(log.reference, RUN, SHARES))
    frame = log.frame(spark)
    assert set(spark_records.exact_tallies(frame, READER, RUN, SHARES)) == expected
    outlines = spark_records.outlines_of(frame, READER, RUN, SHARES)
    assert {outline.tally for outline in outlines if outline.is_complete} <= expected
    assert not all(outline.is_complete for outline in outlines)


def test_the_outline_proves_a_run_without_trouble(spark: SparkSession) -> None:
    log = Log()
    for share in SHARES:
        log.append_foreign(None, share.partition)
        for number in range(share.records):
            log.append(share, number, partition=share.partition, intact=number != 3)
    outlines = spark_records.outlines_of(log.frame(spark), READER, RUN, SHARES)
    assert all(outline.is_complete for outline in outlines)
    assert {outline.tally for outline in outlines} == set(tally(log.reference, RUN, SHARES))


@pytest.mark.parametrize("change", ["drop first", "drop last", "drop middle", "twice", "swap"])
def test_the_outline_proves_nothing_that_is_wrong(spark: SparkSession, change: str) -> None:
    numbers = list(range(20))
    numbers = {
        "drop first": numbers[1:],
        "drop last": numbers[:-1],
        "drop middle": numbers[:9] + numbers[10:],
        "twice": [*numbers[:10], *numbers[9:]],
        "swap": [*numbers[:9], 10, 9, *numbers[11:]],
    }[change]
    log = Log()
    for number in numbers:
        log.append(SHARES[0], number, partition=0)
    (outline,) = spark_records.outlines_of(log.frame(spark), READER, RUN, SHARES)
    assert not outline.is_complete


def test_a_change_that_the_record_itself_bears_out_is_seen(spark: SparkSession) -> None:
    """A component in between recomputes every checksum."""
    log = Log()
    for number in range(20):
        log.append(SHARES[0], number, partition=0)
    value, headers, partition, offset = log.rows[7]
    assert headers is not None
    changed = value[:-1] + b"!"
    checksum = ("checksum", str(zlib.crc32(changed)).encode())
    log.rows[7] = (changed, [*headers, checksum], partition, offset)
    (outline,) = spark_records.outlines_of(log.frame(spark), READER, RUN, SHARES)
    assert outline.tally.corrupt == 1


def test_what_is_written_says_whose_it_is(spark: SparkSession) -> None:
    rows = spark_records.record_frame(spark, RUN, SHARES).collect()
    assert len(rows) == sum(share.records for share in SHARES)
    for index, row in enumerate(rows):
        share, number = SHARES[index // 20], index % 20
        headers = {header["key"]: bytes(header["value"]).decode() for header in row["headers"]}
        payload = row["value"].encode()
        assert row["partition"] == share.partition
        assert headers == {
            "origin": f"{RUN}/{share.listener}/{share.broker}/1",
            "sequence": str(number),
        }
        assert len(payload) == spark_records.PAYLOAD
        assert payload.startswith(f"{headers['origin']}/{number}/".encode())


def test_each_share_is_one_task_s_work_in_order(spark: SparkSession) -> None:
    rows_by_task = spark_records.record_frame(spark, RUN, SHARES).rdd.glom().collect()
    assert [{row["partition"] for row in task_rows} for task_rows in rows_by_task] == [
        {0},
        {1},
        {2},
        {3},
    ]
