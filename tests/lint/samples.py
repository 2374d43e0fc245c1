"""Files with mistakes in them, as the check gives them, for all formats."""

from dataclasses import replace
from pathlib import Path

from earshot.errors import EarshotError
from earshot.lint.baseline import IN_BASELINE
from earshot.lint.model import FailedFile, FileReport, Mistake, Outcome, Place
from earshot.listeners.terms import Scope
from earshot.rules.rule import Finding, FindingState, Severity

ROOT = Path("/project")
COMPOSE = """\
services:
  kafka:
    image: apache/kafka:4.1.1
    environment:
      KAFKA_SSL_KEYSTORE_PASSWORD: hunter2
      KAFKA_ADVERTISED_LISTENERS: EXTERNAL://0.0.0.0:9092
    ports:
      - "9093:9092"
"""


def finding(
    rule: str = "KL003",
    observed: str = "advertises 0.0.0.0, which is no address of anybody",
    severity: Severity = Severity.ERROR,
    state: FindingState = FindingState.VIOLATED,
) -> Finding:
    return Finding(
        rule=rule,
        severity=severity,
        observed=observed,
        expected="a name that the clients can resolve",
        remedy="advertise localhost",
        source="https://www.rfc-editor.org/rfc/rfc6890",
        state=state,
        node=1,
        listener="EXTERNAL",
        scope=Scope.HOST,
        container="kafka",
    )


def mistake(
    rule: str = "KL003", line: int = 6, column: int = 46, file: str = "compose.yml"
) -> Mistake:
    return Mistake(finding(rule), Place(file, line, column))


ERROR = mistake()
WARNING = Mistake(
    finding("KL014", "the image is old", Severity.WARNING), Place("compose.yml", 3, 12)
)
NOTE = Mistake(
    finding("KL011", "the host is not known", state=FindingState.UNKNOWN), Place("compose.yml")
)
IGNORED = replace(
    mistake("KL006", 8, 9), ignored="a proxy publishes it", finding=finding("KL006", "9093:9092")
)
KNOWN = replace(mistake("KL002", 2, 0, "env/kafka 1.env"), ignored=IN_BASELINE)


def lines(file: str) -> list[str]:
    return COMPOSE.split("\n") if file == "compose.yml" else []


def outcome(*linted: FileReport, failed: tuple[FailedFile, ...] = ()) -> Outcome:
    return Outcome(linted, failed, ROOT, lines)


def full() -> Outcome:
    """Everything that there is."""
    return outcome(
        FileReport(
            "compose.yml",
            "Compose file",
            (ERROR, WARNING, NOTE, IGNORED, KNOWN),
            ("KL012: no name is looked up",),
        ),
        FileReport("server.properties", "properties file", (), ("KL012: no name is looked up",)),
        FileReport(
            "kafka.env",
            "environment file",
            is_named=True,
            open_listeners=("KAFKA_LISTENERS is not known: A://${IP}:9092",),
        ),
        FileReport(
            "other.env",
            "environment file",
            open_listeners=("KAFKA_LISTENERS is not known: A://${IP}:9092",),
        ),
        FileReport(".git", "", unchecked=("is a hidden folder",)),
        FileReport(
            "client.properties", "", unchecked=("is not a broker configuration",), is_named=True
        ),
        failed=(FailedFile("broken.yml", EarshotError("broken.yml", observed="is no YAML")),),
    )


def clean() -> Outcome:
    """One file, and nothing wrong in it."""
    return outcome(FileReport("compose.yml", "Compose file"))


def nothing() -> Outcome:
    """Nothing that could be checked."""
    return outcome()


def unjudged() -> Outcome:
    """A file that was named, and nothing that could be judged in it."""
    return outcome(FileReport("a.yml", "", unchecked=("is not a Compose file",), is_named=True))


ALL = {"full": full, "clean": clean, "nothing": nothing, "unjudged": unjudged}
