"""``python -m earshot.jvm check | jars``: Kafka's and Spark's jars in the per-user cache."""

import argparse
import logging
import sys

from earshot.errors import EarshotError
from earshot.jvm.jars import kafka_broker_jars, spark_connector_jars


def main() -> int:
    parser = argparse.ArgumentParser(prog="earshot.jvm", description=__doc__)
    parser.add_argument("part", choices=["check", "jars"])
    fetching = parser.parse_args().part == "jars"
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    try:
        spark_connector_jars(fetching=fetching)
        kafka_broker_jars(fetching=fetching)
    except EarshotError as error:
        if not fetching:
            return 1
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
