"""Refuses changes of a stack on AWS by comparison with its last run.

No broker can be asked from here. So the preflight's inputs of the last run are compared. Volumes,
which outlive a stack, have tags (see `volumes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import Field

from earshot.config.aws import AwsSpec
from earshot.listeners.listed import listed
from earshot.placement.aws import plan_aws
from earshot.user_data.render import CLIENT
from earshot_pulumi.node_links import Links, unrollable
from earshot_pulumi.refusals import (
    REMEMBER,
    goes_back,
    moving_controllers,
    older_kafka,
    other_voters,
)
from earshot_pulumi.unknown_inputs import is_marker


@dataclass(frozen=True)
class HeldStack:
    """The settings of a stack that decide where its data is, and which brokers can use it."""

    stack: str
    brokers: tuple[int, ...]
    voters: tuple[int, ...]
    quorum: str
    """The protocol and port of the controllers' listener."""
    kafka_version: str
    zones: Mapping[int, str]
    """The zone by node id. A volume cannot leave its zone."""
    volumes: Mapping[int, str]
    """By node id, existing volumes that the stack has not created."""
    data: str
    """`keep` or `delete`: whether a destroy keeps the volumes that the stack created."""
    drained: tuple[int, ...]
    port: Annotated[int, Field(alias="door")]  # the key in states of release 0.1.0
    """The port of the inter-broker listener."""
    links: Links
    """The listeners between the brokers."""
    written: Annotated[str, Field(exclude=True)] = ""  # the update decides it
    """The Kafka version that has formatted the data; empty before a node has served."""
    subnets: Mapping[int, str] = field(default_factory=dict)
    """The subnet by node id, not stored by earlier releases. Another subnet is another address."""
    sizes: Mapping[int, int] = field(default_factory=dict)
    """By node id, the GiB of volumes that the stack has created; earlier releases did not store
    them. A volume cannot shrink."""

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


def problems(old_stack: HeldStack, new_stack: HeldStack) -> Iterator[str]:
    """Why ``new_stack`` must not be applied over ``old_stack``.

    Each text has the observed value, the allowed value and the fix.
    """
    if set(old_stack.voters) != set(new_stack.voters):
        yield other_voters(old_stack.voters, new_stack.voters)
    elif old_stack.quorum != new_stack.quorum:
        yield moving_controllers(
            old_stack.quorum, new_stack.quorum, "Keep `controllers.port` and `controllers.protocol`"
        )
    if new_stack.written and goes_back(new_stack.kafka_version, new_stack.written):
        yield older_kafka(new_stack.kafka_version, new_stack.written)
    yield from _other_links(old_stack, new_stack)
    yield from _removals(old_stack, new_stack)
    for id in sorted(old_stack.zones.keys() & new_stack.zones.keys()):
        yield from _other_volumes(old_stack, new_stack, id)
    yield from _moves(old_stack, new_stack)
    yield from _moves_at_once(old_stack, new_stack)
    yield from _other_subnets(old_stack, new_stack)
    yield from _smaller(old_stack, new_stack)


def _other_links(old_stack: HeldStack, new_stack: HeldStack) -> Iterator[str]:
    """Reasons against a change of links. All brokers count as running, because no broker can be
    asked."""
    # `quorum` compares the controllers' protocol and port; their listener's name may change
    old_links, new_links = (
        replace(links, controller="") for links in (old_stack.links, new_stack.links)
    )
    common_ids = sorted(set(old_stack.brokers) & set(new_stack.brokers))
    yield from unrollable(dict.fromkeys(common_ids, old_links), new_links, REMEMBER)


