"""Which cluster Spark meets is tested on real brokers (tests/e2e/test_another_cluster.py)."""

from typing import Any, cast

from earshot.listeners.address import Address
from earshot.spark.attempts import Route
from earshot.spark.cluster import routes_to_other_clusters
from earshot.validation.deadline import Deadline


class SparkDouble:
    """A Spark session that must not be asked anything."""

    @property
    def sparkContext(self) -> Any:
        raise AssertionError("asked after the deadline")


def test_no_broker_is_asked_when_no_time_is_left() -> None:
    routes = [Route("INTERNAL", id, Address("kafka", id), 0) for id in range(1, 20)]
    spark = cast(Any, SparkDouble())
    assert routes_to_other_clusters(spark, routes, {"INTERNAL": {}}, "C", Deadline(0)) == {}
