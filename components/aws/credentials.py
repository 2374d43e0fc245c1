"""Credentials and endpoints in a stack's `aws:` settings, for calls of AWS outside Pulumi.

Other settings come from the environment, as for Pulumi's own provider.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pulumi

KEYS = {
    "profile_name": "aws:profile",
    "aws_access_key_id": "aws:accessKey",
    "aws_secret_access_key": "aws:secretKey",
    "aws_session_token": "aws:token",
}
"""The setting by parameter of a boto3 session."""
_VARIABLES = {
    "AWS_PROFILE": "aws:profile",
    "AWS_ACCESS_KEY_ID": "aws:accessKey",
    "AWS_SECRET_ACCESS_KEY": "aws:secretKey",
    "AWS_SESSION_TOKEN": "aws:token",
    "AWS_REGION": "aws:region",
}


class StackSettings:
    """The `aws:` settings of the running program's stack, as dynamic providers are given theirs."""

    def get(self, key: str) -> Any:
        return pulumi.runtime.get_config(key)


def endpoint(config: Any, service: str) -> str | None:
    """The endpoint of ``service``, if the stack sets one."""
    setting = config.get("aws:endpoints")
    listed = json.loads(setting) if isinstance(setting, str) else setting or []
    found = [item[service] for item in listed if service in item]
    return str(found[-1]) if found else None


def environment(config: Any, own: Mapping[str, str]) -> dict[str, str]:
    """The environment ``own``, changed for a command that reaches S3 as the stack does."""
    found = dict(own)
    if config.get("aws:accessKey"):
        found.pop("AWS_SESSION_TOKEN", None)  # of other credentials
    found |= {name: str(value) for name, key in _VARIABLES.items() if (value := config.get(key))}
    if (url := endpoint(config, "s3")) is not None:
        found["AWS_ENDPOINT_URL_S3"] = url
    return found
