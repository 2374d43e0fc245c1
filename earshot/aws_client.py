"""Clients of AWS's services, with whatever credentials the environment names."""

from typing import Any, Final

SECONDS: Final = 20
"""For one call."""


class NotMade(Exception):
    """The environment or the region allows no client; its argument is botocore's reason."""


def new_client(
    service: str, region: str, endpoint: str | None = None, attempts: int = 4, **session: Any
) -> Any:
    """boto3's client of ``service``; raises NotMade, and ModuleNotFoundError without boto3.

    What ``session`` does not give, parameters of a boto3 session, the environment gives.
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
