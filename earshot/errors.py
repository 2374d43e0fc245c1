"""The errors that a user can cause.

EarshotError           exit code 2: usage or configuration; also limits of the machine
├── AddressError       a listener entry, host or port that earshot's grammar refuses
└── SpecError          a document (a stack's `earshot:cluster`, a contract) with its problems

The facts are attributes of the exception, and the text is derived from them.
"""

from __future__ import annotations

import errno
import os
import re
import resource
import string
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from earshot.visible import visible

# of `user:password@host`, also where no URL begins; `1@host:9093,2@host:9093` has none, nor
# `kafka:4.1.1@sha256:...`
_PASSWORD = re.compile(r":[^\s/@,:;]{1,1000}@(?!sha256:)", re.ASCII)
# `ssl.key.password=x`, also as a part of the value of another setting
_ASSIGNED = re.compile(
    r"((?:password|passwd|passphrase|secret|token)[\w.-]{0,40}\s*=\s*)"
    r"(?:\"[^\"\n]*\"|\S+?(?=[\"';,.:)]{0,3}(?:\s|$)))",
    re.IGNORECASE | re.ASCII,
)
_IN_A_NAME = string.ascii_letters + string.digits + "_.-"
_MAX_NAME_LENGTH = 101
_LONG_WORD = re.compile(r"(?<!\S)(\S{200})\S{800,}")

_MORE_PROCESSES = (
    "end other programs, or raise the limit on processes and threads (`ulimit -u`; in a container "
    "its own limit, `--pids-limit`)"
)
_FIX_BY_ERRNO = {
    errno.EAGAIN: _MORE_PROCESSES,
    errno.EBUSY: "unmount it if it is a mount point, or end the program that uses it, then run the "
    "same command again",
    errno.EDQUOT: "free space within this user's quota on that disk, then run the same command "
    "again",
    errno.ENFILE: "end other programs, or raise the limit on open files of the whole machine "
    "(`sysctl fs.file-max`)",
    errno.ENOMEM: "end other programs, or give this machine or container more memory",
    errno.ENOSPC: "free space on that disk, then run the same command again",
    errno.EROFS: "mount that file system for writing, as no user can write to it now, or use a "
    "folder elsewhere",
}
_OF_NAMES = {
    errno.EACCES: "name a file in a folder that this user can read and write",
    errno.ELOOP: "name a file that is no link to itself",
    errno.ENAMETOOLONG: "choose a shorter name",
}
"""Fixes for errors about the name or the place of a file."""
_NO_THREAD = "can't start new thread"
"""The text of Python's RuntimeError."""
_ENOUGH_FILES = 1024
_OF_PROJECT = ".earshot"
"""The folder in a project for earshot's files."""


def without_users(text: str) -> str:
    """``text`` without the users and passwords before a host in it."""
    parts, end = [], 0
    for password in _PASSWORD.finditer(text):
        before = text[max(end, password.start() - _MAX_NAME_LENGTH) : password.start()]
        rest = before.rstrip(_IN_A_NAME)
        in_url, name = rest.endswith("//"), before[len(rest) :]
        name = name if in_url else name.lstrip(string.digits + ".-")
        if name or in_url:
            parts += [text[end : password.start() - len(name)], "***@"]
            end = password.end()
    return "".join((*parts, text[end:]))


def without_passwords(text: str) -> str:
    """``text`` without the values that it assigns to passwords: `ssl.key.password=***`."""
    return _ASSIGNED.sub(r"\1***", text) if "=" in text else text


def _brief(text: str) -> str:
    """``text`` without users and passwords, with only the beginning of very long words, and with
    control characters spelled out."""
    return visible(_LONG_WORD.sub(r"\1...", without_passwords(without_users(text))))


class EarshotError(Exception):
    """An error with its object, the observed and the allowed value, and the fix.

    ``str(error)`` is the message that a user sees; passwords before a host are removed, words of
    1,000 characters or more are shortened, and control characters are spelled out.
    """

    exit_code = 2

    def __init__(
        self, object: str, *, observed: str = "", allowed: str = "", remedy: str = ""
    ) -> None:
        self.object = _brief(object)
        self.observed = _brief(observed)
        self.allowed = allowed
        self.remedy = remedy
        super().__init__(self.object)

    def __str__(self) -> str:
        text = self.object
        if self.observed:
            # a list of problems begins on a new line
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


def remedy_of(reason: BaseException) -> str:
    """How to lift the limit of this machine that ``reason`` ran into; empty for other errors."""
    if isinstance(reason, RuntimeError):
        return _MORE_PROCESSES if _NO_THREAD in str(reason) else ""
    if not isinstance(reason, OSError):
        return ""
    if reason.errno != errno.EMFILE:
        return _FIX_BY_ERRNO.get(reason.errno or 0, "")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_open = hard == resource.RLIM_INFINITY or hard >= _ENOUGH_FILES
    first = (
        ""
        if is_open
        else (
            f", for which its hard limit, {hard}, has to be raised first "
            f"(/etc/security/limits.conf; in a container `--ulimit nofile={_ENOUGH_FILES}`)"
        )
    )
    return (
        f"raise this process's limit on open files from {soft}: `ulimit -n {_ENOUGH_FILES}`{first}"
    )


def machine_error(fault: BaseException) -> EarshotError | None:
    """The error to show if ``fault`` is due to a limit of this machine, or the name or place of a
    file; else None."""
    reason: BaseException | None = fault
    while reason is not None and not (remedy := remedy_of(reason) or _remedy_of_name(reason)):
        reason = reason.__cause__
    if reason is None:
        return None
    named = getattr(reason, "filename", None) or "this machine"
    text = getattr(reason, "strerror", None) or str(reason)
    return EarshotError(str(named), observed=text, remedy=remedy)


def _remedy_of_name(reason: BaseException) -> str:
    if isinstance(reason, OSError) and reason.filename is not None:
        return remedy_of_owner(reason) or _OF_NAMES.get(reason.errno or 0, "")
    return ""


def remedy_of_owner(reason: OSError) -> str:
    """The fix if ``reason`` denies access to a project's own folder, which another user has."""
    path = Path(os.fsdecode(reason.filename or ""))
    folders = [parent for parent in (path, *path.parents) if parent.name == _OF_PROJECT]
    if reason.errno != errno.EACCES or not folders:
        return ""
    try:
        uid = folders[0].stat().st_uid
    except OSError:
        return ""
    if uid == os.geteuid():
        return ""
    return f"run the command as the user of {folders[0]} (uid {uid}), or in a checkout of your own"


class AddressError(EarshotError):
    """A piece of listener grammar that earshot refuses."""


class SpecError(EarshotError):
    """A document with one or more problems, all in one error."""

    problems: Sequence[str] = ()
    """The problems, without the document."""

    @classmethod
    def of(cls, source: str, problems: Iterable[str]) -> SpecError:
        """One error for all problems of ``source``, which is a file or a stack."""
        listed = list(problems)
        is_one = len(listed) == 1
        text = listed[0] if is_one else "".join(f"\n  - {problem}" for problem in listed)
        error = cls(source, observed=text)
        error.problems = listed
        return error
