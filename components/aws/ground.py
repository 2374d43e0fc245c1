"""What a stack on AWS must keep, known from what it was before: no broker can be asked from here.

The resource's own inputs of the last run are the memory; what outlives a stack, its volumes, has
tags (see `volumes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi.dynamic import CheckFailure, CheckResult, CreateResult, Resource, UpdateResult

from components.owner import OwnedProvider
from components.refusals import goes_back, moving_controllers, older_kafka, other_voters
from earshot.spec.aws import AwsSpec
from earshot.user_data.render import CLIENT

Props = dict[str, Any]


@dataclass(frozen=True)
class Held:
    """What decides where data is, and who may read it."""

    stack: str
    brokers: tuple[int, ...]
    voters: tuple[int, ...]
    quorum: str
    """How controllers are reached beside their names: the listener's protocol and port."""
    kafka_version: str
    zones: Mapping[int, str]
    """By node id; a volume cannot leave its zone."""
    volumes: Mapping[int, str]
    """By node id, those that the stack was given and has not made."""
    data: str
    """keep or delete: what becomes of a volume that the stack has made."""
    drained: tuple[int, ...]
    door: int
    """The port of the inter-broker listener."""

    @classmethod
    def of(cls, stack: str, spec: AwsSpec) -> Held:
        ports = {item.name: item.port for item in spec.listeners}
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
            door=ports[spec.inter_broker_name],
        )

    @classmethod
    def from_props(cls, props: Mapping[str, Any]) -> Held:
        """Out of a resource's inputs, where every number has become a float."""
        return cls(
            stack=props["stack"],
            brokers=tuple(map(int, props["brokers"])),
            voters=tuple(map(int, props["voters"])),
            quorum=props["quorum"],
            kafka_version=props["kafka_version"],
            zones={int(id): zone for id, zone in props["zones"].items()},
            volumes={int(id): volume for id, volume in props["volumes"].items()},
            data=props["data"],
            drained=tuple(map(int, props["drained"])),
            door=int(props["door"]),
        )

    def to_props(self) -> Props:
        return {
            "stack": self.stack,
            "brokers": list(self.brokers),
            "voters": list(self.voters),
            "quorum": self.quorum,
            "kafka_version": self.kafka_version,
            "zones": {str(id): zone for id, zone in self.zones.items()},
            "volumes": {str(id): volume for id, volume in self.volumes.items()},
            "data": self.data,
            "drained": list(self.drained),
            "door": self.door,
        }


def problems(held: Held, wanted: Held) -> Iterator[str]:
    """Why ``wanted`` must not be applied over ``held``.

    Each text says what was found, what is allowed and how to mend it.
    """
    removal = f"`data: delete` and `make clean STACK={wanted.stack}`"
    if set(held.voters) != set(wanted.voters):
        yield other_voters(held.voters, wanted.voters, removal)
    elif held.quorum != wanted.quorum:
        yield moving_controllers(
            held.quorum, wanted.quorum, "Keep `controllers.port` and `controllers.protocol`"
        )
    if goes_back(wanted.kafka_version, held.kafka_version):
        yield older_kafka(wanted.kafka_version, held.kafka_version, removal)
    yield from _removals(held, wanted)
    for id in sorted(held.zones.keys() & wanted.zones.keys()):
        yield from _other_volumes(held, wanted, id)
    yield from _moves(held, wanted)


def _removals(held: Held, wanted: Held) -> Iterator[str]:
    gone = sorted(set(held.brokers) - set(wanted.brokers) - set(wanted.drained))
    if not gone:
        return
    ids = ", ".join(map(str, gone))
    drained = ", ".join(map(str, sorted({*gone, *wanted.drained} - set(wanted.brokers))))
    staying = ",".join(map(str, wanted.brokers))
    tool = f"--bootstrap-server HOST:{held.door} --command-config {CLIENT}"
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


def _other_volumes(held: Held, wanted: Held, id: int) -> Iterator[str]:
    before, after = held.volumes.get(id), wanted.volumes.get(id)
    if before and not after:
        yield (
            f"node {id} has its data on {before}, and would start anew on a blank volume. Keep "
            f"`volumes: {{{id}: {before}}}`"
        )
    elif after and not before and held.data == "delete":
        yield (
            f"node {id} would get {after}, and its own volume would be deleted. Set "
            "`data: keep` and apply that first"
        )


def _moves(held: Held, wanted: Held) -> Iterator[str]:
    staying = sorted(held.zones.keys() & wanted.zones.keys())
    moving = [
        id
        for id in staying
        if held.zones[id] != wanted.zones[id] and held.volumes.get(id) == wanted.volumes.get(id)
    ]
    if not moving:
        return
    told = ", ".join(f"node {id} from {held.zones[id]} to {wanted.zones[id]}" for id in moving)
    # of all nodes: the pins of some decide where the others go
    pins = ", ".join(f"{id}: {held.zones[id]}" for id in staying)
    yield (
        f"nodes would move to another zone, where their data volumes cannot follow: {told}. Keep "
        f"them where they are: `pinned: {{{pins}}}`; or make a volume there from a snapshot, with "
        f"the same tags, and name it: `volumes: {{{moving[0]}: vol-…}}`"
    )


class GroundProvider(OwnedProvider):
    """Remembers, and refuses what does not go together with it: in a preview, too."""

    def check(self, olds: Props, news: Props) -> CheckResult:
        found = list(problems(Held.from_props(olds), Held.from_props(news))) if olds else []
        text = "\n".join(f"- {problem}" for problem in found)
        return CheckResult(news, [CheckFailure("cluster", f"\n{text}")] if found else [])

    def create(self, props: Props) -> CreateResult:
        return CreateResult("held", props)

    def update(self, _id: str, _olds: Props, news: Props) -> UpdateResult:
        return UpdateResult(news)


class AwsGround(Resource, module="earshot", name="AwsGround"):
    """What must hold before any instance is touched."""

    def __init__(self, name: str, held: Held, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(GroundProvider(), name, held.to_props(), opts)
