"""The options of `earshot lint`, without the command-line library of the other commands.

That library takes longer to load than a file takes to check.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

from earshot.errors import EarshotError
from earshot.lint.formats import LintFormat

SUMMARY = (
    "Name the mistakes in Compose files, manifests, properties, scripts and more, with their lines."
)
_DESCRIPTION = f"""\
{SUMMARY}

Nothing is started or connected to. A named file is always checked. In a folder,
files that contain "kafka" or "listeners" are: YAML (Compose, Kubernetes, CI
workflows), properties, *.conf, scripts, Makefiles, Podman units, Terraform, ECS
task definitions, devcontainer.json, and templates of these. A comment on the
line of a mistake, or alone right above it, ignores it:

  # earshot: ignore=KL017 until=2027-01-31 a proxy publishes it

Ends with 1 where an error is left; with 2 where a file cannot be read, or the
tool that it is for refuses its form (the others are checked); with 3 where a
named file holds nothing that can be judged, or the listeners of a broker in it
are not known (a variable that is not set, a file that is not there), which the
last line explains; else with 0.
"""
_EXAMPLES = """\
examples:
  earshot lint docker-compose.yml
  earshot lint docker-compose.yml --fix
  earshot lint -f base.yml -f local.yml --profile kafka
  earshot lint docker-compose.yml --explain app
  earshot lint . --ignore KL014
  earshot lint . --write-baseline baseline.json
  earshot lint . --baseline baseline.json -o earshot.sarif
  earshot lint . --format github
"""


_OF_FINDINGS = ("select", "ignore", "baseline", "write_baseline", "diff", "fix")
"""Options without a meaning for the walk of a client, beside those of the output."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise EarshotError(self.prog, observed=message, remedy=f"see {self.prog} --help")


def main(arguments: Sequence[str]) -> int:
    """Runs `earshot lint` with ``arguments``; the exit code. Raises EarshotError, and SystemExit
    after printing help."""
    options = vars(parser().parse_intermixed_args(arguments))
    from earshot.cli import lint as command

    paths, format, output = (options.pop(name) for name in ("paths", "format", "output"))
    choice = command.Choice(**{key: value for key, value in options.items() if value is not None})
    if choice.explain:
        of_findings = {"output": output, "format": format}
        of_findings |= {key: options[key] for key in _OF_FINDINGS}
        if names := [key.replace("_", "-") for key, value in of_findings.items() if value]:
            observed = f"found --explain {choice.explain}, which prints a walk and no findings"
            raise EarshotError(f"--{names[0]}", observed=observed, allowed="one of the two options")
        return command.explain(paths, choice)
    return command.run(paths, choice, LintFormat(format) if format else None, output)


def _path(text: str) -> Path:
    remedy = "check the variable of the path; the current folder is ."
    return Path(_not_empty(text, "path", "the path of a file or a folder", remedy))


def _value(text: str) -> str:
    return _not_empty(text, "value", "a name or a release", "check the variable of the option")


def _not_empty(text: str, what: str, allowed: str, remedy: str) -> str:
    """``text``, unless it is empty as a shell's variable that is not set: that would be the current
    folder, or leave the option out."""
    if not text:
        observed = f"found an empty {what}"
        raise EarshotError("earshot lint", observed=observed, allowed=allowed, remedy=remedy)
    return text


def parser() -> argparse.ArgumentParser:
    """The parser of the options; it raises EarshotError for wrong ones."""
    command_line = _Parser(
        prog="earshot lint",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add, several = (
        command_line.add_argument,
        partial(command_line.add_argument, action="append", default=[]),
    )
    add("paths", metavar="PATH", nargs="*", type=_path, help="files, and folders with such files")
    # fmt: off
    several("-f", "--file", metavar="FILE", type=_path, dest="together",
        help="a Compose file; each is merged into those before it, as by 'docker compose -f'")
    several("--profile", metavar="NAME", dest="profiles", type=_value,
        help="only services of this profile (and those without a profile); may be repeated")
    add("--skip-unrelated", action="store_true",
        help="treat named files like files in a folder: files that cannot be judged are "
        "counted, and do not cause exit code 3")
    add("--kafka-version", metavar="X.Y", type=_value,
        help="Kafka's release, for files that do not show it")
    add("--format", choices=[str(choice) for choice in LintFormat],
        help="default: text, or the format for the suffix of --output")
    several("--select", metavar="ID,..", help="only these rules; may be repeated")
    several("--ignore", metavar="ID,..", help="not these rules; may be repeated")
    add("--baseline", metavar="FILE", type=_path, help="ignore the mistakes recorded there")
    add("--write-baseline", metavar="FILE", type=_path,
        help="write the current mistakes to FILE as a new baseline, and ignore them")
    add("--diff", action="store_true",
        help="show what --fix would write into Compose files, and write nothing")
    add("--fix", action="store_true",
        help="apply the fixes that are unambiguous, and show them as a diff")
    several("-o", "--output", metavar="FILE", type=_path,
        help="also write the result to this file (.txt, .json, .sarif, .xml, .md; - is stdout); "
        "may be repeated")
    add("--explain", metavar="CLIENT", type=_value,
        help="print only the walk of this service (in a manifest, WORKLOAD/CONTAINER) to its "
        "brokers, hop by hop ('host': of clients on the machine); ends with 0 for yes, 1 for no, "
        "3 for unknown")
    add("--force", action="store_true",
        help="let --output and --write-baseline replace any file")
    # fmt: on
    return command_line
