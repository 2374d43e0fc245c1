"""Creates clients of AWS services, with the environment's credentials."""

from typing import Any, Final

AwsClient = Any
"""A client of boto3, which has no types: its methods are the operations of its service."""
SECONDS: Final = 20
"""Time limit for one call."""


class NotMade(Exception):
    """A client cannot be created here, or for this region; the argument is botocore's reason."""


def new_client(
    service: str, region: str, endpoint: str | None = None, attempts: int = 4, **session: Any
) -> AwsClient:
    """boto3's client of ``service``. Raises NotMade, and ModuleNotFoundError without boto3.

    ``session`` are parameters of a boto3 session; the environment provides the others.
    """
    import boto3  # slow to import
    from botocore.client import Config
    from botocore.exceptions import BotoCoreError

    config = Config(
        connect_timeout=SECONDS,
        read_timeout=SECONDS,
        retries={"total_max_attempts": attempts, "mode": "standard"},
    )
    try:
        return boto3.Session(**session).client(
            service, region_name=region or None, endpoint_url=endpoint, config=config
        )
    except (BotoCoreError, ValueError) as reason:
        raise NotMade(reason) from None
