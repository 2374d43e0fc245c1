"""The commands of ``python3 -m toolchain``."""

import argparse
import signal
import subprocess
from collections.abc import Sequence

from earshot import umask
from earshot.cache import exclusive
from earshot.jvm.java import find_java
from earshot.stack_files import stack_name
from toolchain import environment, progress, python_environment, system_packages
from toolchain.paths import LOGS, PYTHON, ROOT, SETUP_LOCK
from toolchain.pulumi_cli import installation


def run(arguments: Sequence[str]) -> int:
    """Run one command; the result is the exit status; an error is one message."""
    options = _parser().parse_args(arguments)
    end_on_sigterm()
    umask.restrict()

    def act() -> int:
        if options.command == "setup":
            set_up(for_tests=options.tests)
        else:
            print(environment.exports(stack_name("".join(options.stack))))
        return 0

    return progress.exit_status(act, "run it again to go on")


def end_on_sigterm() -> None:
    """Make SIGTERM, and SIGHUP of a terminal that is closed, end what is running as Ctrl-C does:
    with the commands it has started."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        signal.signal(signal.SIGHUP, signal.default_int_handler)


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
    # through the project's own Python: PySpark, and its Ivy that fetches jars, are only there
    jars = (PYTHON, "-m", "earshot.jvm")
    if subprocess.run([*jars, "check"], cwd=ROOT, stdin=subprocess.DEVNULL).returncode:
        with progress.step("Kafka and Spark: fetching jars"):
            progress.run(
                [*jars, "jars"],
                log=LOGS / "jars.log",
                failure="Kafka's and Spark's jars",
                remedy="see what the log names, then run it again",
                cwd=ROOT,
            )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m toolchain", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    setup = commands.add_parser("setup", help="make .venv and get the tools")
    setup.add_argument("--tests", action="store_true", help="also look after what tests need")
    env = commands.add_parser("env", help="print shell exports for plain pulumi commands")
    env.add_argument("--stack", default="local")
    return parser
