"""What the result can be written as. `render` chooses the writer and loads no other."""

from __future__ import annotations

import importlib
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from earshot.lint.model import Outcome
    from earshot.report.terminal import Terminal


class LintFormat(StrEnum):
    """What `earshot lint` writes; each is a module here with a function of that name."""

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
    if format is LintFormat.TEXT:
        from earshot.lint.text import text

        return text(outcome, terminal)
    module = importlib.import_module(f"earshot.lint.{format}")
    written: str = getattr(module, format)(outcome)
    return written
