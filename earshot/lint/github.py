"""Writes the result as workflow commands of GitHub Actions, which shows them at the lines.

Source of the escapes: actions/toolkit (`packages/core/src/command.ts`).
"""

from earshot.lint.model import FailedFile, Mistake, Outcome, summary_line
from earshot.visible import visible

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
_IN_MESSAGES = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTIES = _IN_MESSAGES | str.maketrans({":": "%3A", ",": "%2C"})


def github(outcome: Outcome) -> str:
    """A command for each failed or incomplete file, and for each mistake that is not ignored; then
    the summary."""
    lines = [_failed(failure, outcome) for failure in outcome.failed]
    lines += [
        _command("error", {"file": outcome.relative(file.file), "title": kind}, ", ".join(reasons))
        for file, kind, reasons in outcome.incomplete
    ]
    lines += [_mistake(mistake, outcome) for mistake in outcome.mistakes if not mistake.ignored]
    return "\n".join([*lines, f"earshot lint: {outcome.headline}"]) + "\n"


def _failed(failure: FailedFile, outcome: Outcome) -> str:
    properties = {"file": outcome.relative(failure.file), "title": "could not be checked"}
    return _command("error", properties, str(failure.error))


def _mistake(mistake: Mistake, outcome: Outcome) -> str:
    finding, place = mistake.finding, mistake.place
    numbers = {"line": place.line, "col": place.column} if place.line else {}
    properties = {"file": outcome.relative(place.file)}
    properties |= {key: str(number) for key, number in numbers.items() if number}
    properties["title"] = f"{finding.rule} {finding.subject}"
    message = (
        f"{summary_line(mistake)}\nexpected: {finding.expected}\nfix: {finding.fix}\n"
        f"source: {finding.source}"
    )
    return _command(_COMMANDS[mistake.level], properties, message)


def _command(name: str, properties: dict[str, str], message: str) -> str:
    property_text = ",".join(
        f"{key}={visible(text).translate(_IN_PROPERTIES)}" for key, text in properties.items()
    )
    return f"::{name} {property_text}::{visible(message).translate(_IN_MESSAGES)}"
