"""The commands of ``python3 -m toolchain``."""

import argparse
import signal
import subprocess
from collections.abc import Sequence

from earshot.files import umask
from earshot.files.cache import exclusive
from earshot.files.stack_files import stack_name
from earshot.jvm.java import find_java
from toolchain import environment, progress, python_environment, system_packages
from toolchain.paths import LOGS, PYTHON, ROOT, SETUP_LOCK
from toolchain.pulumi_cli import installation


def run(arguments: Sequence[str]) -> int:
    """Runs one command and returns the exit status. An error is printed as one message."""
    options = _parser().parse_args(arguments)
    end_on_sigterm()
    umask.restrict()

    def act() -> int:
        if options.command == "setup":
            set_up(for_tests=options.tests)
        else:
            print(environment.exports(stack_name("".join(options.stack))))
        return 0

    return progress.exit_status(act, "run it again to continue")


def end_on_sigterm() -> None:
    """Lets SIGTERM, and SIGHUP of a closed terminal, end this process and its commands like
    Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        signal.signal(signal.SIGHUP, signal.default_int_handler)


def set_up(*, for_tests: bool = False) -> None:
    """Installs everything that this checkout needs. Quick if all is installed."""

    def waiting() -> None:
        progress.say("Another set-up of this checkout is running; waiting for it ...")

    with exclusive(SETUP_LOCK, waiting):
        system_packages.ensure(for_tests=for_tests)
        java = find_java()  # before the long steps
        python_environment.ensure_interpreter()
        # each takes minutes if nothing is cached, and neither needs the result of the other
        progress.together({"Python": _packages_and_jars, "Pulumi": installation.ensure})
    cli = installation.recorded()
    progress.say(
        f"Ready: Pulumi CLI {cli.version} ({cli.origin.value}, {cli.directory}),"
        f" Java {java.version} ({java.home})"
    )


def _packages_and_jars() -> None:
    python_environment.ensure_packages()
    # with the Python of .venv: only that has PySpark, whose Ivy fetches jars
    jars = (PYTHON, "-m", "earshot.jvm")
    if subprocess.run([*jars, "check"], cwd=ROOT, stdin=subprocess.DEVNULL).returncode:
        with progress.step("Kafka and Spark: fetching jars"):
            progress.run(
                [*jars, "jars"],
                log=LOGS / "jars.log",
                failure="Kafka's and Spark's jars",
                remedy="fix the cause in the log, then run it again",
                cwd=ROOT,
            )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m toolchain", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    setup = commands.add_parser("setup", help="make .venv and get the tools")
    setup.add_argument("--tests", action="store_true", help="also install or list what tests need")
    env = commands.add_parser("env", help="print shell exports for plain pulumi commands")
    env.add_argument("--stack", default="local")
    return parser
