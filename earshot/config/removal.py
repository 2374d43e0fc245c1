"""`remove` of a stack file: when a change may remove a listener with connected clients."""

import re
from datetime import date
from typing import Annotated, Final

from pydantic import PlainValidator

from earshot.listeners.problems import shown

UNUSED: Final = "unused"
ANYWAY: Final = "anyway"
_ALLOWED = "unused, anyway, or a date such as 2030-12-31, from which it is removed"
_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(?: 00:00:00 \+0000 UTC)?", re.ASCII)
"""A date; without quotes Pulumi 3.259 passes it as the midnight at its start."""


def _remove(value: object) -> str:
    if value in (UNUSED, ANYWAY):
        return str(value)
    text = value.isoformat() if isinstance(value, date) else value
    date_match = _DATE.fullmatch(text) if isinstance(text, str) else None
    try:
        if date_match is not None:
            return date.fromisoformat(date_match[1]).isoformat()
    except ValueError:
        pass  # not a date of the calendar
    raise ValueError(f"found {shown(text)}; allowed: {_ALLOWED}")


Remove = Annotated[str, PlainValidator(_remove, json_schema_input_type=str)]
"""`unused`, `anyway`, or a date such as 2030-12-31."""


def goes_anyway(remove: str, today: date) -> bool:
    """True if a listener is removed on ``today`` (UTC) even with connected clients."""
    return remove == ANYWAY or (remove != UNUSED and today >= date.fromisoformat(remove))
