"""Kafka brokers on AWS, as any program can ask for them.

Pulumi reads the package's schema from the annotations below and in `cluster_args`. They must not be
strings, so both modules do without `from __future__ import annotations`.
"""

from typing import Any

import pulumi

from earshot.config.aws import AwsSpec
from earshot.config.document import read_spec
from earshot.validation.contract import Contract
from earshot_pulumi.aws.cluster import Cluster
from earshot_pulumi.aws.node import InstanceNode
from earshot_pulumi.aws.reports import Awaited
from earshot_pulumi.package.cluster_args import AwsClusterArgs
from earshot_pulumi.package.patience import in_sync
from earshot_pulumi.properties import read

SETTLED = {
    "placement": "aws",
    "gate": "off",
    "prove": "later",
    "validator": False,
    "security": None,
}
"""Parts of the spec that a stack's file may set, but a component's inputs may not."""


class AwsCluster(pulumi.ComponentResource):
    """Kafka brokers as EC2 instances; a change replaces one at a time, as the last is in sync."""

    vpc_id: pulumi.Output[str]
    """The id of the VPC that the nodes stand in."""
    instances: pulumi.Output[dict[str, str]]
    """By node id, the id of its instance."""
    bootstrap: pulumi.Output[dict[str, str]]
    """By listener, the addresses to connect to first; known once all nodes are in sync."""
    contract: pulumi.Output[dict[str, Any]]
    """What clients should see, for earshot's own commands; known once all nodes are in sync."""

    def __init__(
        self, name: str, args: AwsClusterArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Raises EarshotError for what cannot be planned."""
        # as Pulumi keeps them in its state: free properties are secrets
        kept = {
            key: pulumi.Output.secret(value) if key in ("extra", "client") else value
            for key, value in args.items()
        }
        super().__init__("earshot:index:AwsCluster", name, kept, opts)
        spec = read_spec({**args, **SETTLED}, name)
        assert isinstance(spec, AwsSpec)  # as SETTLED says
        # nodes report in parameters whose names must be unique to the stack
        brokers = _Brokers(
            f"{pulumi.get_stack()}-{name}", spec, pulumi.ResourceOptions(parent=self)
        )
        self.vpc_id = brokers.vpc_id
        self.instances = pulumi.Output.all(
            **{str(id): node.instance.id for id, node in brokers.nodes.items()}
        )
        contract = pulumi.Output.all(brokers.plan, brokers.cluster_id, brokers.served).apply(
            lambda found: Contract.of(found[0].plan, name, spec.placement, found[1])
        )
        self.contract = contract.apply(lambda known: known.model_dump(mode="json"))
        self.bootstrap = contract.apply(
            lambda known: {item.name: item.bootstrap for item in known.listeners}
        )
        names = ("vpc_id", "instances", "bootstrap", "contract")
        self.register_outputs({name: getattr(self, name) for name in names})


class _Brokers(Cluster):
    """A cluster whose construction waits for its readiness.

    It has no resources of earshot's own, so nothing remembers the last run. Nothing refuses
    other voters, the removal of a broker with replicas, or a node's move out of its volume's zone.
    """

    served: pulumi.Output[None]
    """Known once all nodes are in sync."""
    _gate_note = "advertised listeners are checked only where this runs with earshot's policy pack"

    def __init__(self, name: str, spec: AwsSpec, opts: pulumi.ResourceOptions) -> None:
        super().__init__(name, spec, opts)
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
