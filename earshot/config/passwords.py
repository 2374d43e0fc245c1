"""Passwords of users from the stack's configuration secrets: `earshot:passwords`.

Messages never contain a password.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from earshot.config.cluster import ClusterSpec
from earshot.errors import SpecError
from earshot.listeners.problems import shown

KEY = "earshot:passwords"
_SECURE = "secure"
"""The key of an encrypted value in a stack file."""
_USABLE = re.compile(r"[!-~]{8,128}")
_ALLOWED = "8 to 128 printable ASCII characters without spaces"


def read_passwords(value: object) -> dict[str, object]:
    """The passwords by user in ``value``, which is JSON from Pulumi or its parsed form."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return (
        {str(name): password for name, password in value.items()}
        if isinstance(value, Mapping)
        else {}
    )


def check_passwords(value: object, spec: ClusterSpec, source: str, *, secret: bool) -> None:
    """Raises SpecError if ``value`` from Pulumi does not have valid passwords of users of ``spec``.

    ``source`` is where the value is set; ``secret`` is True if a part of it is a secret.
    """
    passwords = read_passwords(value)
    problems = list(_about_users(passwords, spec))
    if not secret:
        problems.append(_plain("USER"))
    elif not passwords:
        problems.append("found no map; allowed: a password by user, each set by " + _command())
    for name, password in passwords.items():
        if not isinstance(password, str) or not _USABLE.fullmatch(password):
            problems.append(
                f"{shown(name)}: is not a valid password; allowed: {_ALLOWED}, set by {_command()}"
            )
    if problems:
        raise SpecError.of(source, problems)


def check_names(names: Iterable[str], source: str) -> None:
    """Raises SpecError if one of the ``names`` in a stack's configuration is a user's of its own.

    `pulumi config set` writes such a name without `--path`, and nothing would read it.
    """
    if names := [name for name in names if name.startswith(f"{KEY}.")]:
        problem = (
            f"found the key {shown(names[0])}, which nothing reads; allowed: the map {KEY}, set "
            f"by {_command()}, after `pulumi config rm {shown(names[0])}`"
        )
        raise SpecError.of(source, [problem])


def check_encrypted(value: object, spec: ClusterSpec, source: str) -> None:
    """Like `check_passwords`, but for a stack file, in which secrets are encrypted."""
    if isinstance(value, Mapping) and isinstance(value.get(_SECURE), str):
        return  # the whole map is one secret
    if not isinstance(value, Mapping):
        raise SpecError.of(source, [_plain("USER")])
    problems = list(_about_users(value, spec))
    for name, password in value.items():
        if not (isinstance(password, Mapping) and password.keys() == {_SECURE}):
            problems.append(_plain(shown(name)))
    if problems:
        raise SpecError.of(source, problems)


def _about_users(passwords: Mapping[str, object], spec: ClusterSpec) -> Iterator[str]:
    if spec.security is None:
        yield "found for a cluster without `security`; allowed: where that has users"
        return
    for name in map(str, passwords):
        if name not in spec.security.user_names:
            users = ", ".join(spec.security.user_names)
            yield f"found {shown(name)}, which is not a user; allowed: {users}"
        elif name in spec.security.password_numbers:
            yield (
                f"{name}: found with security.password_numbers.{name}; allowed: one of them, as a "
                "configured password has no number"
            )


def _plain(name: str) -> str:
    return (
        f"{name}: is in plain text; allowed: a secret, set by {_command()}, which asks for it; "
        "choose another one, as readers of the file know this one"
    )


def _command() -> str:
    return f"`pulumi config set --secret --path {KEY}.USER`"
