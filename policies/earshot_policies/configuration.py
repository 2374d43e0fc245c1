"""The pack's configuration, as the pack gets it from Pulumi.

Pulumi checks the properties of each policy, but accepts a level for a name that no policy has.
Only this file depends on how `pulumi_policy` receives both.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc
from pulumi.runtime import proto
from pulumi_policy import EnforcementLevel, policy

from earshot.checks.policy_config import repeated_ids, unknown_ids
from earshot.errors import EarshotError
from earshot.files import cache
from earshot.lint.formats import SUFFIXES, LintFormat, render
from earshot.lint.model import FileReport, Mistake, Outcome, Place
from earshot.rules.rule import Finding, FindingState, Severity

_Servicer: Any = policy._PolicyAnalyzerServicer


class Configuration:
    """The levels of one run, and the files that findings are written to."""

    def __init__(self) -> None:
        self.files = FindingsFiles()
        self._levels: dict[str, EnforcementLevel] = {}

    def level(self, name: str, default: EnforcementLevel) -> EnforcementLevel:
        """The configured level of the policy ``name``, else ``default``."""
        return self._levels.get(name, default)

    def check(self, keys: Iterable[str]) -> str:
        """Why ``keys`` or the environment are not a configuration; an empty text if they are."""
        all_keys = list(keys)
        # the engine adds each id in lower case, also if the file has another spelling
        spellings = [key for key in all_keys if key != key.lower()]
        problems = [*unknown_ids(all_keys), *repeated_ids(spellings)]
        try:
            self.files = FindingsFiles.of_environment()
        except EarshotError as error:
            problems.append(str(error))
        return "; ".join(problems)

    def install(self) -> None:
        """Make the next pack of this process pass its configuration to this object."""
        configuration = self

        class Servicer(_Servicer):  # type: ignore[misc]
            def Configure(self, request: Any, context: Any) -> Any:  # noqa: N802 - as the SDK calls it
                configs = request.policyConfig
                if problem := configuration.check(configs):
                    context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"policy pack: {problem}")
                for key in [key for key in configs if key != key.lower()]:
                    configs[key.lower()].CopyFrom(configs.pop(key))
                # `all` disables `names`, too, whose resolvers and waivers other policies need
                if configs["names"].enforcementLevel == proto.DISABLED:
                    configs["names"].enforcementLevel = proto.MANDATORY
                result = super().Configure(request, context)
                configuration._levels = {
                    key: self._convert_enforcement_level(config.enforcementLevel)
                    for key, config in configs.items()
                }
                return result

        policy._PolicyAnalyzerServicer = Servicer  # type: ignore[misc]


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
