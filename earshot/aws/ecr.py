"""Images in Amazon ECR, by the form of their name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

HELPER: Final = "ecr-login"
"""Docker's name of the credential helper, whose command is `docker-credential-ecr-login`."""
EXAMPLE: Final = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/apache/kafka:4.1.1"
# https://docs.aws.amazon.com/AmazonECR/latest/userguide/docker-pull-ecr-image.html
_IMAGE: Final = re.compile(
    r"(?P<registry>(?P<account>\d{12})\.dkr\.ecr(-fips)?\.(?P<region>[a-z]{2}(-[a-z]+)+-\d)"
    r"\.amazonaws\.com(\.cn)?)"
    r"/(?P<repository>[a-z0-9]+([._/-][a-z0-9]+)*)"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?",
    re.ASCII,
)


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
    """The image ``name``, or None where it is not in a private registry of ECR."""
    found = _IMAGE.fullmatch(name)
    if found is None:
        return None
    parts = found.groupdict()
    return EcrImage(**{key: parts[key] for key in ("registry", "account", "region", "repository")})
