"""Spark SQL that writes the records of a run and counts those that come back.

Every share has its own partition, and one task writes it in order. Without errors, offset minus
sequence is therefore constant for the records of a share. `outlines_of` checks that with one
aggregation without a sort, which proves that the records are distinct and in order. Other cases are
counted by `exact_tallies`, which sorts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from earshot.validation.verdict import EXAMPLES, Share, Tally

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

PAYLOAD: Final = 100
"""Bytes of a record's value."""
HEADERS: Final = ("origin", "sequence")
"""Only two: a header costs Spark as much as the rest of the record."""


def origin(run: str, share: Share) -> str:
    """The first header of all records of ``share``: run/listener/broker/attempt."""
    return f"{run}/{share.listener}/{share.broker}/{share.attempt}"


def record_frame(spark: SparkSession, run: str, shares: Sequence[Share]) -> DataFrame:
    """The records of ``shares``, which have one size, as columns partition, value, headers.

    One task per share contains its records in order.
    """
    from pyspark.sql import functions as f

    size = shares[0].records
    index = (f.col("id") / size).cast("int")
    origins = _pick([f.lit(origin(run, share)) for share in shares], index)
    sequence = (f.col("id") % size).cast("string")
    headers = [
        f.struct(f.lit(key).alias("key"), value.cast("binary").alias("value"))
        for key, value in zip(HEADERS, (origins, sequence), strict=True)
    ]
    return spark.range(0, size * len(shares), 1, len(shares)).select(
        _pick([f.lit(share.partition) for share in shares], index).alias("partition"),
        _payload(origins, sequence).alias("value"),
        f.array(*headers).alias("headers"),
    )


def _payload(origin: Column, sequence: Column) -> Column:
    """The value of a record, computed from its headers, so that every change of it is detected."""
    from pyspark.sql import functions as f

    return f.rpad(f.concat_ws("/", origin, sequence, f.lit("")), PAYLOAD, "earshot.")


def _pick(values: Sequence[Column], index: Column) -> Column:
    from pyspark.sql import functions as f

    return values[0] if len(values) == 1 else f.get(f.array(*values), index)


def parsed_records(rows: DataFrame, run: str) -> DataFrame:
    """The connector's ``rows`` (value, headers, partition, offset) as records of ``run``.

    Columns: origin (null for another run), sequence (null if unreadable), partition, offset,
    intact.
    """
    from pyspark.sql import functions as f

    def header(name: str) -> Column:
        index = HEADERS.index(name)
        return f.get(f.col("headers"), f.lit(index))["value"].cast("string")

    written_value = _payload(header("origin"), header("sequence")).cast("binary")
    return rows.select(
        f.when(header("origin").startswith(f"{run}/"), header("origin")).alias("origin"),
        header("sequence").try_cast("long").alias("sequence"),
        "partition",
        "offset",
        f.coalesce(f.col("value") == written_value, f.lit(False)).alias("intact"),
    )


@dataclass(frozen=True)
class Outline:
    """The counts of the records of one origin in one partition, from one pass without a sort."""

    tally: Tally
    is_complete: bool
    """True if the records are proven distinct, in order and complete."""


def outlines_of(
    records: DataFrame, reader: str, run: str, shares: Collection[Share]
) -> list[Outline]:
    """The outlines of ``records`` (of `parsed_records`), which came through listener ``reader``."""
    from pyspark.sql import functions as f

    shift = f.col("offset") - f.col("sequence")
    rows = (
        records.groupBy("origin", "partition")
        .agg(
            f.count("*").alias("records"),
            f.count("sequence").alias("numbered"),
            f.min("sequence").alias("first"),
            f.max("sequence").alias("last"),
            f.min(shift).alias("least"),
            f.max(shift).alias("most"),
            f.count(f.when(~f.col("intact"), 1)).alias("corrupt"),
        )
        .collect()
    )
    shares_by_origin = {origin(run, share): share for share in shares}
    return [_outline(row, reader, shares_by_origin) for row in rows]


