"""Reports: one result, many formats. `render` chooses the writer and loads no other."""

from __future__ import annotations

import importlib
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from earshot.report.terminal import Terminal
    from earshot.validation.result import Report


class Format(StrEnum):
    """What a report can be written as; each is a module here with a function of that name."""

    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"
    MARKDOWN = "markdown"
    HTML = "html"


def render(report: Report, format: Format | str, terminal: Terminal | None = None) -> str:
    """``report`` as ``format``. ``terminal`` has the style of text (default: plain ASCII).

    Raises ValueError for a format that there is not.
    """
    if Format(format) is Format.TEXT:
        from earshot.report.text import text

        return text(report, terminal)
    module = importlib.import_module(f"earshot.report.{format}")
    rendered: str = getattr(module, format)(report)
    return rendered
