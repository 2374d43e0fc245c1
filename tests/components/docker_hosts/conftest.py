"""The doubles that Docker hosts share with their placements."""

from tests.components.aws.conftest import ssm

__all__ = ["ssm"]
