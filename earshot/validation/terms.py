"""The words of a result: verdicts, and the stages of a cell."""

from enum import StrEnum


class Verdict(StrEnum):
    """Of a cell and of a run."""

    PASS = "pass"
    FAIL = "fail"
    SKIP = "skip"
    INCONCLUSIVE = "inconclusive"


class Stage(StrEnum):
    """The stages of a cell, in their order; the first that fails names the cause."""

    BOOTSTRAP = "bootstrap"
    METADATA = "metadata"
    RESOLVE = "resolve"
    TCP = "tcp"
    SECURITY = "security"
    PRODUCE = "produce"
    CONSUME = "consume"
