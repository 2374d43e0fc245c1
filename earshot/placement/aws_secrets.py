"""Names the SSM parameters with the secrets of a cluster on AWS, and the nodes that read them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from earshot.config.aws import AwsSpec
from earshot.listeners.security import USERS, VALIDATOR_FILE, node_name, trusted_file

TRUSTED_PARAMETER: Final = "trusted"
"""The certificates of all trusted authorities."""
USERS_PARAMETER: Final = USERS
"""The users and ACLs that the first broker creates."""
COPY_PARAMETER: Final = "authority"
"""A copy of the authorities' keys and of passwords, for other checkouts. No instance reads it."""
VALIDATOR_PARAMETER: Final = "validator"
"""The validator's client properties."""


@dataclass(frozen=True)
class SecretVersions:
    """The versions of an instance's secrets."""

    digest: str = ""
    """A digest of all secrets; empty without any."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """The version number of each parameter, by its content (`secret_parameter`). A parameter
    without a number is read in its latest version.

    A restarted instance reads the same version, even if a new one was written for its successor.
    """


NO_SECRETS: Final = SecretVersions()


def secret_parameter(stack: str, parameter: str) -> str:
    """The full name of an SSM parameter of ``stack``. ``parameter`` is a key store's name, or one
    of the constants above."""
    return f"/earshot/{stack}/security/{parameter}"


def makes_users(spec: AwsSpec, id: int) -> bool:
    """True if node ``id`` creates the users and ACLs."""
    return id == spec.ids[0]


def node_secrets(spec: AwsSpec, id: int) -> dict[str, str]:
    """The parameters that node ``id`` reads, by file name below `SECRETS`; none without
    `security`."""
    if spec.security is None:
        return {}
    tls, node = spec.security.tls, node_name(id)
    trusted_name = trusted_file(tls.authorities, given=tls.files is not None)
    files = {f"{node}.pem": node, trusted_name: TRUSTED_PARAMETER}
    return files | ({USERS: USERS_PARAMETER} if makes_users(spec, id) else {})


def validator_secrets(spec: AwsSpec) -> dict[str, str]:
    """Like `node_secrets`, for the validator in the VPC and its own folder."""
    return {} if spec.security is None else {VALIDATOR_FILE: VALIDATOR_PARAMETER}
