"""The plugin: `pulumi-resource-earshot`, or this folder as a source-based plugin."""

import sys

from components.given.gate import judge
from components.provider.host import Package, serve
from components.provider.parts import COMPONENTS, KINDS
from earshot.errors import EarshotError


def run() -> None:
    """Serves the engine that started this process; its address is the last argument."""
    try:
        serve(Package(COMPONENTS, KINDS), judge, sys.argv[1:])
    except EarshotError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    run()
