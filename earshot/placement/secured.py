"""What a plan holds of `security`, and the certificates of nodes that others have made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from earshot.certificates.places import is_in_aws, parts_of_ca
from earshot.certificates.shown import ShownCertificate
from earshot.config.security import SecuritySpec
from earshot.listeners.model import ClusterPlan, SecurityPlan
from earshot.listeners.security import NODE, NODES, principal
from earshot.stack_files import project_of

if TYPE_CHECKING:
    from earshot.certificates.given import Files, GivenNode

_UNIT = 64
"""Characters that a certificate has room for (RFC 5280, appendix A)."""


def files_of(security: SecuritySpec, root: Path) -> Files | None:
    """Where they lie; None where the stack makes the keys itself.

    ``root`` is the folder of the stack's cluster, and relative paths start at its project.
    """
    files = security.tls.files
    if files is None or files.private_ca:
        return None
    from earshot.certificates.given import Files  # slow to import

    project = project_of(root)

    def found(place: str) -> str:
        return place if not place or is_in_aws(place) else str(project / place)

    return Files(
        found(files.certificate),
        found(files.key or files.certificate),
        found(files.authority),
        found(files.password),
        files.region,
    )


def unit_of(private_ca: str, root: Path) -> str:
    """The unit in certificates of nodes, by which Kafka knows them.

    A private CA may issue for others, too: so it has the stack's name, for which ``root`` is the
    folder of the cluster, and which CA it is.
    """
    if not private_ca:
        return NODES
    return f"nodes by {parts_of_ca(private_ca)[2][:8]} of {root.parent.name}"[:_UNIT]


@dataclass(frozen=True)
class Secured:
    """A plan with what it holds of `security`."""

    plan: ClusterPlan
    given: Mapping[int, GivenNode]
    """By node id, the certificates that others have made."""

    @property
    def certificates(self) -> dict[int, ShownCertificate]:
        """By node id, what others have made, without keys."""
        return {id: item.shown for id, item in self.given.items()}

    @property
    def notes(self) -> tuple[str, ...]:
        """Which of them ends first, and when; nothing where there are none."""
        if not self.given:
            return ()
        node, first = min(self.certificates.items(), key=lambda item: item[1].not_after)
        end = f"{first.not_after:%Y-%m-%d}"
        return (f"certificates of others: that of node {node} ends first, on {end}",)


def secured(
    plan: ClusterPlan,
    security: SecuritySpec | None,
    root: Path,
    folder: str,
    *,
    slow_aes: bool = False,
) -> Secured:
    """``plan`` with nodes that have their files in ``folder``; as it is without ``security``.

    ``root`` is the folder of the stack's cluster on this machine; ``slow_aes``: nodes take long for
    AES. Raises EarshotError where certificates of others cannot be read or used.
    """
    if security is None:
        return Secured(plan, {})
    given: Mapping[int, GivenNode] = {}
    if (files := files_of(security, root)) is not None:
        from earshot.certificates.given import read_given

        given = read_given(files, [node.id for node in plan.nodes]).nodes
    principals = [item.principal for item in given.values()]
    if security.tls.private_ca:
        principals = [principal(NODE, unit_of(security.tls.private_ca, root))]
    made = SecurityPlan(
        folder=folder,
        mechanism=security.mechanism,
        principals=tuple(dict.fromkeys(principals)),
        authorities=security.tls.authorities,
        slow_aes=slow_aes,
    )
    return Secured(plan.model_copy(update={"security": made}), given)
