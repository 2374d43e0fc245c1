"""``python -m earshot.jvm check | jars``: Kafka's and Spark's jars in the per-user cache."""

from __future__ import annotations

import argparse
import logging
import sys

from earshot.errors import EarshotError
from earshot.jvm.jars import kafka_broker_jars, spark_connector_jars


def main() -> int:
    parser = argparse.ArgumentParser(prog="earshot.jvm", description=__doc__)
    parser.add_argument("part", choices=["check", "jars"])
    part = parser.parse_args().part
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    try:
        if part == "check":
            return 0 if _is_ready() else 1
        spark_connector_jars()
        kafka_broker_jars()
    except EarshotError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def _is_ready() -> bool:
    try:
        kafka_broker_jars(fetching=False)
        spark_connector_jars(fetching=False)
    except EarshotError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
