"""The training job for the class-data archive: ``python -m earshot.jvm.training``.

A Spark session that does what a validation does (SQL, Python workers, a write to Kafka and the read
back) against a broker of its own, which lives only as long as this process.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BROKER_SECONDS = 60
JVM_EXIT_SECONDS = 120
RECORDS = 1000
HEAP = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def main() -> int:
    parser = argparse.ArgumentParser(prog="earshot.jvm.training")
    parser.add_argument("--archive", required=True, help="the file to write")
    parser.add_argument("--broker-jars", required=True, help="class path of a broker")
    parser.add_argument("--jars", required=True, help="Spark's additional jars, by comma")
    parser.add_argument("--work", type=Path, required=True, help="scratch directory")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what is open gets closed
    options.work.mkdir(parents=True)
    with _broker(options.broker_jars, options.work) as bootstrap:
        _run_job(bootstrap, options.archive, options.jars, options.work)
    return 0


@contextlib.contextmanager
def _broker(class_path: str, work: Path) -> Iterator[str]:
    """A single-node broker on loopback, stopped at the end; yields its host:port."""
    port, controller = _free_port(), _free_port()
    properties = work / "server.properties"
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": work / "kafka",
        "offsets.topic.replication.factor": 1,
        "num.partitions": 2,
        "log.cleaner.dedupe.buffer.size": 2097152,
    }
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    java = Path(os.environ["JAVA_HOME"], "bin", "java")
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    base = [str(java), *HEAP, "-cp", class_path]
    subprocess.run(
        [*base, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties)],
        check=True,
        stdout=sys.stderr,
    )
    with subprocess.Popen([*base, "kafka.Kafka", str(properties)], stdout=sys.stderr) as broker:
        try:
            _await(port, broker)
            yield f"127.0.0.1:{port}"
        finally:
            broker.kill()


def _run_job(bootstrap: str, archive: str, jars: str, work: Path) -> None:
    from pyspark.sql import SparkSession

    options = f"-XX:ArchiveClassesAtExit={archive} -Xlog:cds=off -Xlog:cds+dynamic=off"
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("earshot-training")
        .config("spark.driver.extraJavaOptions", options)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(work / "warehouse"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    _use_classes(spark, bootstrap)
    # The archive is written while the JVM exits, which Spark does not wait for.
    jvm = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
    spark.stop()
    jvm.stdin.close()
    jvm.wait(JVM_EXIT_SECONDS)


def _use_classes(spark: SparkSession, bootstrap: str) -> None:
    from pyspark.sql import functions as f

    kafka = {"kafka.bootstrap.servers": bootstrap}
    rows = spark.range(RECORDS).select(
        f.col("id").cast("string").cast("binary").alias("key"),
        f.sha2(f.concat_ws(":", f.lit("training"), f.col("id")), 256).cast("binary").alias("value"),
        f.array(
            f.struct(f.lit("run").alias("key"), f.lit("training").cast("binary").alias("value"))
        ).alias("headers"),
        (f.col("id") % 2).cast("int").alias("partition"),
    )
    rows.write.format("kafka").options(**kafka, topic="training", includeHeaders="true").save()
    read = (
        spark.read.format("kafka")
        .options(**kafka, subscribe="training", includeHeaders="true")
        .options(startingOffsets="earliest", endingOffsets="latest")
        .load()
        .select("key", "value", "headers", "partition", "offset", "timestamp")
        .cache()
    )
    by_partition = read.groupBy("partition").agg(
        f.count("*").alias("records"),
        f.min("offset").alias("first"),
        f.countDistinct("key").alias("keys"),
    )
    by_partition.orderBy("partition").collect()
    read.join(rows.select("key"), "key", "left_anti").count()
    read.limit(10).collect()
    spark.createDataFrame([("a", 1), ("b", 2)], "name string, number int").toJSON().collect()
    spark.sparkContext.parallelize(range(8), 4).mapPartitions(_count).collect()


def _count(items: Iterable[int]) -> Iterable[int]:
    yield sum(1 for _ in items)


def _await(port: int, broker: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + BROKER_SECONDS
    while time.monotonic() < deadline and broker.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    raise SystemExit("the broker for the training did not start")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


if __name__ == "__main__":
    sys.exit(main())
