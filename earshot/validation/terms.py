"""Verdicts, and the stages of a cell."""

from enum import StrEnum


class Verdict(StrEnum):
    """The verdict of a cell or a run."""

    PASS = "pass"
    FAIL = "fail"
    SKIP = "skip"
    INCONCLUSIVE = "inconclusive"


class Stage(StrEnum):
    """The stages of a cell in order. The first failed stage has the cause."""

    BOOTSTRAP = "bootstrap"
    METADATA = "metadata"
    RESOLVE = "resolve"
    TCP = "tcp"
    SECURITY = "security"
    PRODUCE = "produce"
    CONSUME = "consume"
