"""Reads texts from SSM parameters and secrets of Secrets Manager."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from earshot.aws_client import AwsClient
from earshot.certificates.aws_calls import absent, answer, client
from earshot.certificates.places import SECRETS, SSM
from earshot.errors import EarshotError

AT_ONCE: Final = 10
"""Maximum number of parameters in one call of SSM."""
_DECRYPT: Final = ", and kms:Decrypt where a key of your own encrypts it"


@dataclass(frozen=True)
class StoredText:
    """The text at a place."""

    content: bytes = field(repr=False)
    encrypted: bool
    """True if the service stores it encrypted."""


@functools.cache
def read_in_aws(places: tuple[str, ...], region: str) -> Mapping[str, StoredText]:
    """The text at each of ``places``, read once per process.

    An empty ``region`` means the environment's. Raises EarshotError.
    """
    parameters = [place for place in places if place.startswith(SSM)]
    texts: dict[str, StoredText] = {}
    if parameters:
        with client("ssm", _places_text(parameters), region) as ssm:
            for start in range(0, len(parameters), AT_ONCE):
                texts |= _parameters(ssm, parameters[start : start + AT_ONCE])
    secrets = [place for place in places if place.startswith(SECRETS)]
    if secrets:
        with client("secretsmanager", _places_text(secrets), region) as manager:
            texts |= {place: _secret(manager, place) for place in secrets}
    return texts


def _parameters(ssm: AwsClient, places: Sequence[str]) -> dict[str, StoredText]:
    names = {place.removeprefix(SSM): place for place in places}
    permissions = f"ssm:GetParameters{_DECRYPT}"
    arguments = {"Names": list(names), "WithDecryption": True}
    response = answer(_places_text(places), permissions, ssm.get_parameters, **arguments)
    texts: dict[str, StoredText] = {}
    for parameter in response["Parameters"]:
        text = StoredText(parameter["Value"].encode(), parameter["Type"] == "SecureString")
        selector = parameter.get("Selector", "")  # the `:3` of a version, which `Name` lacks
        aliases = (f"{name}{selector}" for name in (parameter["Name"], parameter.get("ARN")))
        texts |= {names[name]: text for name in aliases if name in names}
    missing_places = [place for place in places if place not in texts]
    if missing_places:
        raise absent(_places_text(missing_places), ssm.meta.region_name)
    return texts


def _secret(manager: AwsClient, place: str) -> StoredText:
    permissions = f"secretsmanager:GetSecretValue{_DECRYPT}"
    name = place.removeprefix(SECRETS)
    response = answer(place, permissions, manager.get_secret_value, SecretId=name)
    if "SecretString" not in response:
        allowed = "one that holds a text, as PEM is"
        raise EarshotError(place, observed="is a binary secret", allowed=allowed)
    return StoredText(response["SecretString"].encode(), True)


def _places_text(places: Sequence[str]) -> str:
    first_place, *other_places = places
    return f"{first_place} and {len(other_places)} more" if other_places else first_place
