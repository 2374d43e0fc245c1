"""The brokers of an `AwsCluster`: its own module, as it needs Pulumi's AWS SDK."""

from collections.abc import Mapping
from typing import Any

import pulumi

from earshot.config.aws import AwsSpec
from earshot_pulumi.aws.cluster import Cluster
from earshot_pulumi.aws.node import InstanceNode
from earshot_pulumi.aws.reports import Awaited
from earshot_pulumi.package.patience import in_sync
from earshot_pulumi.properties import read


class Brokers(Cluster):
    """A cluster whose construction waits for its readiness.

    It has no resources of earshot's own, so nothing remembers the last run. Nothing refuses
    other voters, the removal of a broker with replicas, or a node's move out of its volume's zone.
    """

    served: pulumi.Output[None]
    """Known once all nodes are in sync."""

    def __init__(
        self, name: str, spec: AwsSpec, policy: Mapping[str, Any], opts: pulumi.ResourceOptions
    ) -> None:
        super().__init__(name, spec, policy, opts)
        self.served = self._in_sync(list(self.nodes.values()), whole=True)
        self.register_outputs({"incarnations": self.incarnations})

    def _once_ready(self, node: InstanceNode) -> pulumi.Output[Any]:
        return self._in_sync([node], whole=False)

    def _in_sync(self, nodes: list[InstanceNode], *, whole: bool) -> pulumi.Output[None]:
        deployed = [
            pulumi.Output.all(attachment=node.attachment.id, **node.awaited) for node in nodes
        ]
        return pulumi.Output.all(*deployed).apply(
            lambda found: in_sync(
                [read(Awaited, item) for item in found],
                [self._parameter(id) for id in self._spec.controller_ids if self._spec.in_turn],
                self._spec.region,
                self._deadline,
                whole=whole,
            )
        )
