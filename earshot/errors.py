"""The errors a user can cause, and nothing else.

EarshotError           exit code 2: usage or configuration; also what a machine lacks
├── AddressError       a listener entry, host or port that earshot's grammar refuses
└── SpecError          a document (a stack's `earshot:cluster`, a contract) with its problems

The facts stay on the exception, the text is derived from them: reporters need no parsing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial

# `user:password@host`, also where no URL begins; `1@host:9093,2@host:9093` is no such thing.
_USER = re.compile(r"(?:[A-Za-z_][\w.-]{0,100}|(?<=//)):[^\s/@,:;]{1,1000}@", re.ASCII)


def without_users(text: str) -> str:
    """``text`` without the users and passwords that stand before a host in it."""
    return _USER.sub("***@", text)


class EarshotError(Exception):
    """What is wrong (object), what was found, what is allowed, and how to fix it.

    ``str(error)`` is the one message a user sees; no password before a host stands in it.
    """

    exit_code = 2

    def __init__(
        self, object: str, *, observed: str = "", allowed: str = "", remedy: str = ""
    ) -> None:
        self.object = without_users(object)
        self.observed = without_users(observed)
        self.allowed = allowed
        self.remedy = remedy
        super().__init__(self.object)

    def __str__(self) -> str:
        text = self.object
        if self.observed:
            # a list of problems begins on a line of its own
            text += f":{'' if self.observed.startswith(chr(10)) else ' '}{self.observed}"
        for label, value in (("allowed", self.allowed), ("fix", self.remedy)):
            if value:
                text += f"\n  {label}: {value}"
        return text

    @property
    def line(self) -> str:
        """The message on one line, for a list of several problems."""
        return str(self).replace("\n  ", "; ")

    def __reduce__(self) -> tuple[object, ...]:
        facts = {"observed": self.observed, "allowed": self.allowed, "remedy": self.remedy}
        return partial(type(self), **facts), (self.object,)


class AddressError(EarshotError):
    """A piece of listener grammar that earshot refuses."""


class SpecError(EarshotError):
    """A cluster configuration with one or more problems, all named at once."""

    @classmethod
    def of(cls, source: str, problems: Iterable[str]) -> SpecError:
        """One error out of several problems of the same ``source`` (a file or a stack)."""
        listed = list(problems)
        if len(listed) == 1:
            return cls(source, observed=listed[0])
        return cls(source, observed="".join(f"\n  - {problem}" for problem in listed))
