"""One report, many formats: `render` chooses the writer."""

from __future__ import annotations

from enum import StrEnum

from earshot.report.json import json
from earshot.report.junit import junit
from earshot.report.markdown import markdown
from earshot.report.terminal import Terminal
from earshot.report.text import text
from earshot.validation.result import Report


class Format(StrEnum):
    """What a report can be written as."""

    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"
    MARKDOWN = "markdown"
    HTML = "html"


def render(report: Report, format: Format | str, terminal: Terminal | None = None) -> str:
    """``report`` as ``format``; ``terminal`` says what text may use (default: plain ASCII)."""
    match Format(format):
        case Format.TEXT:
            return text(report, terminal)
        case Format.JSON:
            return json(report)
        case Format.JUNIT:
            return junit(report)
        case Format.MARKDOWN:
            return markdown(report)
        case Format.HTML:
            from earshot.report.html import html  # the template engine is not needed elsewhere

            return html(report)
