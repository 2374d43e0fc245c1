"""`python -m earshot.cli.run_order ORDER REPORT JARS [CLIENT]`: carries out an order.

A validator's timer runs it. It is `earshot validate` with the settings of the order.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from earshot import cli
from earshot.errors import EarshotError
from earshot.files import cache
from earshot.remote.orders import read_order


def main(arguments: Sequence[str]) -> int:
    """Validates and returns the exit code. Arguments are paths: the order, the report to write, the
    folder of Spark's jars, and the client properties, if the listeners need any."""
    order_file, report, jars, *client = arguments
    try:
        order = read_order(Path(order_file).read_text(encoding="utf-8"), order_file)
    except EarshotError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    contract = Path(order_file).with_name("contract.json")
    cache.write(contract, order.contract.to_json())
    command = ["validate", "--contract", str(contract), "--vantage", order.vantage]
    command += ["--incarnations", json.dumps(order.incarnations)]
    command += ["--records", str(order.records), "--deadline", str(order.deadline)]
    command += ["--jars-dir", jars, "--format", "json", "--output", report]
    for file in client:
        command += ["--client-config", file]
    return cli.run(command)


if __name__ == "__main__":
    cli.prepare()
    sys.exit(main(sys.argv[1:]))
