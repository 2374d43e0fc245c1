"""Texts that lie in SSM parameters and secrets of Secrets Manager.

They are read with whatever credentials the environment names, in AWS's own ways:
https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from earshot.certificates.places import SECRETS, SSM
from earshot.errors import EarshotError

AT_ONCE: Final = 10
"""Parameters that SSM gives out by one call."""
SECONDS: Final = 20
"""For one call."""
_ABSENT: Final = "ResourceNotFoundException"
_REMEDIES: Final = {
    ("AccessDenied", "DecryptionFailure"): (
        "let these credentials call ssm:GetParameters or secretsmanager:GetSecretValue for it, and "
        "kms:Decrypt where a key of your own encrypts it"
    ),
    ("Throttl", "TooManyRequests", "RequestLimit"): (
        "run the same command again in a minute: AWS refuses more calls for now"
    ),
    ("Credential", "Token", "Profile", "UnrecognizedClient", "InvalidSignature", "SSO"): (
        "give the environment credentials that are valid (AWS_PROFILE, or another of AWS's own "
        "ways)"
    ),
    ("NoRegion",): (
        "name the region as security.tls.from.region, in AWS_DEFAULT_REGION or in the profile"
    ),
    ("",): "see that this machine reaches AWS, and that region and credentials are the right ones",
}
"""By a part of the error's code."""


@dataclass(frozen=True)
class Text:
    """What lies in a place."""

    content: bytes = field(repr=False)
    encrypted: bool
    """Whether the service keeps it so."""


@functools.cache
def read_in_aws(places: tuple[str, ...], region: str) -> Mapping[str, Text]:
    """What lies in each of ``places``, read once per process.

    ``region`` may be empty, for the environment's own. Raises EarshotError.
    """
    parameters = [it for it in places if it.startswith(SSM)]
    held: dict[str, Text] = {}
    if parameters:
        with _client("ssm", parameters, region) as ssm:
            for first in range(0, len(parameters), AT_ONCE):
                held |= _parameters(ssm, parameters[first : first + AT_ONCE])
    secrets = [it for it in places if it.startswith(SECRETS)]
    if secrets:
        with _client("secretsmanager", secrets, region) as manager:
            held |= {place: _secret(manager, place) for place in secrets}
    return held


@contextmanager
def _client(service: str, places: Sequence[str], region: str) -> Iterator[Any]:
    try:
        import boto3  # slow to import
        from botocore.client import Config
        from botocore.exceptions import BotoCoreError
    except ModuleNotFoundError:
        raise EarshotError(
            _named(places),
            observed="cannot be read: boto3 is not installed",
            remedy="pip install 'earshot[aws]'",
        ) from None
    config = Config(
        connect_timeout=SECONDS,
        read_timeout=SECONDS,
        retries={"total_max_attempts": 4, "mode": "standard"},
    )
    try:
        made = boto3.Session().client(service, region_name=region or None, config=config)
    except (BotoCoreError, ValueError) as reason:
        raise _failed(places, reason) from None
    try:
        yield made
    finally:
        made.close()


def _parameters(ssm: Any, places: Sequence[str]) -> dict[str, Text]:
    names = {place.removeprefix(SSM): place for place in places}
    answer = _answer(places, ssm.get_parameters, Names=list(names), WithDecryption=True)
    held: dict[str, Text] = {}
    for item in answer["Parameters"]:
        text = Text(item["Value"].encode(), item["Type"] == "SecureString")
        selector = item.get("Selector", "")  # the `:3` of a version, which `Name` is without
        asked = (f"{it}{selector}" for it in (item["Name"], item.get("ARN")))
        held |= {names[name]: text for name in asked if name in names}
    missing = [place for place in places if place not in held]
    if missing:
        raise _absent(missing, ssm)
    return held


def _secret(manager: Any, place: str) -> Text:
    name = place.removeprefix(SECRETS)
    answer = _answer([place], manager.get_secret_value, SecretId=name)
    if answer is None:
        raise _absent([place], manager)
    if "SecretString" not in answer:
        raise EarshotError(
            place, observed="is a binary secret", allowed="one that holds a text, as PEM is"
        )
    return Text(answer["SecretString"].encode(), True)


def _answer(places: Sequence[str], call: Any, **given: Any) -> Any:
    """What ``call`` answers; None where there is no such thing. Raises EarshotError."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return call(**given)
    except ClientError as reason:
        if reason.response["Error"]["Code"] == _ABSENT:
            return None
        raise _failed(places, reason) from None
    except BotoCoreError as reason:
        raise _failed(places, reason) from None


def _absent(places: Sequence[str], client: Any) -> EarshotError:
    return EarshotError(
        _named(places),
        observed=f"not found in {client.meta.region_name} with these credentials",
        remedy="put it there, or correct security.tls.from or its region",
    )


def _failed(places: Sequence[str], reason: Exception) -> EarshotError:
    response = getattr(reason, "response", None) or {}
    code = response.get("Error", {}).get("Code") or type(reason).__name__
    return EarshotError(
        _named(places),
        observed=f"cannot be read: {' '.join(str(reason).split())}",
        remedy=next(it for parts, it in _REMEDIES.items() if any(part in code for part in parts)),
    )


def _named(places: Sequence[str]) -> str:
    first, *others = places
    return f"{first} and {len(others)} more" if others else first
