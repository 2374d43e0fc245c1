"""What spark-submit runs: the whole validation, with the session that it prepared."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from earshot.errors import EarshotError
from earshot.validation.contract import read_contract
from earshot.validation.result import Report, Verdict
from earshot.validation.run import ValidationOptions, validate


def main(arguments: Sequence[str] | None = None) -> int:
    """Validates, prints a summary, writes the report; returns earshot's exit code."""
    options = _parser().parse_args(arguments)
    begun = time.monotonic()
    try:
        contract = read_contract(_read(options.contract), str(options.contract))
        report = validate(
            contract,
            ValidationOptions(
                records=options.records,
                deadline=options.deadline,
                client=dict(_property(text) for text in options.client),
                jars_dir=options.jars_dir,
                vantage=options.vantage,
            ),
            lambda text: print(f"{time.monotonic() - begun:6.1f} s  {text}", file=sys.stderr),
        )
    except EarshotError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    text = report.model_dump_json(indent=2)
    if options.output is None:
        print(text)
    else:
        options.output.write_text(text + "\n")
        print("\n".join(summary(report)))
    return report.exit_code


def summary(report: Report) -> list[str]:
    """A line per vantage, and one or two per cell that did not pass."""
    lines = [f"{report.verdict}: {report.cluster}, {report.seconds:.1f} s, run {report.run}"]
    for vantage in report.vantages:
        cells = [cell for cell in report.cells if cell.vantage == vantage.name]
        passed = sum(cell.verdict is Verdict.PASS for cell in cells)
        lines.append(f"  {vantage.name} ({vantage.where}): {passed} of {len(cells)} cells passed")
    for cell in report.cells:
        if cell.verdict is Verdict.PASS:
            continue
        said = cell.cause.observed if cell.cause is not None else cell.reason
        where = f"{cell.vantage} {cell.listener} broker {cell.broker} at {cell.address}"
        lines.append(f"  {cell.verdict}: {where}: {said}")
        if cell.cause is not None:
            lines.append(f"    to mend it: {cell.cause.remedy}")
    return lines + [f"  note: {note}" for note in report.notes]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="spark_job.py", description=__doc__)
    parser.add_argument("--contract", type=Path, required=True, help="the contract, a JSON file")
    parser.add_argument("--output", type=Path, help="where the report goes (JSON); default: stdout")
    parser.add_argument("--records", type=int, default=3000, help="records in all (%(default)s)")
    parser.add_argument(
        "--deadline", type=float, default=300.0, help="seconds for the whole run (%(default)s)"
    )
    parser.add_argument("--jars-dir", type=Path, help="a directory with the connector's jars")
    parser.add_argument("--vantage", default="driver", help="the driver's name in the report")
    parser.add_argument(
        "--client",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a Kafka client property; may be repeated",
    )
    return parser


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise EarshotError(f"--contract {path}", observed=str(error)) from None


def _property(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise EarshotError("--client", observed=repr(text), allowed="KEY=VALUE")
    return key, value
