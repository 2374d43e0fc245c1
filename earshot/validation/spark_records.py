"""The records of a run in Spark SQL: how they are written, and how what came back is counted.

Every share has a partition of its own, and one task writes it in order. So where nothing went
wrong, offset minus sequence is the same for all of its records: the `outline`, one aggregation
without a sort, proves in one pass that they are distinct and in order. Whatever it cannot prove is
counted by `exact`, which sorts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from earshot.validation.verdict import EXAMPLES, Share, Tally

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

PAYLOAD: Final = 100
"""Bytes of a record's value."""
HEADERS: Final = ("run", "listener", "broker", "attempt", "sequence", "checksum")


def written(spark: SparkSession, run: str, shares: Sequence[Share]) -> DataFrame:
    """The records of ``shares``, all of one size: columns partition, value, headers.

    One task per share, which holds its records in order.
    """
    from pyspark.sql import functions as f

    size = shares[0].records
    index = (f.col("id") / size).cast("int")
    values = {
        "run": f.lit(run),
        "listener": _pick([f.lit(item.listener) for item in shares], index),
        "broker": _pick([f.lit(str(item.broker)) for item in shares], index),
        "attempt": _pick([f.lit(str(item.attempt)) for item in shares], index),
        "sequence": (f.col("id") % size).cast("string"),
    }
    payload = f.rpad(f.concat_ws("/", *values.values(), f.lit("")), PAYLOAD, "earshot.")
    values["checksum"] = f.crc32(payload.cast("binary")).cast("string")
    headers = [
        f.struct(f.lit(key).alias("key"), values[key].cast("binary").alias("value"))
        for key in HEADERS
    ]
    return spark.range(0, size * len(shares), 1, len(shares)).select(
        _pick([f.lit(item.partition) for item in shares], index).alias("partition"),
        payload.alias("value"),
        f.array(*headers).alias("headers"),
    )


def _pick(values: Sequence[Column], index: Column) -> Column:
    from pyspark.sql import functions as f

    return values[0] if len(values) == 1 else f.get(f.array(*values), index)


def received(rows: DataFrame, read_through: str, run: str) -> DataFrame:
    """``rows`` of the connector (value, headers, partition, offset) as records of a run.

    Columns: read_through, own, listener, broker, attempt, sequence, partition, offset, intact.
    What a header does not say is null.
    """
    from pyspark.sql import functions as f

    def header(name: str) -> Column:
        at = HEADERS.index(name)
        return f.get(f.col("headers"), f.lit(at))["value"].cast("string")

    own = f.coalesce(header("run") == run, f.lit(False))
    intact = f.crc32(f.col("value")).cast("string") == header("checksum")
    return rows.select(
        f.lit(read_through).alias("read_through"),
        own.alias("own"),
        *(f.when(own, header(name)).alias(name) for name in ("listener", "broker", "attempt")),
        f.when(own, header("sequence")).try_cast("long").alias("sequence"),
        "partition",
        "offset",
        f.coalesce(intact, f.lit(False)).alias("intact"),
    )


@dataclass(frozen=True)
class Outline:
    """What one pass without a sort says of the records of one (listener, broker, attempt)."""

    tally: Tally
    proven: bool
    """Its records are distinct, in order and all there could be: nothing is left to count."""


def outline(records: DataFrame, shares: Collection[Share]) -> list[Outline]:
    """One aggregation over the records of ``received``, of several listeners if need be."""
    from pyspark.sql import functions as f

    shift = f.col("offset") - f.col("sequence")
    rows = (
        records.groupBy("read_through", "own", "listener", "broker", "attempt", "partition")
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
    homes = {(item.listener, str(item.broker), str(item.attempt)): item for item in shares}
    return [_outline(row.asDict(), homes) for row in rows]


def _outline(row: Mapping[str, Any], homes: Mapping[tuple[str, str, str], Share]) -> Outline:
    share = homes.get((row["listener"], row["broker"], row["attempt"])) if row["own"] else None
    count = row["records"]
    if share is None:
        stray = count if row["own"] else 0
        found = Tally(row["read_through"], None, row["partition"], count, row["own"], corrupt=stray)
        return Outline(found, proven=not row["own"])
    found = Tally(
        row["read_through"],
        share,
        row["partition"],
        count,
        distinct=count,
        corrupt=row["corrupt"],
        missing=(),
    )
    whole = row["numbered"] == count == share.records and row["first"] == 0
    risen = row["least"] == row["most"] and row["last"] == share.records - 1
    return Outline(found, proven=whole and risen and row["partition"] == share.partition)


def exact(records: DataFrame, shares: Collection[Share]) -> tuple[Tally, ...]:
    """The tallies of the records of ``received``, as `verdict.tally` counts them; sorts."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    spark = records.sparkSession
    order = list(shares)
    columns = "share int, listener string, broker string, attempt string, home int, size long"
    written_as = [
        (i, it.listener, str(it.broker), str(it.attempt), it.partition, it.records)
        for i, it in enumerate(order)
    ]
    homes = spark.createDataFrame(written_as, columns)
    known = f.col("sequence").between(0, f.col("size") - 1)
    rows = (
        records.join(f.broadcast(homes), ["listener", "broker", "attempt"], "left")
        .withColumn("share", f.when(f.col("own") & known, f.col("share")))
        .select("read_through", "own", "share", "home", "sequence", "partition", "offset", "intact")
    )
    same = Window.partitionBy("read_through", "own", "share", "sequence")
    place = same.orderBy(f.col("partition") != f.col("home"), "partition", "offset")
    numbered = rows.withColumn("first", f.row_number().over(place) == 1)
    line = Window.partitionBy("read_through", "share", "partition", "first").orderBy("offset")
    fell = f.col("first") & (f.col("sequence") < f.lag("sequence").over(line))
    counted = (
        numbered.withColumn("fell", f.coalesce(fell, f.lit(False)))
        .groupBy("read_through", "own", "share", "partition")
        .agg(
            f.count("*").alias("records"),
            f.count_if("first").alias("distinct"),
            f.count_if("fell").alias("descents"),
            f.count_if(~f.col("intact")).alias("corrupt"),
        )
        .collect()
    )
    found = []
    missing: dict[tuple[str, int], tuple[int, ...]] = {}
    for row in counted:
        reader, count = row["read_through"], row["records"]
        if row["share"] is None:
            stray = count if row["own"] else 0
            found.append(Tally(reader, None, row["partition"], count, row["own"], corrupt=stray))
            continue
        key = (reader, row["share"])
        if key not in missing:
            missing[key] = _missing(rows, reader, row["share"], order[row["share"]])
        found.append(
            Tally(
                reader,
                order[row["share"]],
                row["partition"],
                count,
                distinct=row["distinct"],
                descents=row["descents"],
                corrupt=row["corrupt"],
                missing=missing[key],
            )
        )
    return tuple(found)


def _missing(rows: DataFrame, reader: str, number: int, share: Share) -> tuple[int, ...]:
    from pyspark.sql import functions as f

    chosen = (f.col("read_through") == reader) & (f.col("share") == number)
    met = rows.where(chosen).select(f.col("sequence").alias("id"))
    gone = rows.sparkSession.range(share.records).join(met, "id", "left_anti")
    return tuple(row["id"] for row in gone.orderBy("id").limit(EXAMPLES).collect())


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows of ``frames``, which have the same columns."""
    return reduce(lambda one, other: one.union(other), frames)
