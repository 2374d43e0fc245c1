"""Refuses changes of a stack on AWS by comparison with its last run: no broker can be asked.

The last run's inputs of the preflight are the memory. Volumes, which outlive a stack, have tags
(see `volumes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from earshot.config.aws import AwsSpec
from earshot.listeners.listed import listed
from earshot.placement.aws import plan_aws
from earshot.user_data.render import CLIENT
from earshot_pulumi.properties import read, write
from earshot_pulumi.provider.kind import Properties
from earshot_pulumi.refusals import (
    REMEMBER,
    goes_back,
    moving_controllers,
    older_kafka,
    other_voters,
)
from earshot_pulumi.rolling import Links, unrollable
from earshot_pulumi.unknown_inputs import is_marker


@dataclass(frozen=True)
class HeldStack:
    """The parts of a stack that decide where data is, and which brokers can use it."""

    stack: str
    brokers: tuple[int, ...]
    voters: tuple[int, ...]
    quorum: str
    """The protocol and port of the controllers' listener."""
    kafka_version: str
    zones: Mapping[int, str]
    """By node id; a volume cannot leave its zone."""
    volumes: Mapping[int, str]
    """By node id, volumes that the stack was given and has not made."""
    data: str
    """`keep` or `delete`: whether a destroy keeps the volumes that the stack created."""
    drained: tuple[int, ...]
    port: int
    """The port of the inter-broker listener."""
    links: Links
    """How brokers reach each other."""
    written: str = ""
    """The version that the data was formatted with; empty before a node has served."""
    subnets: Mapping[int, str] = field(default_factory=dict)
    """By node id; earlier releases did not remember them. Another subnet is another address."""
    sizes: Mapping[int, int] = field(default_factory=dict)
    """By node id, the GiB of volumes that the stack has made; earlier releases did not remember
    them. A volume does not shrink."""

    @classmethod
    def of(cls, stack: str, spec: AwsSpec) -> HeldStack:
        ports = {listener.name: listener.port for listener in spec.listeners}
        return cls(
            stack=stack,
            brokers=tuple(spec.ids),
            voters=tuple(spec.controller_ids),
            quorum=f"{spec.controllers.protocol} on port {spec.controllers.port}",
            kafka_version=spec.kafka_version,
            zones=spec.zone_of,
            volumes=spec.volumes,
            data=spec.data,
            drained=spec.drained,
            port=ports[spec.inter_broker_name],
            links=Links.of_plan(plan_aws(spec).plan),
            subnets={id: spec.subnet_of(id) for id in spec.node_ids},
            sizes={
                id: spec.volume_of(id).size_gib for id in spec.node_ids if id not in spec.volumes
            },
        )

    @classmethod
    def from_props(cls, props: Properties) -> HeldStack:
        """Read from a resource's inputs."""
        return read(cls, {**props, "port": props["door"]})

    def to_props(self) -> Properties:
        props: Properties = write(self)
        del props["written"]  # the update decides it
        props["door"] = props.pop("port")  # as states of release 0.1.0 have it
        return props


def problems(old_stack: HeldStack, new_stack: HeldStack) -> Iterator[str]:
    """Why ``new_stack`` must not be applied over ``old_stack``.

    Each text says what was found, what is allowed and how to fix it.
    """
    removal = "`data: delete` and `pulumi destroy`"
    if set(old_stack.voters) != set(new_stack.voters):
        yield other_voters(old_stack.voters, new_stack.voters, removal)
    elif old_stack.quorum != new_stack.quorum:
        yield moving_controllers(
            old_stack.quorum, new_stack.quorum, "Keep `controllers.port` and `controllers.protocol`"
        )
    if new_stack.written and goes_back(new_stack.kafka_version, new_stack.written):
        yield older_kafka(new_stack.kafka_version, new_stack.written, removal)
    yield from _other_links(old_stack, new_stack)
    yield from _removals(old_stack, new_stack)
    for id in sorted(old_stack.zones.keys() & new_stack.zones.keys()):
        yield from _other_volumes(old_stack, new_stack, id)
    yield from _moves(old_stack, new_stack)
    yield from _moves_at_once(old_stack, new_stack)
    yield from _other_subnets(old_stack, new_stack)
    yield from _smaller(old_stack, new_stack)


def _other_links(old_stack: HeldStack, new_stack: HeldStack) -> Iterator[str]:
    """Reasons against a change of links; all brokers count as running, as no broker can be
    asked."""
    # `quorum` compares the controllers' protocol and port; their listener's name may change
    old_links, new_links = (
        replace(links, controller="") for links in (old_stack.links, new_stack.links)
    )
    staying = sorted(set(old_stack.brokers) & set(new_stack.brokers))
    yield from unrollable(dict.fromkeys(staying, old_links), new_links, REMEMBER)


