"""Clusters of placement aws for the tests of several packages."""

from typing import Any

from pydantic import ValidationError

from earshot.config.aws import AwsSpec
from earshot.listeners.problems import describe

REGION = "eu-central-1"
ZONES = [f"{REGION}a", f"{REGION}b", f"{REGION}c"]
ARCHIVE = {"url": "https://archive.example/kafka_2.13-4.1.1.tgz", "sha512": "0123456789abcdef" * 8}
INTERNAL = {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]}
EXTERNAL = {"name": "EXTERNAL", "port": 9092, "scopes": ["external"], "protocol": "SSL"}
BOTH = {"name": "PLAINTEXT", "port": 9092, "scopes": ["internal", "external"]}
OFFICE = {"ranges": {"office": "203.0.113.0/24"}}

TWO_LISTENERS: dict[str, Any] = {"listeners": [INTERNAL, EXTERNAL], "clients": OFFICE}
"""The internal and the external scope on a listener each."""
ONE_LISTENER: dict[str, Any] = {
    "listeners": [BOTH],
    "clients": OFFICE,
    "clear_text": {"PLAINTEXT": "a trial without data"},
}
"""Both scopes on one listener that advertises the external name."""
OWN_ZONE: dict[str, Any] = {
    "naming": "zone",
    "zone": {"name": "kafka.example.com", "public_zone_id": "Z0123456789ABC"},
}


def document(**rest: Any) -> dict[str, Any]:
    return {
        "placement": "aws",
        "region": REGION,
        "vpc": {"zones": ZONES},
        "archive": ARCHIVE,
        **rest,
    }


def read_aws(**rest: Any) -> AwsSpec:
    """The smallest cluster, with the keys of ``rest``."""
    return AwsSpec.model_validate(document(**rest))


def refused(**rest: Any) -> list[str]:
    """The problems of a cluster that cannot be read, one line each."""
    cluster = document(**rest)
    try:
        AwsSpec.model_validate(cluster)
    except ValidationError as error:
        return describe(error, AwsSpec, cluster)
    raise AssertionError("nothing was refused")
