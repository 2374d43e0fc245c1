"""The `aws:` settings of a stack, for all resources that call AWS with them.

Pulumi gives a provider only its own settings, so they are an input of these resources.
"""

import json
from collections.abc import Mapping
from typing import Any, Protocol

import pulumi

from earshot_pulumi.provider.kind import Difference, Inputs, Kind, Operation, Properties

KEYS = {
    "profile_name": "aws:profile",
    "aws_access_key_id": "aws:accessKey",
    "aws_secret_access_key": "aws:secretKey",
    "aws_session_token": "aws:token",
}
"""Settings by parameter of a boto3 session."""
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


class AwsSettings(Protocol):
    """`aws:` settings by key: a stack's, or the input `SETTINGS` of a resource."""

    def get(self, key: str, /) -> Any: ...


class StackSettings:
    """The `aws:` settings of the program's stack, or of the program's own provider."""

    def __init__(self, provider_settings: Inputs | None = None) -> None:
        """``provider_settings`` are those of an `aws.Provider`; None means the stack's."""
        self._provider_settings = provider_settings

    def get(self, key: str) -> Any:
        if self._provider_settings is None:
            return pulumi.runtime.get_config(key)
        return self._provider_settings.get(key.removeprefix("aws:"))

    def to_props(self) -> Properties:
        """The input `SETTINGS`, a secret; empty if the stack has no such settings."""
        names = (*KEYS.values(), *_VARIABLES.values(), ENDPOINTS)
        settings = {name: value for name in names if (value := self.get(name))}
        return {SETTINGS: pulumi.Output.secret(settings)} if settings else {}


class AwsKind(Kind):
    """A kind that calls AWS with the stack's settings, its input `SETTINGS`."""

    def check(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        operation.config[_key(operation)] = news.get(SETTINGS) or {}
        return super().check(operation, olds, news)

    def diff(self, operation: Operation, olds: Properties, news: Properties) -> Difference:
        if _key(operation) not in operation.config:
            # a refresh calls no check before, and credentials in the state may have expired
            return Difference(False)
        return super().diff(operation, olds, news)

    def settings(self, operation: Operation, olds: Properties | None = None) -> Inputs:
        """The stack's `aws:` settings; in a destroy, which calls no check, those in ``olds``."""
        default = (olds or {}).get(SETTINGS) or operation.config
        settings: Inputs = operation.config.get(_key(operation), default)
        return settings


def _key(operation: Operation) -> str:
    """The key of a resource's settings, as clusters of one program may have different providers."""
    return f"{SETTINGS} {operation.urn}"


def endpoint(config: AwsSettings, service: str) -> str | None:
    """The endpoint of ``service``, if the stack sets one."""
    setting = config.get(ENDPOINTS)
    endpoint_maps = json.loads(setting) if isinstance(setting, str) else setting or []
    urls = [
        urls_by_service[service] for urls_by_service in endpoint_maps if service in urls_by_service
    ]
    return str(urls[-1]) if urls else None


def environment(config: AwsSettings, inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment ``inherited``, with the stack's settings for a command that uses S3."""
    variables = dict(inherited)
    if config.get("aws:accessKey"):
        variables.pop("AWS_SESSION_TOKEN", None)  # belongs to other credentials
    variables |= {
        name: str(value) for name, key in _VARIABLES.items() if (value := config.get(key))
    }
    if (url := endpoint(config, "s3")) is not None:
        variables["AWS_ENDPOINT_URL_S3"] = url
    return variables
