"""The `aws` placement: network, groups and names, then the gate, then instances one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_aws as aws

from components.aws.ground import AwsGround, Held
from components.aws.groups import SecurityGroups
from components.aws.instances import Surroundings, newest_images
from components.aws.names import Names
from components.aws.network import Ground, Network, Plot, existing
from components.aws.node import Node
from components.aws.readiness import AwsReadiness
from components.aws.volumes import check_given, idle
from components.gate import AdvertisedListeners, GateSeal
from components.outputs import as_judged, told
from earshot.errors import EarshotError
from earshot.placement.aws import AwsPlan, plan_aws, report_parameter
from earshot.placement.aws_standpoints import GRACE
from earshot.rules.cloud import Cloud
from earshot.spec.aws import AwsSpec


class Cluster(pulumi.ComponentResource):
    """A Kafka cluster of EC2 instances, behind its gate."""

    plan: pulumi.Output[AwsPlan]
    """Unknown as long as any of its names is."""
    incarnations: dict[str, pulumi.Output[str]]
    """By node id, what changes when its instance does."""
    _unsealed = "gate: off - nobody has judged the advertised listeners"

    def __init__(
        self, name: str, spec: AwsSpec, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """``name`` is the stack's: what is made is called by it."""
        super().__init__("earshot:aws:AwsCluster", name, {}, opts)
        self._name, self._spec = name, spec
        check_region(spec, self)
        check_given(name, spec, self)
        if said := idle(name, spec, self):
            pulumi.log.warn(said, self)
        # groups need ports and clients alone, which no name decides
        foreseen = plan_aws(spec, name)
        self.network = ground = self._ground()
        self.vpc_id = pulumi.Output.from_input(ground.vpc_id)
        own = pulumi.ResourceOptions(parent=self)
        groups = SecurityGroups(name, foreseen.groups, ground.vpc_id, own)
        self.groups = groups.ids
        self.names = Names(name, spec, ground, groups.ids, own)
        planned = told(lambda given: plan_aws(spec, name, given, ground.dns))
        shown = self.names.provisioned.apply(planned)
        self.plan = self.names.settled.apply(planned)
        self.gate = AdvertisedListeners(
            name,
            shown.apply(lambda made: made.plan),
            spec.placement,
            shown.apply(lambda made: made.addresses),
            own,
            cloud=shown.apply(lambda made: Cloud(made.instances, made.clients, made.declared)),
        )
        seal: GateSeal | None = None
        if spec.gate == "required":
            seal = GateSeal(name, as_judged(shown.apply(lambda made: made.plan)), self.gate)
        else:
            pulumi.log.warn(self._unsealed, self)
        self.around = around = Surroundings(
            name,
            spec,
            self.names,
            as_judged(self.plan),
            self.gate,
            seal,
            self._lay_ground(seal),
            newest_images(spec, self),
        )
        self.nodes: dict[int, Node] = {}
        last: pulumi.Output[Any] | None = None
        for id in spec.node_ids:
            node = self.nodes[id] = Node(around, id, last)
            last = self._back(node)
        self.incarnations = {str(id): node.incarnation for id, node in self.nodes.items()}

    def _ground(self) -> Ground:
        if self._spec.vpc.id is not None:
            return existing(self._spec, self)
        own = pulumi.ResourceOptions(parent=self)
        return Network(self._name, Plot.of(self._spec), own).ground

    def _lay_ground(self, seal: GateSeal | None) -> pulumi.Resource | None:
        """What compares the stack with what it was before an instance is touched; None: nobody."""
        return None

    def _back(self, node: Node) -> pulumi.Output[Any]:
        """Known once ``node`` is back after a change, so that the next may be touched."""
        raise NotImplementedError

    @property
    def _voters(self) -> list[str]:
        """The parameters in which the quorum reports.

        By name, for the last voter's comes after the first node's readiness.
        """
        spec = self._spec
        return [report_parameter(self._name, spec.name_of(id)) for id in spec.controller_ids]

    @property
    def _deadline(self) -> float:
        return self._spec.ready_seconds + GRACE


class AwsCluster(Cluster):
    """A cluster whose stack waits for readiness with resources of its own."""

    ready: AwsReadiness
    _last: AwsReadiness | None = None

    def __init__(
        self, name: str, spec: AwsSpec, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """``name`` is the stack's: what is made is called by it."""
        super().__init__(name, spec, opts)
        every = list(self.nodes.values())
        after = [self._last] if self._last else []
        self.ready = self._readiness("cluster", every, after, whole=True)
        self.register_outputs({"incarnations": self.incarnations})

    def _lay_ground(self, seal: GateSeal | None) -> AwsGround:
        after = [seal] if seal is not None else []
        own = pulumi.ResourceOptions(parent=self.gate, depends_on=after)
        return AwsGround(self._name, Held.of(self._name, self._spec), own)

    def _back(self, node: Node) -> pulumi.Output[Any]:
        self._last = self._readiness(node.name, [node], [node.attachment])
        return self._last.id

    def _readiness(
        self,
        name: str,
        nodes: Sequence[Node],
        after: Sequence[pulumi.Resource],
        whole: bool = False,
    ) -> AwsReadiness:
        """Of one node: a change waits here before the next is touched; or of the whole cluster."""
        return AwsReadiness(
            f"{self._name}-{name}",
            [node.awaited for node in nodes],
            voters=self._voters,
            region=self._spec.region,
            deadline=self._deadline,
            whole=whole,
            opts=pulumi.ResourceOptions(parent=self.gate, depends_on=list(after)),
        )


def check_region(spec: AwsSpec, parent: pulumi.Resource) -> None:
    """Raises EarshotError where Pulumi's own provider would work in another region."""
    found = aws.get_region(opts=pulumi.InvokeOptions(parent=parent)).region
    if found != spec.region:
        raise EarshotError(
            f"region: {spec.region}",
            observed=f"the AWS provider works in {found}",
            remedy=f"set aws:region: {spec.region} in the stack's file",
        )
