"""Adds `security` to a plan, with node certificates that were issued elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from earshot.certificates.places import is_in_aws, parts_of_ca
from earshot.certificates.shown import ShownCertificate
from earshot.config.security import SecuritySpec
from earshot.files.stack_files import project_of
from earshot.listeners.model import ClusterPlan, SecurityPlan
from earshot.listeners.security import NODE, NODES, principal

if TYPE_CHECKING:
    from earshot.certificates.node_pem import Files, NodeCertificate

_UNIT = 64
"""The maximum length of an organizational unit in a certificate (RFC 5280, appendix A)."""


def files_of(security: SecuritySpec, root: Path) -> Files | None:
    """The locations of the user's certificate files; None if the stack creates the keys.

    ``root`` is the folder of the stack's cluster. Relative paths start at its project.
    """
    files = security.tls.files
    if files is None or files.private_ca:
        return None
    from earshot.certificates.node_pem import Files  # slow to import

    project = project_of(root)

    def location(place: str) -> str:
        return place if not place or is_in_aws(place) else str(project / place)

    return Files(
        location(files.certificate),
        location(files.key or files.certificate),
        location(files.authority),
        location(files.password),
        files.region,
    )


def unit_of(private_ca: str, root: Path) -> str:
    """The organizational unit in node certificates, by which Kafka identifies nodes.

    A private CA may also issue certificates for other stacks. Therefore the unit contains the CA's
    id and the stack's name; ``root`` is the folder of the stack's cluster.
    """
    if not private_ca:
        return NODES
    return f"nodes by {parts_of_ca(private_ca)[2][:8]} of {root.parent.name}"[:_UNIT]


@dataclass(frozen=True)
class SecuredPlan:
    """A plan with `security`."""

    plan: ClusterPlan
    node_certificates: Mapping[int, NodeCertificate]
    """The certificates that were issued elsewhere, by node id."""

    @property
    def certificates(self) -> dict[int, ShownCertificate]:
        """The certificates that were issued elsewhere, without keys, by node id."""
        return {id: node.shown for id, node in self.node_certificates.items()}

    @property
    def notes(self) -> tuple[str, ...]:
        """A note about the first certificate to expire, or no note."""
        if not self.node_certificates:
            return ()
        node, first_to_expire = min(self.certificates.items(), key=lambda entry: entry[1].not_after)
        last_day = f"{first_to_expire.not_after:%Y-%m-%d}"
        return (f"certificates of others: that of node {node} expires first, on {last_day}",)


def secured(
    plan: ClusterPlan,
    security: SecuritySpec | None,
    root: Path,
    folder: str,
    *,
    slow_aes: bool = False,
) -> SecuredPlan:
    """``plan`` with ``security``; unchanged if that is None.

    ``folder`` is the nodes' folder for their files. ``root`` is the folder of the stack's cluster
    on this machine. ``slow_aes`` is True if AES is slow on the nodes. Raises EarshotError if
    certificates of others cannot be read or used.
    """
    if security is None:
        return SecuredPlan(plan, {})
    node_certificates: Mapping[int, NodeCertificate] = {}
    if (files := files_of(security, root)) is not None:
        from earshot.certificates.node_pem import read_certificates

        node_certificates = read_certificates(files, [node.id for node in plan.nodes]).nodes
    principals = [node.principal for node in node_certificates.values()]
    if security.tls.private_ca:
        principals = [principal(NODE, unit_of(security.tls.private_ca, root))]
    security_plan = SecurityPlan(
        folder=folder,
        mechanism=security.mechanism,
        principals=tuple(dict.fromkeys(principals)),
        authorities=security.tls.authorities,
        slow_aes=slow_aes,
    )
    return SecuredPlan(plan.model_copy(update={"security": security_plan}), node_certificates)
