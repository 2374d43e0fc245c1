"""Which properties would put a secret into a text that is none: a stack file, a state, user data.

Everything that a setting is part of is read by more people than may know a password: the stack
file, Pulumi's state, a container's environment, an instance's user data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

INSTEAD = (
    "a reference that the broker itself resolves (`${file:/path:key}`, with `config.providers`), "
    "or a file that only the broker reads: a PEM key store needs no password"
)
"""What may stand there."""

# Keys of secrets, whatever their prefix (`listener.name.x.`, `listener.name.x.plain.`, `ssl.`).
# Source: type PASSWORD in Kafka's ConfigDef of 3.9 and 4.1, certificates left out; and how the
# plugins that share a broker's properties call theirs (tiered storage, schema registry).
_SECRET = re.compile(
    r"(.+\.)?(password|passphrase|secret|token|jaas\.config|credentials?(\.json)?|user\.info"
    r"|(secret|master|keystore|private|access|account|api)\.key)",
    re.IGNORECASE,
)
# A reference that a config provider resolves on the machine itself: ${file:/run/x:key}.
_REFERENCE = re.compile(r"\$\{[A-Za-z0-9_]+:[^{}]*\}")
# Inside a JAAS line; server-side PLAIN keeps a password per user in user_<name>.
_JAAS_SECRET = re.compile(
    r"\b(\w*(password|secret|token)|user_\w+)\s*=\s*\"?[^\s\";]", re.IGNORECASE
)
# In a value of any key: a private key in PEM, a URL with somebody's password, and the key in one of
# Azure's connection strings (tiered storage).
_IN_ANY_VALUE = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\w://[^\s/:@]*:[^\s/@]+@"
    r"|\b(AccountKey|SharedAccessKey|SharedAccessSignature)=[^\s;]",
    re.IGNORECASE,
)

# `user:password@host`, also where no URL begins; `1@host:9093,2@host:9093` is no such thing.
_USER = re.compile(r"[A-Za-z_][\w.-]{0,100}:[^\s/@,:;]{1,1000}@", re.ASCII)


def without_users(text: str) -> str:
    """``text`` without the users and passwords that stand before a host in it."""
    return _USER.sub("***@", text)


def revealed(properties: Mapping[str, object]) -> list[str]:
    """The keys of ``properties`` that hold a secret itself, and no reference to one."""
    return [key for key, value in properties.items() if reveals(key, str(value))]


def reveals(key: str, value: str) -> bool:
    """Whether the property ``key`` shows a secret to whoever can read its ``value``."""
    rest = _REFERENCE.sub("", value)
    if _IN_ANY_VALUE.search(rest):
        return True
    if not _SECRET.fullmatch(key.strip()):
        return False
    if key.strip().lower().endswith("jaas.config"):
        return _JAAS_SECRET.search(rest) is not None
    return bool(rest.strip())
