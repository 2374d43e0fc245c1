"""`python -m earshot.users FILE`: carries out the order in a file, where brokers are reached."""

from __future__ import annotations

import sys
from pathlib import Path

from earshot.errors import EarshotError
from earshot.users.order import Order, carry_out


def main(file: Path) -> int:
    """The exit code; an error goes to stderr."""
    try:
        carry_out(Order.model_validate_json(file.read_text(encoding="utf-8")))
    except EarshotError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
