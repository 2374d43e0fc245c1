"""The desired users and ACLs, as lines of arguments for Kafka's own tools.

    password NAME BASE64          the user's new password: base64 of a file of `kafka-configs.sh`
    permissions NAME ARGUMENTS    the arguments of `kafka-acls.sh`

The lines contain passwords.
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
    former_users: Iterable[tuple[str, Mechanism]],
) -> str:
    """The lines in order. ``passwords`` are by user, in clear text.

    ``former_users`` must no longer log in by a password of that mechanism. They get a random one
    that is not stored, because a deletion can cost a broker all users (see
    `access.disable_logins`).
    """
    arguments = [*_permissions("remove", forbidden), *_permissions("add", allowed)]
    arguments += [_password(user, mechanisms, text) for user, text in passwords.items()]
    arguments += [
        _password(user, (kind,), secrets.token_urlsafe(24)) for user, kind in former_users
    ]
    return "\n".join(arguments)


def _password(user: str, mechanisms: Sequence[Mechanism], password: str) -> str:
    values = {
        str(mechanism): f"iterations={ITERATIONS},password={password}" for mechanism in mechanisms
    }
    text = write_properties(NodeSettings(values))
    return f"password {user} {base64.b64encode(text.encode()).decode()}"


def _permissions(action: str, grants: Iterable[Grant]) -> Iterable[str]:
    """A line per user with all resources in ``grants``."""
    by_user: dict[str, dict[str, list[str]]] = {}
    for user, kind, prefix in grants:
        by_user.setdefault(user, {}).setdefault(prefix, []).append(kind)
    for user, by_prefix in by_user.items():
        words = [f"--{action}", "--force", "--resource-pattern-type", "prefixed"]
        for principal_name in (user, principal(user, CLIENTS)):
            words += ["--allow-principal", f"User:{principal_name}"]
        for operation in operations(user):
            words += ["--operation", operation.name.capitalize()]
        for prefix, kinds in by_prefix.items():
            for kind in kinds:
                words += [f"--{kind.replace('_', '-')}", prefix]
        yield f"permissions {user} {' '.join(words)}"
