"""Certificates of nodes that others have made: where a stack file says that they lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from earshot.certificates.places import is_in_aws
from earshot.config.security import SecuritySpec
from earshot.stack_files import project_of

if TYPE_CHECKING:
    from earshot.certificates.given import Files, GivenNode
    from earshot.certificates.shown import ShownCertificate


def files_of(security: SecuritySpec | None, root: Path) -> Files | None:
    """Where they lie; None where the stack issues certificates itself.

    ``root`` is the folder of the stack's cluster, and relative paths start at its project.
    """
    named = security.tls.files if security is not None else None
    if named is None:
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
    """Those of ``nodes``; none where the stack issues certificates itself.

    Raises EarshotError where they cannot be read or used.
    """
    files = files_of(security, root)
    if files is None:
        return {}
    from earshot.certificates.given import read_given

    return read_given(files, nodes).nodes


def expiry_note(shown: Mapping[int, ShownCertificate]) -> tuple[str, ...]:
    """Which of them ends first, and when; nothing where there are none."""
    if not shown:
        return ()
    node, first = min(shown.items(), key=lambda item: item[1].not_after)
    return (
        f"certificates of others: that of node {node} ends first, on {first.not_after:%Y-%m-%d}",
    )
