"""`earshot doctor`: every broker through every listener, from here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from earshot.cli.output import formats, show
from earshot.cli.target import client_properties, target
from earshot.report import Format
from earshot.validation.doctor import examine

SECONDS = 10.0


def run(
    looked_at: tuple[str | None, str | None, str | None],
    client_config: Path | None,
    deadline: float | None,
    produce: bool,
    format: Format | None,
    output: Sequence[Path],
) -> int:
    """Examines what ``looked_at`` (stack, contract, bootstrap) names; the exit code.

    Raises EarshotError.
    """
    files = formats(output, format)
    client = client_properties(client_config)
    named = target(*looked_at)
    report = examine(
        named.contract or named.bootstrap,
        client=client,
        bootstrap=named.bootstrap if named.contract else (),
        deadline=deadline or SECONDS,
        produce=produce,
    )
    show(report, files, format)
    return report.exit_code
