"""Secrets of a secured cluster on AWS: which SSM parameter holds which, and who reads it. Pure."""

from __future__ import annotations

from typing import Final

from earshot.config.aws import AwsSpec
from earshot.listeners.model import SecurityPlan
from earshot.listeners.security import USERS, VALIDATOR_FILE, node_name, trusted_file
from earshot.user_data.boot import SECRETS

TRUSTED_PARAMETER: Final = "trusted"
"""The certificates of all authorities that are trusted."""
USERS_PARAMETER: Final = USERS
"""What the first broker does to users and permissions."""
COPY_PARAMETER: Final = "authority"
"""A copy of the authorities' keys and of passwords, for other checkouts; no instance reads it."""
VALIDATOR_PARAMETER: Final = "validator"
"""The validator's client properties."""


def security_plan(spec: AwsSpec) -> SecurityPlan | None:
    """Where nodes find their certificates; None without `security`."""
    if spec.security is None:
        return None
    return SecurityPlan(
        folder=SECRETS,
        mechanism=spec.security.mechanism,
        authorities=spec.security.tls.authorities,
    )


def secret_parameter(stack: str, what: str) -> str:
    """The SSM parameter of ``stack`` that holds ``what``: a key store's name, or one of those
    above."""
    return f"/earshot/{stack}/security/{what}"


def makes_users(spec: AwsSpec, id: int) -> bool:
    """Whether node ``id`` is the one that makes users and permissions."""
    return id == spec.ids[0]


def node_secrets(spec: AwsSpec, id: int) -> dict[str, str]:
    """By the file below `SECRETS`, what node ``id`` reads; nothing without `security`."""
    security = security_plan(spec)
    if security is None:
        return {}
    own = node_name(id)
    found = {f"{own}.pem": own, trusted_file(security): TRUSTED_PARAMETER}
    return found | ({USERS: USERS_PARAMETER} if makes_users(spec, id) else {})


def validator_secrets(spec: AwsSpec) -> dict[str, str]:
    """The same for the validator in the VPC, below its own folder."""
    return {} if spec.security is None else {VALIDATOR_FILE: VALIDATOR_PARAMETER}
