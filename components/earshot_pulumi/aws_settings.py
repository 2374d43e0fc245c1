"""The `aws:` settings of a stack, for all resources that reach AWS as the stack does.

Pulumi gives a provider its own settings alone, so they are an input of these resources.
"""

import json
from collections.abc import Mapping
from typing import Any

import pulumi

from earshot_pulumi.provider.internal import InternalKind
from earshot_pulumi.provider.kind import Difference, Operation, Properties

KEYS = {
    "profile_name": "aws:profile",
    "aws_access_key_id": "aws:accessKey",
    "aws_secret_access_key": "aws:secretKey",
    "aws_session_token": "aws:token",
}
"""The setting by parameter of a boto3 session."""
ENDPOINTS = "aws:endpoints"
_VARIABLES = {
    "AWS_PROFILE": "aws:profile",
    "AWS_ACCESS_KEY_ID": "aws:accessKey",
    "AWS_SECRET_ACCESS_KEY": "aws:secretKey",
    "AWS_SESSION_TOKEN": "aws:token",
    "AWS_REGION": "aws:region",
}
SETTINGS = "settings"
"""The input with the stack's `aws:` settings."""


class StackSettings:
    """The `aws:` settings of the running program's stack, or of a provider of its own."""

    def __init__(self, own: Mapping[str, Any] | None = None) -> None:
        """``own`` are the settings of an `aws.Provider`; None means the stack's."""
        self._own = own

    def get(self, key: str) -> Any:
        if self._own is None:
            return pulumi.runtime.get_config(key)
        return self._own.get(key.removeprefix("aws:"))

    def to_props(self) -> Properties:
        """The input `SETTINGS`, a secret; none where the stack sets nothing."""
        names = (*KEYS.values(), *_VARIABLES.values(), ENDPOINTS)
        found = {name: value for name in names if (value := self.get(name))}
        return {SETTINGS: pulumi.Output.secret(found)} if found else {}


class AwsKind(InternalKind):
    """A kind that calls AWS as the stack does, with `SETTINGS` among its inputs."""

    def check(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        operation.config[_key(operation)] = news.get(SETTINGS) or {}
        return super().check(operation, olds, news)

    def diff(self, operation: Operation, id: str, olds: Properties, news: Properties) -> Difference:
        if _key(operation) not in operation.config:
            # a refresh, which checks nothing before: it has read nothing, and credentials in the
            # state may have expired
            return Difference(False)
        return super().diff(operation, id, olds, news)

    def settings(self, operation: Operation, olds: Properties | None = None) -> Mapping[str, Any]:
        """The stack's `aws:` settings; in a destroy, which checks nothing, those in ``olds``."""
        known = (olds or {}).get(SETTINGS) or operation.config
        found: Mapping[str, Any] = operation.config.get(_key(operation), known)
        return found


def _key(operation: Operation) -> str:
    """Clusters of one program may have different providers."""
    return f"{SETTINGS} {operation.urn}"


def endpoint(config: Any, service: str) -> str | None:
    """The endpoint of ``service``, if the stack sets one."""
    setting = config.get(ENDPOINTS)
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
