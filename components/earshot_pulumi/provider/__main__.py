"""The plugin: `pulumi-resource-earshot`, or this folder as a source-based plugin."""

import sys

from earshot.errors import EarshotError
from earshot_pulumi.provider import parts
from earshot_pulumi.provider.host import serve


def run() -> None:
    """Serves the engine that started this process; its address is the last argument."""
    try:
        serve(parts, sys.argv[1:])
    except EarshotError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    run()
