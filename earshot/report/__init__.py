"""The formats of a report. `render` imports only the module of the chosen format."""

from __future__ import annotations

import importlib
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from earshot.report.terminal import Terminal
    from earshot.validation.result import Report


class Format(StrEnum):
    """A report format. Each has a module in this package with a function of its name."""

    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"
    MARKDOWN = "markdown"
    HTML = "html"


def render(report: Report, format: Format | str, terminal: Terminal | None = None) -> str:
    """``report`` as ``format``. ``terminal`` has the style of text (default: plain ASCII).

    Raises ValueError for an unknown format.
    """
    if Format(format) is Format.TEXT:
        from earshot.report.text import text

        return text(report, terminal)
    module = importlib.import_module(f"earshot.report.{format}")
    rendered: str = getattr(module, format)(report)
    return rendered
