"""The report formats of `earshot lint`. `render` imports only the module of the chosen format."""

from __future__ import annotations

import importlib
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from earshot.lint.model import Outcome
    from earshot.report.terminal import Terminal


class LintFormat(StrEnum):
    """A report format. Each has a module in this package with a function of its name."""

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
    """``outcome`` as ``format``. ``terminal`` has the style of text (default: plain ASCII)."""
    if format is LintFormat.TEXT:
        from earshot.lint.text import text

        return text(outcome, terminal)
    module = importlib.import_module(f"earshot.lint.{format}")
    report: str = getattr(module, format)(outcome)
    return report