def _outline(row: Row, reader: str, shares_by_origin: Mapping[str, Share]) -> Outline:
    share, count, partition = shares_by_origin.get(row["origin"]), row["records"], row["partition"]
    if share is None:
        is_own_run = row["origin"] is not None
        return Outline(_stray_tally(is_own_run, row, reader), is_complete=not is_own_run)
    is_whole = row["numbered"] == count == share.records and partition == share.partition
    has_all_numbers = (row["first"], row["last"]) == (0, share.records - 1)
    tally = Tally(reader, share, partition, count, distinct=count, corrupt=row["corrupt"])
    return Outline(tally, is_complete=is_whole and has_all_numbers and row["least"] == row["most"])


def _stray_tally(is_own_run: bool, row: Row, reader: str) -> Tally:
    """The tally of records of another run, or of this run with headers of no share."""
    count = row["records"]
    return Tally(
        reader, None, row["partition"], count, is_own_run, corrupt=count if is_own_run else 0
    )


def exact_tallies(
    records: DataFrame, reader: str, run: str, shares: Collection[Share]
) -> tuple[Tally, ...]:
    """The exact tallies of ``records`` (of `parsed_records`), which came through ``reader``."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    origin_rows = [(origin(run, share), share.partition, share.records) for share in shares]
    homes = records.sparkSession.createDataFrame(origin_rows, "origin string, home int, size long")
    is_known_sequence = f.coalesce(f.col("sequence").between(0, f.col("size") - 1), f.lit(False))
    rows = (
        records.join(f.broadcast(homes), "origin", "left")
        .withColumn("own", f.col("origin").isNotNull())
        .withColumn("origin", f.when(is_known_sequence, f.col("origin")))
    )
    same_record = Window.partitionBy("origin", "sequence")
    partition_order = same_record.orderBy(
        f.col("partition") != f.col("home"), "partition", "offset"
    )
    first_records = Window.partitionBy("origin", "partition", "first").orderBy("offset")
    descends = f.col("first") & (f.col("sequence") < f.lag("sequence").over(first_records))
    count_rows = (
        rows.withColumn("first", f.row_number().over(partition_order) == 1)
        .withColumn("fell", f.coalesce(descends, f.lit(False)))
        .groupBy("origin", "own", "partition")
        .agg(
            f.count("*").alias("records"),
            f.count_if("first").alias("distinct"),
            f.count_if("fell").alias("descents"),
            f.count_if(~f.col("intact")).alias("corrupt"),
        )
        .collect()
    )
    by_origin = {origin(run, share): share for share in shares}
    distinct_counts = Counter[str | None]()
    for row in count_rows:
        distinct_counts[row["origin"]] += row["distinct"]
    missing_sequences = {
        origin_text: _missing_sequences(rows, origin_text, share)
        for origin_text, share in by_origin.items()
        if share.records > distinct_counts[origin_text] > 0
    }

    def tally(row: Row) -> Tally:
        origin_text, counts = row["origin"], ("distinct", "descents", "corrupt")
        if origin_text is None:
            return _stray_tally(row["own"], row, reader)
        fields = {name: row[name] for name in counts} | {
            "missing": missing_sequences.get(origin_text, ())
        }
        return Tally(reader, by_origin[origin_text], row["partition"], row["records"], **fields)

    return tuple(map(tally, count_rows))


def _missing_sequences(rows: DataFrame, origin_text: str, share: Share) -> tuple[int, ...]:
    from pyspark.sql import functions as f

    read_sequences = rows.where(f.col("origin") == origin_text).select(
        f.col("sequence").alias("id")
    )
    missing = rows.sparkSession.range(share.records).join(read_sequences, "id", "left_anti")
    return tuple(row["id"] for row in missing.orderBy("id").limit(EXAMPLES).collect())
