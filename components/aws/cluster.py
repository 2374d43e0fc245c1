"""The `aws` placement: network, groups and names, then the gate, then instances one by one."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from components.aws.groups import SecurityGroups
from components.aws.names import Names
from components.aws.network import Ground, Network, Plot, existing
from components.aws.node import Node, Surroundings, newest_images
from components.aws.readiness import AwsReadiness
from components.gate import AdvertisedListeners, GateSeal
from components.outputs import as_judged, told
from earshot.errors import EarshotError
from earshot.placement.aws import AwsPlan, plan_aws, report_parameter
from earshot.rules.cloud import Cloud
from earshot.spec.aws import AwsSpec

GRACE = 300.0
"""Seconds beyond a node's own deadline before readiness gives up: the instance's start."""


class AwsCluster(pulumi.ComponentResource):
    """A Kafka cluster of EC2 instances, behind its gate."""

    plan: pulumi.Output[AwsPlan]
    """Unknown as long as any of its names is."""
    incarnations: dict[str, pulumi.Output[str]]
    """By node id, what changes when its instance does."""
    ready: AwsReadiness

    def __init__(
        self, name: str, spec: AwsSpec, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """``name`` is the stack's: what is made is called by it."""
        super().__init__("earshot:aws:AwsCluster", name, {}, opts)
        self._name, self._spec = name, spec
        check_region(spec)
        # groups need ports and clients alone, which no name decides
        foreseen = plan_aws(spec, name)
        ground = self._ground()
        self.vpc_id = pulumi.Output.from_input(ground.vpc_id)
        own = pulumi.ResourceOptions(parent=self)
        groups = SecurityGroups(name, foreseen.groups, ground.vpc_id, own)
        self.names = Names(name, spec, ground, groups.ids, own)
        planned = told(lambda given: plan_aws(spec, name, given, ground.dns))
        shown = self.names.provisioned.apply(planned)
        self.plan = self.names.settled.apply(planned)
        gate = AdvertisedListeners(
            name,
            shown.apply(lambda made: made.plan),
            spec.placement,
            shown.apply(lambda made: made.addresses),
            own,
            cloud=shown.apply(lambda made: Cloud(made.instances, made.clients, made.declared)),
        )
        seal: GateSeal | None = None
        if spec.gate == "required":
            seal = GateSeal(name, as_judged(shown.apply(lambda made: made.plan)), gate)
        else:
            pulumi.log.warn("gate: off - nobody has judged the advertised listeners", self)
        around = Surroundings(
            name, spec, self.names, as_judged(self.plan), gate, seal, newest_images(spec)
        )
        self.nodes: dict[int, Node] = {}
        last: AwsReadiness | None = None
        for id in spec.node_ids:
            node = self.nodes[id] = Node(around, id, last)
            last = self._readiness(node.name, [node], gate, [node.attachment])
        every = list(self.nodes.values())
        self.ready = self._readiness("cluster", every, gate, [last] if last else [], whole=True)
        self.incarnations = {str(id): node.incarnation for id, node in self.nodes.items()}
        self.register_outputs({"incarnations": self.incarnations})

    def _ground(self) -> Ground:
        if self._spec.vpc.id is not None:
            return existing(self._spec)
        own = pulumi.ResourceOptions(parent=self)
        return Network(self._name, Plot.of(self._spec), own).ground

    def _readiness(
        self,
        name: str,
        nodes: Sequence[Node],
        gate: pulumi.Resource,
        after: Sequence[pulumi.Resource],
        whole: bool = False,
    ) -> AwsReadiness:
        """Of one node: a change waits here before the next is touched; or of the whole cluster."""
        spec = self._spec
        return AwsReadiness(
            f"{self._name}-{name}",
            [node.awaited for node in nodes],
            # by name, for the last voter's parameter comes after the first node's readiness
            voters=[report_parameter(self._name, spec.name_of(id)) for id in spec.controller_ids],
            region=spec.region,
            deadline=spec.ready_seconds + GRACE,
            whole=whole,
            opts=pulumi.ResourceOptions(parent=gate, depends_on=list(after)),
        )


def check_region(spec: AwsSpec) -> None:
    """Raises EarshotError where Pulumi's own provider would work in another region."""
    found = aws.get_region().region
    if found != spec.region:
        raise EarshotError(
            f"region: {spec.region}",
            observed=f"the AWS provider works in {found}",
            remedy=f"set aws:region: {spec.region} in the stack's file",
        )
