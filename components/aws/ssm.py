"""SSM parameters as the stack's own provider settings reach them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from components.aws.reports import AT_ONCE, Read
from earshot.errors import EarshotError

_KEYS = {
    "profile_name": "aws:profile",
    "aws_access_key_id": "aws:accessKey",
    "aws_secret_access_key": "aws:secretKey",
    "aws_session_token": "aws:token",
}
TIMEOUT = 20
"""Seconds for one call."""


def reader(config: Any, region: str) -> Read:
    """Reads parameters in ``region`` with what the stack's `aws:` settings say of credentials and
    endpoints; what they do not say comes from the environment, as for Pulumi's own provider.

    The result raises EarshotError where AWS cannot be asked.
    """
    import boto3  # slow to import
    from botocore.client import Config
    from botocore.exceptions import BotoCoreError, ClientError

    given = {name: value for name, key in _KEYS.items() if (value := config.get(key))}
    try:
        client = boto3.Session(region_name=region, **given).client(
            "ssm",
            endpoint_url=_endpoint(config.get("aws:endpoints")),
            config=Config(
                connect_timeout=TIMEOUT,
                read_timeout=TIMEOUT,
                retries={"total_max_attempts": 5, "mode": "standard"},
            ),
        )
    except BotoCoreError as reason:
        raise _unreachable(region, reason) from None

    def read(names: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        try:
            for first in range(0, len(names), AT_ONCE):
                answer = client.get_parameters(Names=list(names[first : first + AT_ONCE]))
                found |= {item["Name"]: item["Value"] for item in answer["Parameters"]}
        except (BotoCoreError, ClientError) as reason:
            raise _unreachable(region, reason) from None
        return found

    return read


def _endpoint(setting: Any) -> str | None:
    """The endpoint of SSM, where the stack has one of its own."""
    listed = json.loads(setting) if isinstance(setting, str) else setting or []
    found = [item["ssm"] for item in listed if "ssm" in item]
    return found[-1] if found else None


def _unreachable(region: str, reason: Exception) -> EarshotError:
    return EarshotError(
        f"SSM parameters in {region}",
        observed=f"cannot be read: {' '.join(str(reason).split())}",
        remedy="see that these credentials may call ssm:GetParameters, and run the same command "
        "again",
    )
