"""`python -m tests.docker_plugin`: run the tests of Docker stacks with it in the double's place.

Arguments are pytest's, such as `-k WORDS`.
"""

import os
import sys

from earshot.errors import EarshotError
from tests.docker_plugin.build import executable
from tests.doubles.docker.install import REAL_PLUGIN, VERSION

FILES = (
    "stack",
    "failures",
    "secure",
    "rolling",
    "two_hosts",
    "double",
)


def main() -> None:
    """Becomes pytest. Ends with 2 where the plugin cannot be built."""
    try:
        plugin = executable(VERSION)
    except EarshotError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from error
    tests = [
        *(f"tests/e2e/test_docker_{name}.py" for name in FILES),
        "tests/e2e/test_container_policies.py",
    ]
    os.environ[REAL_PLUGIN] = str(plugin)
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *tests, *sys.argv[1:]])


if __name__ == "__main__":
    main()
