"""The plugin: `pulumi-resource-earshot`, or this folder as a source-based plugin."""

import gc
import signal
import sys

# until the host serves, an interrupt ends the process without a stack trace
signal.signal(signal.SIGINT, signal.SIG_DFL)
gc.set_threshold(20_000, 20, 20)  # imported modules stay, so garbage is collected rarely

from earshot.errors import EarshotError  # noqa: E402
from earshot.extras import needed_for  # noqa: E402
from earshot.files import umask  # noqa: E402


def run() -> None:
    """Serves the engine that started this process; its address is the last argument."""
    umask.restrict()
    try:
        with needed_for("pulumi-resource-earshot"):
            from earshot_pulumi.provider import registry
            from earshot_pulumi.provider.host import serve
        serve(registry, sys.argv[1:])
    except EarshotError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    run()
