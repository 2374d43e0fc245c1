"""pulumi-aws warns of its own outdated parts when they are loaded, which is on their first use."""

from __future__ import annotations

from tests.components.aws.conftest import LOADED

__all__ = ["LOADED"]