def _removals(old_stack: HeldStack, new_stack: HeldStack) -> Iterator[str]:
    removed_ids = sorted(set(old_stack.brokers) - set(new_stack.brokers) - set(new_stack.drained))
    if not removed_ids:
        return
    ids = ", ".join(map(str, removed_ids))
    drained = ", ".join(
        map(str, sorted({*removed_ids, *new_stack.drained} - set(new_stack.brokers)))
    )
    broker_list = ",".join(map(str, new_stack.brokers))
    tool = f"--bootstrap-server HOST:{old_stack.port} --command-config {CLIENT}"
    yield (
        f"broker {ids} would be removed, and whether it still has replicas cannot be seen from "
        "here. Move them to the brokers that stay, in a session on an instance:\n"
        f"    /opt/kafka/bin/kafka-reassign-partitions.sh {tool} "
        f'--topics-to-move-json-file TOPICS --broker-list "{broker_list}" --generate\n'
        "    the same with --reassignment-json-file PLAN --execute, then --verify\n"
        f"    /opt/kafka/bin/kafka-log-dirs.sh {tool} --describe "
        f'--broker-list "{",".join(map(str, removed_ids))}"\n'
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


def _differing(old: Mapping[int, object], new: Mapping[int, object]) -> list[int]:
    """The sorted ids of the nodes in both maps that have different values."""
    return [id for id in sorted(old.keys() & new.keys()) if old[id] != new[id]]


def _moves(old_stack: HeldStack, new_stack: HeldStack) -> Iterator[str]:
    moving_ids = [
        id
        for id in _differing(old_stack.zones, new_stack.zones)
        if old_stack.volumes.get(id) == new_stack.volumes.get(id)
    ]
    if not moving_ids:
        return
    moves = ", ".join(
        f"node {id} from {old_stack.zones[id]} to {new_stack.zones[id]}" for id in moving_ids
    )
    # pin all nodes: pins of some nodes would move the others
    common_ids = sorted(old_stack.zones.keys() & new_stack.zones.keys())
    pins = ", ".join(f"{id}: {old_stack.zones[id]}" for id in common_ids)
    yield (
        f"nodes would move to another zone, where their data volumes cannot follow: {moves}. Keep "
        f"their zones: `pinned: {{{pins}}}`; or create a volume there from a snapshot, with the "
        f"same tags, and set `volumes: {{{moving_ids[0]}: vol-…}}`"
    )


def _moves_at_once(old_stack: HeldStack, new_stack: HeldStack) -> Iterator[str]:
    """Why at most one node may follow its volume to another zone. `_moves` reports nodes whose
    volume stays."""
    moving_ids = [
        id
        for id in _differing(old_stack.zones, new_stack.zones)
        if old_stack.volumes.get(id) != new_stack.volumes.get(id)
    ]
    if len(moving_ids) > 1:
        first_id = moving_ids[0]
        pins = {**old_stack.zones, first_id: new_stack.zones[first_id]}
        pinned = ", ".join(f"{id}: {zone}" for id, zone in pins.items())
        yield (
            f"node {listed(moving_ids)} would move to other zones at the same time, and get other "
            "addresses and names: the first restarted node could not connect to the others. Move "
            f"one node with each update, node {first_id} first: `pinned: {{{pinned}}}`, and only "
            "its volume in `volumes`"
        )


def _other_subnets(old_stack: HeldStack, new_stack: HeldStack) -> Iterator[str]:
    """Why nodes must not leave their subnets. `_moves` reports nodes that leave their zone."""
    moving_ids = [
        id
        for id in _differing(old_stack.subnets, new_stack.subnets)
        if old_stack.zones[id] == new_stack.zones[id]
        and not is_marker(new_stack.subnets[id])  # a preview does not know it
    ]
    if moving_ids:
        first_id = moving_ids[0]
        moves = f"node {listed(moving_ids)} would move to another subnet"
        yield (
            f"{moves} (node {first_id} from {old_stack.subnets[first_id]} to "
            f"{new_stack.subnets[first_id]}), at the same time, and get other addresses and names: "
            "the first restarted node could not connect to the others. Keep `place`, and `vpc` "
            "with its `id`, `cidr` and subnets"
        )


def _smaller(old_stack: HeldStack, new_stack: HeldStack) -> Iterator[str]:
    shrinking_ids = [
        id
        for id in _differing(old_stack.sizes, new_stack.sizes)
        if new_stack.sizes[id] < old_stack.sizes[id]
    ]
    if shrinking_ids:
        first_id = shrinking_ids[0]
        yield (
            f"the data volume of node {listed(shrinking_ids)} would shrink (of node {first_id} "
            f"from {old_stack.sizes[first_id]} to {new_stack.sizes[first_id]} GiB), which EBS "
            f"cannot do. Keep `size_gib: {old_stack.sizes[first_id]}`"
        )
