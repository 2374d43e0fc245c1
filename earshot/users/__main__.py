"""`python -m earshot.users FILE`: carries out the order in a file, where brokers are reached.

The file, which has passwords, is gone from then on, even if its container stays.
"""

import sys
from pathlib import Path

from earshot.errors import EarshotError
from earshot.users.order import UsersOrder, carry_out


def main(file: Path) -> int:
    """The exit code; an error goes to stderr."""
    try:
        text = file.read_text(encoding="utf-8")
        file.unlink()
        carry_out(UsersOrder.model_validate_json(text))
    except EarshotError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
