"""The commands of ``python3 -m toolchain``."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from earshot.cache import exclusive
from earshot.errors import EarshotError
from earshot.jvm.java import find_java
from toolchain import environment, java_parts, lock, progress, python_environment, system_packages
from toolchain.paths import SETUP_LOCK
from toolchain.pulumi_cli import installation

INTERRUPTED = 130


def run(arguments: Sequence[str]) -> int:
    """Run one command; the result is the exit status; an error is one message."""
    options = _parser().parse_args(arguments)
    end_on_sigterm()
    try:
        if options.command == "setup":
            set_up(for_tests=options.tests)
        elif options.command == "env":
            print(environment.exports(options.stack))
        else:
            lock.write()
    except EarshotError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except OSError as reason:  # a checkout of another user, a full disk
        if reason.filename is None:
            raise
        print(f"{reason.filename}: {reason.strerror}", file=sys.stderr)
        return EarshotError.exit_code
    except KeyboardInterrupt:
        print("\ninterrupted; run it again to go on", file=sys.stderr)
        return INTERRUPTED
    return 0


def end_on_sigterm() -> None:
    """Make SIGTERM end what is running as Ctrl-C does: with the commands it has started."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def set_up(*, for_tests: bool = False) -> None:
    """Install everything that this checkout needs; quick where it is installed already."""

    def waiting() -> None:
        progress.say("Another set-up of this checkout is running; waiting for it ...")

    with exclusive(SETUP_LOCK, waiting):
        system_packages.ensure(for_tests=for_tests)
        java = find_java()  # before the long steps
        python_environment.ensure_interpreter()
        # each takes minutes where nothing is cached, and none needs another's result
        progress.together({"Python": _packages_and_jars, "Pulumi": installation.ensure})
    cli = installation.recorded()
    progress.say(
        f"Ready: Pulumi CLI {cli.version} ({cli.origin.value}, {cli.directory}),"
        f" Java {java.version} ({java.home})"
    )


def _packages_and_jars() -> None:
    python_environment.ensure_packages()
    java_parts.ensure()  # fetched by the Ivy that comes with PySpark


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m toolchain", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    setup = commands.add_parser("setup", help="make .venv and get the tools")
    setup.add_argument("--tests", action="store_true", help="also look after what tests need")
    env = commands.add_parser("env", help="print shell exports for plain pulumi commands")
    env.add_argument("--stack", default="local")
    commands.add_parser("lock", help="pin the Python packages anew")
    return parser
