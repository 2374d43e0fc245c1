"""Refuses changes of a stack on AWS by comparison with its last run: no broker can be asked.

The last run's inputs of the preflight are the memory. Volumes, which outlive a stack, have tags
(see `volumes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

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
    def from_props(cls, props: Mapping[str, Any]) -> HeldStack:
        """Read from a resource's inputs."""
        return read(cls, {**props, "port": props["door"]})

    def to_props(self) -> Properties:
        props: Properties = write(self)
        del props["written"]  # the update decides it
        props["door"] = props.pop("port")  # as states of release 0.1.0 have it
        return props


def problems(held: HeldStack, wanted: HeldStack) -> Iterator[str]:
    """Why ``wanted`` must not be applied over ``held``.

    Each text says what was found, what is allowed and how to fix it.
    """
    removal = "`data: delete` and `pulumi destroy`"
    if set(held.voters) != set(wanted.voters):
        yield other_voters(held.voters, wanted.voters, removal)
    elif held.quorum != wanted.quorum:
        yield moving_controllers(
            held.quorum, wanted.quorum, "Keep `controllers.port` and `controllers.protocol`"
        )
    if wanted.written and goes_back(wanted.kafka_version, wanted.written):
        yield older_kafka(wanted.kafka_version, wanted.written, removal)
    yield from _other_links(held, wanted)
    yield from _removals(held, wanted)
    for id in sorted(held.zones.keys() & wanted.zones.keys()):
        yield from _other_volumes(held, wanted, id)
    yield from _moves(held, wanted)
    yield from _moves_at_once(held, wanted)
    yield from _other_subnets(held, wanted)
    yield from _smaller(held, wanted)


def _other_links(held: HeldStack, wanted: HeldStack) -> Iterator[str]:
    """Reasons against a change of links; all brokers count as running, as no broker can be
    asked."""
    # `quorum` compares the controllers' protocol and port; their listener's name may change
    before, after = (replace(links, controller="") for links in (held.links, wanted.links))
    staying = sorted(set(held.brokers) & set(wanted.brokers))
    yield from unrollable(dict.fromkeys(staying, before), after, REMEMBER)


def _removals(held: HeldStack, wanted: HeldStack) -> Iterator[str]:
    gone = sorted(set(held.brokers) - set(wanted.brokers) - set(wanted.drained))
    if not gone:
        return
    ids = ", ".join(map(str, gone))
    drained = ", ".join(map(str, sorted({*gone, *wanted.drained} - set(wanted.brokers))))
    staying = ",".join(map(str, wanted.brokers))
    tool = f"--bootstrap-server HOST:{held.port} --command-config {CLIENT}"
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


def _other_volumes(held: HeldStack, wanted: HeldStack, id: int) -> Iterator[str]:
    before, after = held.volumes.get(id), wanted.volumes.get(id)
    if before and not after:
        yield (
            f"node {id} has its data on {before}, and would start on a blank volume. Keep "
            f"`volumes: {{{id}: {before}}}`"
        )
    elif after and not before and held.data == "delete":
        yield (
            f"node {id} would get {after}, and its own volume would be deleted. Set "
            "`data: keep` and apply that first"
        )


def _moves(held: HeldStack, wanted: HeldStack) -> Iterator[str]:
    staying = sorted(held.zones.keys() & wanted.zones.keys())
    moving = [
        id
        for id in staying
        if held.zones[id] != wanted.zones[id] and held.volumes.get(id) == wanted.volumes.get(id)
    ]
    if not moving:
        return
    moves = ", ".join(f"node {id} from {held.zones[id]} to {wanted.zones[id]}" for id in moving)
    # pin all nodes: the pins of some decide where the others go
    pins = ", ".join(f"{id}: {held.zones[id]}" for id in staying)
    yield (
        f"nodes would move to another zone, where their data volumes cannot follow: {moves}. Keep "
        f"them where they are: `pinned: {{{pins}}}`; or make a volume there from a snapshot, with "
        f"the same tags, and name it: `volumes: {{{moving[0]}: vol-…}}`"
    )


def _moves_at_once(held: HeldStack, wanted: HeldStack) -> Iterator[str]:
    """Why no more than one node may follow a given volume to another zone; `_moves` speaks of those
    whose volume stays."""
    moving = [
        id
        for id in sorted(held.zones.keys() & wanted.zones.keys())
        if held.zones[id] != wanted.zones[id] and held.volumes.get(id) != wanted.volumes.get(id)
    ]
    if len(moving) > 1:
        first = moving[0]
        pins = {**held.zones, first: wanted.zones[first]}
        pinned = ", ".join(f"{id}: {zone}" for id, zone in pins.items())
        yield (
            f"node {listed(moving)} would move to other zones, all at once, and so get other "
            "addresses and names, which the first to restart would not find yet. Move one node "
            f"with each update, node {first} first: `pinned: {{{pinned}}}`, and only its volume in "
            "`volumes`"
        )


def _other_subnets(held: HeldStack, wanted: HeldStack) -> Iterator[str]:
    """Why nodes must not leave their subnets; `_moves` speaks of those that leave their zone."""
    moving = [
        id
        for id in sorted(held.subnets.keys() & wanted.subnets.keys())
        if held.subnets[id] != wanted.subnets[id]
        and held.zones[id] == wanted.zones[id]
        and not is_marker(wanted.subnets[id])  # a preview does not know it
    ]
    if moving:
        first, moves = moving[0], f"node {listed(moving)} would move to another subnet"
        yield (
            f"{moves} (node {first} from {held.subnets[first]} to {wanted.subnets[first]}), all at "
            "once, and so get other addresses and names, which the first to restart would not find "
            "yet. Keep `place`, and `vpc` with its `id`, `cidr` and subnets"
        )


def _smaller(held: HeldStack, wanted: HeldStack) -> Iterator[str]:
    shrinking = [
        id
        for id in sorted(held.sizes.keys() & wanted.sizes.keys())
        if wanted.sizes[id] < held.sizes[id]
    ]
    if shrinking:
        first = shrinking[0]
        yield (
            f"the data volume of node {listed(shrinking)} would shrink (of node {first} from "
            f"{held.sizes[first]} to {wanted.sizes[first]} GiB), which EBS cannot do. Keep "
            f"`size_gib: {held.sizes[first]}`"
        )
