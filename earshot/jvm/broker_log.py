"""Finds the reason for a broker's end in Kafka's log and the JVM's output.

Both of Kafka's loggers (log4j in 3.9, log4j 2 in 4.x) begin an entry with `[time] LEVEL`, and print
an exception below it. After the error that ends a broker come dozens of lines of its shutdown, so
the last lines do not have the reason.
"""

import re
from dataclasses import dataclass, field

_ENTRY = re.compile(r"\[[\d-]{10}[T ][\d:,.]+\] (?P<level>[A-Z]+) (?P<text>.*?)(?: \([\w.$]+\))?$")
_EXCEPTION = re.compile(
    r"(?:Caused by: )?(?:[a-z_]\w*\.)+(?P<kind>[A-Z][\w$]*)(?:: (?P<text>.*))?$"
)
_WRAPPERS = ("RuntimeException", "CompletionException", "ExecutionException")
_ENDING = re.compile(r"fatal|^shutting down because", re.IGNORECASE)
_JVM = re.compile(
    r"^(Error|Exception in thread|Terminating due to|Invalid|Unrecognized)\b"
    r"|OutOfMemoryError|Could not reserve|insufficient memory"
)
_START = "kafka:type=kafka.Log4jController"
"""A text in the first log line of every Kafka."""
_PREFIX = re.compile(r"^\[[^\]]*\] ")


@dataclass
class _Error:
    text: str
    exceptions: list[tuple[str, str]] = field(default_factory=list)
    """Kind and message of each exception, from the outermost to the cause."""

    def __str__(self) -> str:
        if not self.exceptions:
            return self.text
        telling = [exception for exception in self.exceptions if exception[0] not in _WRAPPERS]
        kind, message = (telling or self.exceptions[-1:])[0]
        text = f"{kind}: {message}" if message else kind
        cause, reason = self.exceptions[-1]
        return text if reason in text else f"{text} ({cause}: {reason})"


def cause_of_end(log: str, console: str = "") -> str:
    """The reason on one line why the broker that wrote ``log`` ended; empty if unknown.

    ``console`` is the output of its JVM. Only the log since the broker's last start is used. The
    result is, in this order: the first error that Kafka calls fatal, the JVM's error, the last
    error with an exception, the last error.
    """
    errors = _errors(log.rpartition(_START)[2])
    for error in errors:
        if _ENDING.search(error.text):
            return str(error)
    printed = [line.strip() for line in console.splitlines() if _JVM.search(line.strip())]
    if printed:
        return " ".join(dict.fromkeys(printed[:2]))
    thrown = [error for error in errors if error.exceptions]
    return str((thrown or errors)[-1]) if errors else ""


def without_frames(text: str) -> list[str]:
    """The lines of ``text`` without blank lines and frames of Java's stack traces."""
    return [
        line.rstrip()
        for line in text.splitlines()
        if line.strip() and not line.startswith(("\tat ", "\t... "))
    ]


def _errors(log: str) -> list[_Error]:
    """The entries of level ERROR or FATAL."""
    errors: list[_Error] = []
    within = False
    for line in log.splitlines():
        if entry := _ENTRY.match(line):
            if within := entry["level"] in ("ERROR", "FATAL"):
                errors.append(_Error(_PREFIX.sub("", entry["text"]).strip()))
        elif within and (thrown := _EXCEPTION.match(line)):
            errors[-1].exceptions.append((thrown["kind"], (thrown["text"] or "").strip()))
    return errors
