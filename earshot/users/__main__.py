"""`python -m earshot.users FILE`: carries out the order in a file, where brokers are reachable.

The file contains passwords, so it is deleted once it is read.
"""

import sys
from pathlib import Path

from earshot.errors import EarshotError
from earshot.users.order import UsersOrder, carry_out


def main(file: Path) -> int:
    """Carries out the order, and returns the exit code. Errors are printed on stderr."""
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
