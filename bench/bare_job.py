"""The baseline: a bare Spark job that writes records through one listener and reads them back.

Run as a script by the Python that has PySpark: bootstrap, topic, number of records, and then
`key=value` Spark properties.
"""

import sys

from pyspark.sql import SparkSession


def main(bootstrap: str, topic: str, records: int, properties: list[str]) -> None:
    builder = SparkSession.builder.appName("bare").master("local[*]")
    for property_text in properties:
        key, _, value = property_text.partition("=")
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    payload = "rpad(cast(id as string), 100, 'x')"
    rows = spark.range(records).selectExpr("cast(id as string) key", f"{payload} value")
    options = {"kafka.bootstrap.servers": bootstrap}
    rows.write.format("kafka").options(**options).option("topic", topic).save()
    frame = spark.read.format("kafka").options(**options).option("subscribe", topic).load()
    (count_row,) = frame.selectExpr("count(value) n").collect()
    assert count_row.n >= records, f"{count_row.n} of {records} records came back"
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
