"""Reads and deletes resources in states of earlier releases, which used dynamic providers.

An update renames their types. A refresh or a destroy before that update runs no program, and reads
or deletes the resources by their former types. This plugin replaces `pulumi-python`, whose classes
no longer exist.
"""

from earshot_pulumi.provider.kind import Difference, Kind, Operation, Properties
from earshot_pulumi.provider.resource import DYNAMIC

KINDS = {
    "AwsGround": "ChangePreflight",
    "CompleteChange": "ProvedChange",
    "DockerGround": "EnginePreflight",
    "LocalGround": "LocalPreflight",
    "Users": "LocalUsers",
}
"""Current names of types by former name. `Users` may be of any placement: no placement deletes
users."""
GONE = ("AwsPreflight", "ClusterIdentity", "DockerPreflight", "GateApproval", "GateSeal")
"""Former types without a current one; their deletion does nothing."""


class FormerKind(Kind):
    """Reads and deletes a former resource by its current ``kind``."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self.interrupted = kind.interrupted

    def diff(self, operation: Operation, olds: Properties, news: Properties) -> Difference:
        return Difference(False)  # called by a refresh; an update compares by the current type

    def read(self, operation: Operation, olds: Properties) -> Properties | None:
        return self._kind.read(operation, olds)

    def delete(self, operation: Operation, olds: Properties) -> None:
        self._kind.delete(operation, olds)


def name_of(token: str) -> str | None:
    """The name of a dynamic resource's type; None for other types."""
    return token.removeprefix(f"{DYNAMIC}:") if token.startswith(f"{DYNAMIC}:") else None
