"""What the result can be written as. `render` chooses the writer and loads no other."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from earshot.lint.outcome import Outcome
    from earshot.report.terminal import Terminal


class Format(StrEnum):
    """What `earshot lint` writes."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"
    MARKDOWN = "markdown"
    GITHUB = "github"


SUFFIXES = {
    ".txt": Format.TEXT,
    ".json": Format.JSON,
    ".sarif": Format.SARIF,
    ".xml": Format.JUNIT,
    ".md": Format.MARKDOWN,
}


def render(outcome: Outcome, format: Format, terminal: Terminal | None = None) -> str:
    """``outcome`` as ``format``; ``terminal`` says what text may use (default: plain ASCII)."""
    match format:
        case Format.TEXT:
            from earshot.lint.text import text

            return text(outcome, terminal)
        case Format.JSON:
            from earshot.lint.json import json

            return json(outcome)
        case Format.SARIF:
            from earshot.lint.sarif import sarif

            return sarif(outcome)
        case Format.JUNIT:
            from earshot.lint.junit import junit

            return junit(outcome)
        case Format.MARKDOWN:
            from earshot.lint.markdown import markdown

            return markdown(outcome)
        case Format.GITHUB:
            from earshot.lint.github import github

            return github(outcome)
