"""Secrets of a secured cluster on AWS: which SSM parameter holds which, and who reads it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from earshot.config.aws import AwsSpec
from earshot.listeners.security import USERS, VALIDATOR_FILE, node_name, trusted_file

TRUSTED_PARAMETER: Final = "trusted"
"""The certificates of all authorities that are trusted."""
USERS_PARAMETER: Final = USERS
"""What the first broker does to users and permissions."""
COPY_PARAMETER: Final = "authority"
"""A copy of the authorities' keys and of passwords, for other checkouts; no instance reads it."""
VALIDATOR_PARAMETER: Final = "validator"
"""The validator's client properties."""


@dataclass(frozen=True)
class SecretVersions:
    """Which secrets an instance is given."""

    digest: str = ""
    """Differs where the secrets do; empty without any."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """By what a parameter holds, the number of its version; the last one, where it has none.

    An instance that starts again finds what it had, whatever was written for its successor.
    """


NO_SECRETS: Final = SecretVersions()


def secret_parameter(stack: str, what: str) -> str:
    """The SSM parameter of ``stack`` that holds ``what``: a key store's name, or one of those
    above."""
    return f"/earshot/{stack}/security/{what}"


def makes_users(spec: AwsSpec, id: int) -> bool:
    """Whether node ``id`` is the one that makes users and permissions."""
    return id == spec.ids[0]


def node_secrets(spec: AwsSpec, id: int) -> dict[str, str]:
    """By the file below `SECRETS`, what node ``id`` reads; nothing without `security`."""
    if spec.security is None:
        return {}
    tls, own = spec.security.tls, node_name(id)
    trusted = trusted_file(tls.authorities, given=tls.files is not None)
    found = {f"{own}.pem": own, trusted: TRUSTED_PARAMETER}
    return found | ({USERS: USERS_PARAMETER} if makes_users(spec, id) else {})


def validator_secrets(spec: AwsSpec) -> dict[str, str]:
    """The same for the validator in the VPC, below its own folder."""
    return {} if spec.security is None else {VALIDATOR_FILE: VALIDATOR_PARAMETER}
