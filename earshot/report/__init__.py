"""Reports: one result, many formats. `render` chooses the writer and loads no other."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from earshot.report.terminal import Terminal
    from earshot.validation.result import Report


class Format(StrEnum):
    """What a report can be written as."""

    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"
    MARKDOWN = "markdown"
    HTML = "html"


def render(report: Report, format: Format | str, terminal: Terminal | None = None) -> str:
    """``report`` as ``format``; ``terminal`` says what text may use (default: plain ASCII).

    Raises ValueError for a format that there is not.
    """
    match Format(format):
        case Format.TEXT:
            from earshot.report.text import text

            return text(report, terminal)
        case Format.JSON:
            from earshot.report.json import json

            return json(report)
        case Format.JUNIT:
            from earshot.report.junit import junit

            return junit(report)
        case Format.MARKDOWN:
            from earshot.report.markdown import markdown

            return markdown(report)
        case Format.HTML:
            from earshot.report.html import html

            return html(report)
