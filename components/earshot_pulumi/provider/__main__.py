"""The plugin: `pulumi-resource-earshot`, or this folder as a source-based plugin."""

import sys

from earshot.errors import EarshotError
from earshot.extras import needed_for


def run() -> None:
    """Serves the engine that started this process; its address is the last argument."""
    try:
        with needed_for("pulumi-resource-earshot"):
            from earshot_pulumi.judge import judge
            from earshot_pulumi.provider.host import Package, serve
            from earshot_pulumi.provider.parts import COMPONENTS, KINDS
        serve(Package(COMPONENTS, KINDS), judge, sys.argv[1:])
    except EarshotError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    run()
