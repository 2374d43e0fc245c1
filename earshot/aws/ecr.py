"""Images in Amazon ECR, by the form of their name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

HELPER: Final = "ecr-login"
"""Docker's name of the credential helper, whose command is `docker-credential-ecr-login`."""
EXAMPLE: Final = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/apache/kafka:4.1.1"
# https://docs.aws.amazon.com/general/latest/gr/ecr.html
_IMAGE: Final = re.compile(
    r"(?P<registry>(?P<account>\d{12})\.dkr(?P<kind>[.-])ecr(-fips)?"
    r"\.(?P<region>[a-z]{2}(-[a-z]+)+-\d)\.(?P<suffix>[a-z.]+))"
    r"/(?P<repository>[a-z0-9]+([._/-][a-z0-9]+)*)"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?",
    re.ASCII,
)
_SUFFIXES: Final = {
    (".", False): "amazonaws.com",
    (".", True): "amazonaws.com.cn",
    ("-", False): "on.aws",
    ("-", True): "on.amazonwebservices.com.cn",
}
"""Domains of IPv4-only (`dkr.ecr`) and dual-stack (`dkr-ecr`) endpoints, elsewhere and in China."""


@dataclass(frozen=True)
class EcrImage:
    """An image in a private registry of ECR."""

    registry: str
    account: str
    region: str
    repository: str

    def repository_arn(self, partition: str) -> str:
        """The ARN of its repository; ``partition`` is `aws`, `aws-cn` or `aws-us-gov`."""
        return f"arn:{partition}:ecr:{self.region}:{self.account}:repository/{self.repository}"


def ecr_image(name: str) -> EcrImage | None:
    """The image ``name``, or None if it is not in a private registry of ECR."""
    match = _IMAGE.fullmatch(name)
    if match is None:
        return None
    parts = match.groupdict()
    if parts["suffix"] != _SUFFIXES[parts["kind"], parts["region"].startswith("cn-")]:
        return None
    return EcrImage(**{key: parts[key] for key in ("registry", "account", "region", "repository")})
