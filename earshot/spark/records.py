"""The records of a run in Spark SQL: how they are written, and how what came back is counted.

Every share has a partition of its own, and one task writes it in order. So where nothing went
wrong, offset minus sequence is the same for all of its records: the `outline`, one aggregation
without a sort, proves in one pass that they are distinct and in order. Whatever it cannot prove is
counted by `exact`, which sorts.
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
"""Two and not more: a header costs Spark as much as the record around it."""


def origin(run: str, share: Share) -> str:
    """What all records of ``share`` say in their first header: run/listener/broker/attempt."""
    return f"{run}/{share.listener}/{share.broker}/{share.attempt}"


def written(spark: SparkSession, run: str, shares: Sequence[Share]) -> DataFrame:
    """The records of ``shares``, all of one size: columns partition, value, headers.

    One task per share, which holds its records in order.
    """
    from pyspark.sql import functions as f

    size = shares[0].records
    index = (f.col("id") / size).cast("int")
    whence = _pick([f.lit(origin(run, share)) for share in shares], index)
    sequence = (f.col("id") % size).cast("string")
    headers = [
        f.struct(f.lit(key).alias("key"), value.cast("binary").alias("value"))
        for key, value in zip(HEADERS, (whence, sequence), strict=True)
    ]
    return spark.range(0, size * len(shares), 1, len(shares)).select(
        _pick([f.lit(share.partition) for share in shares], index).alias("partition"),
        _payload(whence, sequence).alias("value"),
        f.array(*headers).alias("headers"),
    )


def _payload(whence: Column, sequence: Column) -> Column:
    """The value of a record, which follows from its headers: no change of it can go unseen."""
    from pyspark.sql import functions as f

    return f.rpad(f.concat_ws("/", whence, sequence, f.lit("")), PAYLOAD, "earshot.")


def _pick(values: Sequence[Column], index: Column) -> Column:
    from pyspark.sql import functions as f

    return values[0] if len(values) == 1 else f.get(f.array(*values), index)


def received(rows: DataFrame, run: str) -> DataFrame:
    """``rows`` of the connector (value, headers, partition, offset) as records of a run.

    Columns: origin (null for another run's), sequence (null where unreadable), partition, offset,
    intact.
    """
    from pyspark.sql import functions as f

    def header(name: str) -> Column:
        at = HEADERS.index(name)
        return f.get(f.col("headers"), f.lit(at))["value"].cast("string")

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
    """What one pass without a sort says of the records of one origin in one partition."""

    tally: Tally
    proven: bool
    """Its records are distinct, in order and all there could be: nothing is left to count."""


def outline(records: DataFrame, reader: str, run: str, shares: Collection[Share]) -> list[Outline]:
    """One aggregation over the records of ``received``, which came through ``reader``."""
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
    homes = {origin(run, share): share for share in shares}
    return [_outline(row, reader, homes) for row in rows]


def _outline(row: Row, reader: str, homes: Mapping[str, Share]) -> Outline:
    share, count, place = homes.get(row["origin"]), row["records"], row["partition"]
    if share is None:
        own = row["origin"] is not None
        return Outline(_astray(own, row, reader), proven=not own)
    whole = row["numbered"] == count == share.records and place == share.partition
    numbers = (row["first"], row["last"]) == (0, share.records - 1)
    tally = Tally(reader, share, place, count, distinct=count, corrupt=row["corrupt"])
    return Outline(tally, proven=whole and numbers and row["least"] == row["most"])


def _astray(own: bool, row: Row, reader: str) -> Tally:
    """Records of another run, or of ours with headers of no writer."""
    count = row["records"]
    return Tally(reader, None, row["partition"], count, own, corrupt=count if own else 0)


def exact(
    records: DataFrame, reader: str, run: str, shares: Collection[Share]
) -> tuple[Tally, ...]:
    """The tallies of the records of ``received``, as `verdict.tally` counts them; sorts."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    written_as = [(origin(run, share), share.partition, share.records) for share in shares]
    homes = records.sparkSession.createDataFrame(written_as, "origin string, home int, size long")
    known = f.coalesce(f.col("sequence").between(0, f.col("size") - 1), f.lit(False))
    rows = (
        records.join(f.broadcast(homes), "origin", "left")
        .withColumn("own", f.col("origin").isNotNull())
        .withColumn("origin", f.when(known, f.col("origin")))
    )
    again = Window.partitionBy("origin", "sequence")
    place = again.orderBy(f.col("partition") != f.col("home"), "partition", "offset")
    line = Window.partitionBy("origin", "partition", "first").orderBy("offset")
    fell = f.col("first") & (f.col("sequence") < f.lag("sequence").over(line))
    counted = (
        rows.withColumn("first", f.row_number().over(place) == 1)
        .withColumn("fell", f.coalesce(fell, f.lit(False)))
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
    per_reader = Counter[str | None]()
    for row in counted:
        per_reader[row["origin"]] += row["distinct"]
    gone = {
        whence: _missing(rows, whence, share)
        for whence, share in by_origin.items()
        if share.records > per_reader[whence] > 0
    }

    def tally(row: Row) -> Tally:
        whence, counts = row["origin"], ("distinct", "descents", "corrupt")
        if whence is None:
            return _astray(row["own"], row, reader)
        counted = {name: row[name] for name in counts} | {"missing": gone.get(whence, ())}
        return Tally(reader, by_origin[whence], row["partition"], row["records"], **counted)

    return tuple(map(tally, counted))


def _missing(rows: DataFrame, whence: str, share: Share) -> tuple[int, ...]:
    from pyspark.sql import functions as f

    met = rows.where(f.col("origin") == whence).select(f.col("sequence").alias("id"))
    gone = rows.sparkSession.range(share.records).join(met, "id", "left_anti")
    return tuple(row["id"] for row in gone.orderBy("id").limit(EXAMPLES).collect())
