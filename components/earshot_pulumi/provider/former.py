"""Resources in states that Pulumi's dynamic providers wrote, until an update renames their types.

A refresh reads them, and a destroy deletes them, before any program has run. The plugin does it in
the place of `pulumi-python`, whose classes no longer exist.
"""

from __future__ import annotations

from earshot_pulumi.provider.internal import DYNAMIC, InternalKind
from earshot_pulumi.provider.kind import Difference, Kind, Operation, Properties

KINDS = {
    "AwsGround": "ChangePreflight",
    "CompleteChange": "ProvedChange",
    "DockerGround": "EnginePreflight",
    "LocalGround": "LocalPreflight",
    "Users": "LocalUsers",
}
"""Today's names of types that are called otherwise now; no placement deletes users."""
GONE = ("AwsPreflight", "ClusterIdentity", "DockerPreflight", "GateApproval", "GateSeal")
"""Types that no resource has any more; there is nothing to do where an update deletes one."""


class FormerKind(InternalKind):
    """Reads and deletes as ``kind`` does."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self.interrupted = kind.interrupted

    def diff(self, operation: Operation, id: str, olds: Properties, news: Properties) -> Difference:
        return Difference(False)  # a refresh; an update compares under the type of today

    def read(self, operation: Operation, id: str, olds: Properties) -> Properties | None:
        return self._kind.read(operation, id, olds)

    def delete(self, operation: Operation, id: str, olds: Properties) -> None:
        self._kind.delete(operation, id, olds)


def name_of(token: str) -> str | None:
    """The name of a dynamic resource's type; None for other types."""
    return token.removeprefix(f"{DYNAMIC}:") if token.startswith(f"{DYNAMIC}:") else None
