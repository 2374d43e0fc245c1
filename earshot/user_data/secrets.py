"""Which properties would put a secret into a text that is none: user data, a stack's state."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Keys of secrets, whatever their prefix (`listener.name.x.`, `ssl.`).
# Source: type `password` in https://kafka.apache.org/documentation/#configuration (no certificates)
_SECRET = re.compile(
    r"(.+\.)?(password|passphrase|secret|(secret|master|keystore)\.key|token|jaas\.config)",
    re.IGNORECASE,
)
# A reference that a config provider resolves on the machine itself: ${file:/run/x:key}.
_REFERENCE = re.compile(r"\$\{[A-Za-z0-9_]+:[^{}]*\}")
# Inside a JAAS line; server-side PLAIN keeps a password per user in user_<name>.
_JAAS_SECRET = re.compile(
    r"\b(\w*(password|secret|token)|user_\w+)\s*=\s*\"?[^\s\";]", re.IGNORECASE
)


def revealed(properties: Mapping[str, str]) -> list[str]:
    """The keys of ``properties`` that hold a secret itself, and no reference to one."""
    return [
        key for key, value in properties.items() if _SECRET.fullmatch(key) and _told(key, value)
    ]


def _told(key: str, value: str) -> bool:
    rest = _REFERENCE.sub("", value)
    if key.lower().endswith("jaas.config"):
        return _JAAS_SECRET.search(rest) is not None
    return bool(rest.strip())
