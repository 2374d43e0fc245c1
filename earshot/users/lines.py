"""What is to become of users and permissions, as lines for who has Kafka's tools alone.

    password NAME BASE64          the user's new password: base64 of a file of `kafka-configs.sh`
    permissions NAME ARGUMENTS    of `kafka-acls.sh`

The lines hold passwords.
"""

import base64
import secrets
from collections.abc import Iterable, Mapping, Sequence

from earshot.listeners.properties import NodeSettings, write_properties
from earshot.listeners.security import CLIENTS, principal
from earshot.listeners.terms import Mechanism
from earshot.users.access import ITERATIONS, Grant, operations


def lines(
    forbidden: Iterable[Grant],
    allowed: Iterable[Grant],
    passwords: Mapping[str, str],
    mechanisms: Sequence[Mechanism],
    gone: Iterable[tuple[str, Mechanism]],
) -> str:
    """The lines, in their order; their reader gets the ``passwords``, which are by user.

    ``gone`` are those who can no longer log in by a password of that mechanism: they get one that
    is kept nowhere, for a deletion can cost a broker all users (see `access.disable_logins`).
    """
    found = [*_permissions("remove", forbidden), *_permissions("add", allowed)]
    found += [_password(user, mechanisms, text) for user, text in passwords.items()]
    found += [_password(user, (kind,), secrets.token_urlsafe(24)) for user, kind in gone]
    return "\n".join(found)


def _password(user: str, mechanisms: Sequence[Mechanism], password: str) -> str:
    values = {str(it): f"iterations={ITERATIONS},password={password}" for it in mechanisms}
    text = write_properties(NodeSettings(values))
    return f"password {user} {base64.b64encode(text.encode()).decode()}"


def _permissions(action: str, grants: Iterable[Grant]) -> Iterable[str]:
    """A line per user, with the kinds of resources by prefix."""
    by_user: dict[str, dict[str, list[str]]] = {}
    for user, kind, prefix in grants:
        by_user.setdefault(user, {}).setdefault(prefix, []).append(kind)
    for user, by_prefix in by_user.items():
        words = [f"--{action}", "--force", "--resource-pattern-type", "prefixed"]
        for shown in (user, principal(user, CLIENTS)):
            words += ["--allow-principal", f"User:{shown}"]
        for operation in operations(user):
            words += ["--operation", operation.name.capitalize()]
        for prefix, kinds in by_prefix.items():
            for kind in kinds:
                words += [f"--{kind.replace('_', '-')}", prefix]
        yield f"permissions {user} {' '.join(words)}"