def _removals(old_stack: HeldStack, new_stack: HeldStack) -> Iterator[str]:
    gone = sorted(set(old_stack.brokers) - set(new_stack.brokers) - set(new_stack.drained))
    if not gone:
        return
    ids = ", ".join(map(str, gone))
    drained = ", ".join(map(str, sorted({*gone, *new_stack.drained} - set(new_stack.brokers))))
    staying = ",".join(map(str, new_stack.brokers))
    tool = f"--bootstrap-server HOST:{old_stack.port} --command-config {CLIENT}"
    yield (
        f"broker {ids} would be removed, and whether replicas are left there cannot be seen from "
        "here. Move them to the brokers that stay, in a session on an instance:\n"
        f"    /opt/kafka/bin/kafka-reassign-partitions.sh {tool} "
        f'--topics-to-move-json-file TOPICS --broker-list "{staying}" --generate\n'
        "    the same with --reassignment-json-file PLAN --execute, then --verify\n"
        f"    /opt/kafka/bin/kafka-log-dirs.sh {tool} --describe "
        f'--broker-list "{",".join(map(str, gone))}"\n'
        f"  and when the last lists no partition, write `drained: [{drained}]` into the stack's "
        "file; or keep the broker"
    )


def _other_volumes(old_stack: HeldStack, new_stack: HeldStack, id: int) -> Iterator[str]:
    old_volume, new_volume = old_stack.volumes.get(id), new_stack.volumes.get(id)
    if old_volume and not new_volume:
        yield (
            f"node {id} has its data on {old_volume}, and would start on a blank volume. Keep "
            f"`volumes: {{{id}: {old_volume}}}`"
        )
    elif new_volume and not old_volume and old_stack.data == "delete":
        yield (
            f"node {id} would get {new_volume}, and its own volume would be deleted. Set "
            "`data: keep` and apply that first"
        )


def _moves(old_stack: HeldStack, new_stack: HeldStack) -> Iterator[str]:
    staying = sorted(old_stack.zones.keys() & new_stack.zones.keys())
    moving = [
        id
        for id in staying
        if old_stack.zones[id] != new_stack.zones[id]
        and old_stack.volumes.get(id) == new_stack.volumes.get(id)
    ]
    if not moving:
        return
    moves = ", ".join(
        f"node {id} from {old_stack.zones[id]} to {new_stack.zones[id]}" for id in moving
    )
    # pin all nodes: the pins of some decide where the others go
    pins = ", ".join(f"{id}: {old_stack.zones[id]}" for id in staying)
    yield (
        f"nodes would move to another zone, where their data volumes cannot follow: {moves}. Keep "
        f"them where they are: `pinned: {{{pins}}}`; or make a volume there from a snapshot, with "
        f"the same tags, and name it: `volumes: {{{moving[0]}: vol-…}}`"
    )


def _moves_at_once(old_stack: HeldStack, new_stack: HeldStack) -> Iterator[str]:
    """Why no more than one node may follow a given volume to another zone; `_moves` speaks of those
    whose volume stays."""
    moving = [
        id
        for id in sorted(old_stack.zones.keys() & new_stack.zones.keys())
        if old_stack.zones[id] != new_stack.zones[id]
        and old_stack.volumes.get(id) != new_stack.volumes.get(id)
    ]
    if len(moving) > 1:
        first = moving[0]
        pins = {**old_stack.zones, first: new_stack.zones[first]}
        pinned = ", ".join(f"{id}: {zone}" for id, zone in pins.items())
        yield (
            f"node {listed(moving)} would move to other zones, all at once, and so get other "
            "addresses and names, which the first to restart would not find yet. Move one node "
            f"with each update, node {first} first: `pinned: {{{pinned}}}`, and only its volume in "
            "`volumes`"
        )


def _other_subnets(old_stack: HeldStack, new_stack: HeldStack) -> Iterator[str]:
    """Why nodes must not leave their subnets; `_moves` speaks of those that leave their zone."""
    moving = [
        id
        for id in sorted(old_stack.subnets.keys() & new_stack.subnets.keys())
        if old_stack.subnets[id] != new_stack.subnets[id]
        and old_stack.zones[id] == new_stack.zones[id]
        and not is_marker(new_stack.subnets[id])  # a preview does not know it
    ]
    if moving:
        first, moves = moving[0], f"node {listed(moving)} would move to another subnet"
        yield (
            f"{moves} (node {first} from {old_stack.subnets[first]} to "
            f"{new_stack.subnets[first]}), all at once, and so get other addresses and names, "
            "which the first to restart would not find yet. Keep `place`, and `vpc` with its `id`, "
            "`cidr` and subnets"
        )


def _smaller(old_stack: HeldStack, new_stack: HeldStack) -> Iterator[str]:
    shrinking = [
        id
        for id in sorted(old_stack.sizes.keys() & new_stack.sizes.keys())
        if new_stack.sizes[id] < old_stack.sizes[id]
    ]
    if shrinking:
        first = shrinking[0]
        yield (
            f"the data volume of node {listed(shrinking)} would shrink (of node {first} from "
            f"{old_stack.sizes[first]} to {new_stack.sizes[first]} GiB), which EBS cannot do. Keep "
            f"`size_gib: {old_stack.sizes[first]}`"
        )
