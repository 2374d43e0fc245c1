"""Certificates of nodes that others have made: where a stack file says that they lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from earshot.certificates.places import is_in_aws, parts_of_ca
from earshot.config.security import SecuritySpec
from earshot.listeners.security import NODES
from earshot.stack_files import project_of

if TYPE_CHECKING:
    from earshot.certificates.given import Files, GivenNode
    from earshot.certificates.shown import ShownCertificate

_UNIT = 64
"""Characters that a certificate has room for (RFC 5280, appendix A)."""


def files_of(security: SecuritySpec | None, root: Path) -> Files | None:
    """Where they lie; None where the stack makes the keys itself.

    ``root`` is the folder of the stack's cluster, and relative paths start at its project.
    """
    named = security.tls.files if security is not None else None
    if named is None or named.private_ca:
        return None
    from earshot.certificates.given import Files  # slow to import

    project = project_of(root)

    def found(place: str) -> str:
        return place if not place or is_in_aws(place) else str(project / place)

    return Files(
        found(named.certificate),
        found(named.key or named.certificate),
        found(named.authority),
        found(named.password),
        named.region,
    )


def given_certificates(
    security: SecuritySpec | None, root: Path, nodes: Iterable[int]
) -> Mapping[int, GivenNode]:
    """Those of ``nodes``; none where the stack makes the keys itself.

    Raises EarshotError where they cannot be read or used.
    """
    files = files_of(security, root)
    if files is None:
        return {}
    from earshot.certificates.given import read_given

    return read_given(files, nodes).nodes


def unit_of(private_ca: str, root: Path) -> str:
    """The unit in certificates of nodes, by which Kafka knows them.

    A private CA may issue for others, too: so it has the stack's name, for which ``root`` is the
    folder of the cluster, and which CA it is.
    """
    if not private_ca:
        return NODES
    return f"nodes by {parts_of_ca(private_ca)[2][:8]} of {root.parent.name}"[:_UNIT]


def expiry_note(shown: Mapping[int, ShownCertificate]) -> tuple[str, ...]:
    """Which of them ends first, and when; nothing where there are none."""
    if not shown:
        return ()
    node, first = min(shown.items(), key=lambda item: item[1].not_after)
    return (
        f"certificates of others: that of node {node} ends first, on {first.not_after:%Y-%m-%d}",
    )
