"""Kafka brokers on AWS, as any program can ask for them.

The package's schema is read from the annotations below and in `cluster_args`, so they are no
strings here: both modules do without postponed annotations.
"""

from typing import Any

import pulumi

from components.aws.cluster import Cluster
from components.aws.node import Node
from components.aws.reports import Awaited
from components.package.cluster_args import AwsClusterArgs
from components.package.patience import in_sync
from earshot.placement.aws import AwsPlan
from earshot.spec.aws import AwsSpec
from earshot.spec.document import read_spec
from earshot.validation.contract import Contract

SETTLED = {"placement": "aws", "gate": "off", "prove": "later", "validator": False}
"""What the spec of a stack of ours may say otherwise, and a component's cannot."""


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
        super().__init__("earshot:index:AwsCluster", name, dict(args), opts)
        spec = read_spec({**args, **SETTLED}, name)
        assert isinstance(spec, AwsSpec)  # as SETTLED says
        # reports stand under names that must be one stack's own
        brokers = _Brokers(
            f"{pulumi.get_stack()}-{name}", spec, pulumi.ResourceOptions(parent=self)
        )
        self.vpc_id = brokers.vpc_id
        self.instances = pulumi.Output.all(
            **{str(id): node.instance.id for id, node in brokers.nodes.items()}
        )
        contract = pulumi.Output.all(brokers.plan, brokers.served).apply(
            lambda both: _contract(both[0], name)
        )
        self.contract = contract.apply(lambda known: known.model_dump(mode="json"))
        self.bootstrap = contract.apply(
            lambda known: {item.name: item.bootstrap for item in known.listeners}
        )
        self.register_outputs(
            {
                "vpc_id": self.vpc_id,
                "instances": self.instances,
                "bootstrap": self.bootstrap,
                "contract": self.contract,
            }
        )


class _Brokers(Cluster):
    """A cluster whose readiness is waited for where it is constructed.

    A package holds no dynamic resource, so nothing remembers what was: other voters, the removal of
    a broker with replicas and a node's move from its volume's zone are refused by nobody here.
    """

    served: pulumi.Output[None]
    """Known once all nodes are in sync."""
    _unsealed = "advertised listeners are judged only where this runs with earshot's policy pack"

    def __init__(self, name: str, spec: AwsSpec, opts: pulumi.ResourceOptions) -> None:
        super().__init__(name, spec, opts)
        self.served = self._in_sync(list(self.nodes.values()), whole=True)
        self.register_outputs({"incarnations": self.incarnations})

    def _back(self, node: Node) -> pulumi.Output[Any]:
        return self._in_sync([node], whole=False)

    def _in_sync(self, nodes: list[Node], *, whole: bool) -> pulumi.Output[None]:
        deployed = [
            pulumi.Output.all(attachment=node.attachment.id, **node.awaited) for node in nodes
        ]
        return pulumi.Output.all(*deployed).apply(
            lambda found: in_sync(
                [Awaited.of(item) for item in found],
                self._voters,
                self._spec.region,
                self._deadline,
                whole=whole,
            )
        )


def _contract(made: AwsPlan, name: str) -> Contract:
    return Contract.of(made.plan, cluster=name, placement="aws")
