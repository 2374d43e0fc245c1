"""Writes a report as JSON, and reads it back."""

from __future__ import annotations

from json import dumps

from pydantic import ValidationError
from pydantic_core import from_json

from earshot.errors import EarshotError, SpecError
from earshot.listeners.problems import describe
from earshot.validation.result import Report


def json(report: Report) -> str:
    """``report`` as the JSON of its model, which `read_report` reads.

    In ASCII, so that text from a broker cannot reverse a line or hide a part of it.
    """
    return dumps(report.model_dump(mode="json"), indent=2) + "\n"


def read_report(text: str | bytes, source: str) -> Report:
    """The report in ``text``. Raises EarshotError, with ``source`` as the text's name."""
    try:
        return Report.model_validate_json(text)
    except ValidationError as error:
        problems = error.errors()
        if problems[0]["type"] == "json_invalid":
            raise EarshotError(
                source,
                observed=f"is not JSON ({problems[0]['msg']})",
                allowed="a report that `--format json` wrote",
            ) from None
        lines = describe(error, Report, from_json(text))
        raise SpecError.of(f"{source} (a report of version 1)", lines[:20]) from None
