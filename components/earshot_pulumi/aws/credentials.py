"""Calls of AWS outside Pulumi, with the credentials and endpoints in a stack's `aws:` settings.

Other settings come from the environment, as for Pulumi's own provider.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pulumi

from earshot.aws_client import NotMade, new_client
from earshot.errors import EarshotError
from earshot_pulumi.aws.reports import AT_ONCE, Read
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
"""The input with the stack's `aws:` settings: Pulumi gives a provider its own settings alone."""


class StackSettings:
    """The `aws:` settings of the running program's stack."""

    def get(self, key: str) -> Any:
        return pulumi.runtime.get_config(key)

    def to_props(self) -> Properties:
        """The input `SETTINGS`, a secret; none where the stack sets nothing."""
        names = (*KEYS.values(), *_VARIABLES.values(), ENDPOINTS)
        found = {name: value for name in names if (value := self.get(name))}
        return {SETTINGS: pulumi.Output.secret(found)} if found else {}


class AwsKind(InternalKind):
    """A kind that calls AWS as the stack does, with `SETTINGS` among its inputs."""

    def check(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        operation.config[SETTINGS] = news.get(SETTINGS) or {}
        return super().check(operation, olds, news)

    def diff(self, operation: Operation, id: str, olds: Properties, news: Properties) -> Difference:
        if SETTINGS not in operation.config:
            # a refresh, which checks nothing before: it has read nothing, and credentials in the
            # state may have expired
            return Difference(False)
        return super().diff(operation, id, olds, news)

    def settings(self, operation: Operation, olds: Properties | None = None) -> Mapping[str, Any]:
        """The stack's `aws:` settings; in a destroy, which checks nothing, those in ``olds``."""
        known = (olds or {}).get(SETTINGS) or operation.config
        found: Mapping[str, Any] = operation.config.get(SETTINGS, known)
        return found


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


def client(config: Any, region: str, service: str = "ssm") -> Any:
    """boto3's client of ``service`` in ``region``. Raises EarshotError.

    Credentials and endpoints are those of the stack's `aws:` settings, or else of the environment,
    as for Pulumi's own provider.
    """
    given = {name: value for name, key in KEYS.items() if (value := config.get(key))}
    try:
        return new_client(service, region, endpoint(config, service), attempts=5, **given)
    except NotMade as reason:
        raise _unreachable(region, reason) from None


def reader(config: Any, region: str) -> Read:
    """A function that reads parameters in ``region``, SecureStrings too.

    It raises EarshotError where AWS does not answer.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    ssm = client(config, region)

    def read(names: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        try:
            for first in range(0, len(names), AT_ONCE):
                some = list(names[first : first + AT_ONCE])
                answer = ssm.get_parameters(Names=some, WithDecryption=True)
                found |= {item["Name"]: item["Value"] for item in answer["Parameters"]}
        except (BotoCoreError, ClientError) as reason:
            raise _unreachable(region, reason) from None
        return found

    return read


def history(config: Any, region: str, names: Sequence[str]) -> Iterator[str]:
    """The values that each of the parameters ``names`` in ``region`` has had; none of one that is
    not there. Raises EarshotError where AWS does not answer."""
    from botocore.exceptions import BotoCoreError, ClientError

    ssm = client(config, region)
    for name in names:
        try:
            for page in ssm.get_paginator("get_parameter_history").paginate(Name=name):
                yield from (item["Value"] for item in page["Parameters"])
        except ssm.exceptions.ParameterNotFound:
            continue
        except (BotoCoreError, ClientError) as reason:
            raise _unreachable(region, reason, "ssm:GetParameterHistory") from None


def _unreachable(region: str, reason: Exception, call: str = "ssm:GetParameters") -> EarshotError:
    return EarshotError(
        f"SSM parameters in {region}",
        observed=f"cannot be read: {' '.join(str(reason).split())}",
        remedy=f"see that these credentials may call {call}, and run the same command again",
    )
