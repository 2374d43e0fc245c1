"""What a plan holds of `security`, alike on all placements."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from earshot.config.security import SecuritySpec
from earshot.listeners.model import SecurityPlan
from earshot.listeners.security import NODE, principal
from earshot.placement.given import unit_of

if TYPE_CHECKING:
    from earshot.certificates.given import GivenNode


def security_plan(
    security: SecuritySpec | None,
    root: Path,
    folder: str,
    given: Mapping[int, GivenNode],
    *,
    slow_aes: bool = False,
) -> SecurityPlan | None:
    """Nodes with their files in ``folder``; None without ``security``.

    ``root`` is the folder of the stack's cluster on this machine. ``given`` are, by node id, the
    certificates that others have made; none where the stack makes the keys. ``slow_aes``:
    nodes take long for AES.
    """
    if security is None:
        return None
    principals = [it.principal for it in given.values()]
    if security.tls.private_ca:
        principals = [principal(NODE, unit_of(security.tls.private_ca, root))]
    return SecurityPlan(
        folder=folder,
        mechanism=security.mechanism,
        principals=tuple(dict.fromkeys(principals)),
        authorities=security.tls.authorities,
        slow_aes=slow_aes,
    )
