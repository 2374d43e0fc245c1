"""The pack's findings in files, in the formats of `earshot lint`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from earshot.errors import EarshotError
from earshot.files import cache
from earshot.lint.formats import SUFFIXES, LintFormat, render
from earshot.lint.model import FileReport, Mistake, Outcome, Place
from earshot.rules.rule import Finding, FindingState, Severity

VARIABLE = "EARSHOT_FINDINGS"
_PROJECT_FILE = "Pulumi.yaml"
"""The file of all findings in reports. Resources have no file, so their URN is in the text."""


@dataclass
class FindingsFiles:
    """The files in `VARIABLE`, complete after every finding, because a run may end at any one."""

    formats: Mapping[Path, LintFormat] = field(default_factory=dict)
    _mistakes: dict[tuple[str, Finding], Mistake] = field(default_factory=dict)

    @classmethod
    def of_environment(cls, environment: Mapping[str, str] = os.environ) -> "FindingsFiles":
        """The files in `VARIABLE`, written without findings. Raises EarshotError."""
        texts = environment.get(VARIABLE, "").split(os.pathsep)
        files = cls(dict(map(_target, filter(None, texts))))
        files._write()
        return files

    def add(self, urn: str, finding: Finding, *, stops: bool) -> None:
        """Writes ``finding`` about the resource ``urn``, at the level of its policy."""
        if not self.formats:
            return
        reported = replace(finding, resource=urn)
        if finding.state is FindingState.VIOLATED:
            reported = replace(reported, severity=Severity.ERROR if stops else Severity.WARNING)
        self._mistakes[urn, finding] = Mistake(reported, Place(_PROJECT_FILE))
        self._write()

    def _write(self) -> None:
        report = FileReport(_PROJECT_FILE, "Pulumi program", tuple(self._mistakes.values()))
        outcome = Outcome((report,), (), Path(), lambda _: ())
        for path, format in self.formats.items():
            try:
                cache.write(path, render(outcome, format), 0o644)
            except OSError as reason:
                observed = f"cannot be written ({reason.strerror})"
                raise EarshotError(f"{VARIABLE}: {path}", observed=observed) from None


def _target(text: str) -> tuple[Path, LintFormat]:
    """The file and format of `FORMAT=PATH` or `PATH`."""
    prefix, separator, suffix = text.partition("=")
    has_format = bool(separator) and prefix in list(LintFormat)
    path = Path(suffix if has_format else text)
    format = LintFormat(prefix) if has_format else SUFFIXES.get(path.suffix)
    if format is None or not path.is_absolute():
        observed = "is not an absolute path" if format else "its suffix names no format"
        raise EarshotError(
            f"{VARIABLE}: {text}",
            observed=observed,
            allowed=f"an absolute path that ends in {', '.join(SUFFIXES)}, or FORMAT=PATH with "
            f"{', '.join(LintFormat)}",
        )
    return path, format
