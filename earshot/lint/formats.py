"""What the result can be written as. `render` chooses the writer and loads no other."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from earshot.lint.outcome import Outcome
    from earshot.report.terminal import Terminal


class LintFormat(StrEnum):
    """What `earshot lint` writes."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"
    MARKDOWN = "markdown"
    GITHUB = "github"


SUFFIXES = {
    ".txt": LintFormat.TEXT,
    ".json": LintFormat.JSON,
    ".sarif": LintFormat.SARIF,
    ".xml": LintFormat.JUNIT,
    ".md": LintFormat.MARKDOWN,
}


def render(outcome: Outcome, format: LintFormat, terminal: Terminal | None = None) -> str:
    """``outcome`` as ``format``; ``terminal`` says what text may use (default: plain ASCII)."""
    match format:
        case LintFormat.TEXT:
            from earshot.lint.text import text

            return text(outcome, terminal)
        case LintFormat.JSON:
            from earshot.lint.json import json

            return json(outcome)
        case LintFormat.SARIF:
            from earshot.lint.sarif import sarif

            return sarif(outcome)
        case LintFormat.JUNIT:
            from earshot.lint.junit import junit

            return junit(outcome)
        case LintFormat.MARKDOWN:
            from earshot.lint.markdown import markdown

            return markdown(outcome)
        case LintFormat.GITHUB:
            from earshot.lint.github import github

            return github(outcome)
