"""What a plan holds of `security`, alike on all placements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from earshot.config.security import SecuritySpec
from earshot.listeners.model import SecurityPlan

if TYPE_CHECKING:
    from earshot.certificates.given import GivenNode


def security_plan(
    security: SecuritySpec | None,
    folder: str,
    given: Mapping[int, GivenNode],
    *,
    slow_aes: bool = False,
) -> SecurityPlan | None:
    """Nodes with their files in ``folder``; None without ``security``.

    ``given`` are, by node id, the certificates that others have made; none where the stack issues
    them. ``slow_aes``: nodes take long for AES.
    """
    if security is None:
        return None
    return SecurityPlan(
        folder=folder,
        mechanism=security.mechanism,
        principals=tuple(dict.fromkeys(it.principal for it in given.values())),
        authorities=security.tls.authorities,
        slow_aes=slow_aes,
    )
