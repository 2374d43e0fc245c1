"""Refuses changes of a stack on AWS by comparison with its last run.

No broker can be asked from here. So the preflight's inputs of the last run are compared, and the
nodes' reports tell which clients a listener has that a change removes. Volumes, which outlive a
stack, have tags (see `volumes`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import Field

from earshot.config.aws import AwsSpec
from earshot.listeners.listed import listed
from earshot.placement.aws import plan_aws
from earshot.user_data.boot import CLIENTS_SECONDS, NodeReport, NodeState
from earshot.user_data.render import CLIENT
from earshot_pulumi import listener_removal
from earshot_pulumi.aws.credentials import Read
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


POLL = 2.0
"""Seconds between two reads."""
MOST_SECONDS = 4 * CLIENTS_SECONDS
"""Seconds to wait for new reports. A node without one by then does not report."""
_NOT_COUNTED = "clients are counted from the step on that marks a listener as leaving"


def client_problems(
    names: Collection[str],
    parameters: Mapping[int, str],
    read: Read,
    *,
    may_be_removed: bool = False,
    progress: Callable[[str], None] = lambda _: None,
    poll: float = POLL,
    seconds: float = MOST_SECONDS,
) -> Iterator[str]:
    """Why the listeners ``names`` must not be removed yet.

    ``parameters`` are those in which brokers report, by node id. Only reports that are newer than
    this call count, so a client that has disconnected is not reported. If the change was begun
    before (``may_be_removed``), a broker that reports no clients has lost the listeners already,
    and may still be starting. Raises EarshotError if AWS does not answer.
    """
    former_reports = _reports(parameters, read)
    uncounted_ids = [
        id
        for id, report in former_reports.items()
        if report and report.clients is None and (may_be_removed or report.serves)
    ]
    awaited_ids = parameters.keys() - set(uncounted_ids)
    if awaited_ids:
        names_text = ", ".join(sorted(names))
        progress(
            f"asking brokers for the clients of {names_text}; they report every {CLIENTS_SECONDS} s"
        )
    waiting = {id: parameters[id] for id in awaited_ids}
    origins_by_listener, reasons = _renewed(
        former_reports, waiting, read, may_be_removed, poll, seconds
    )
    if not may_be_removed:
        reasons |= dict.fromkeys(uncounted_ids, _NOT_COUNTED)
    yield from listener_removal.problems(
        {
            name: origins
            for name, origins in origins_by_listener.items()
            if origins and name in names
        }
    )
    if reasons:
        yield _unknown(names, reasons)


def _renewed(
    former_reports: Mapping[int, NodeReport | None],
    waiting: dict[int, str],
    read: Read,
    may_be_removed: bool,
    poll: float,
    seconds: float,
) -> tuple[dict[str, Counter[str]], dict[int, str]]:
    """The clients by listener in nodes' new reports; and by node without one, the reason.

    A report is new if it differs from the one in ``former_reports``. Removes nodes from
    ``waiting``.
    """
    origins_by_listener: dict[str, Counter[str]] = {}
    reasons: dict[int, str] = {}
    end = time.monotonic() + seconds
    while waiting:
        for id, report in _reports(waiting, read).items():
            if report is None or report == former_reports[id]:
                continue
            if may_be_removed and report.clients is None:  # the instance came up meanwhile
                del waiting[id]
                continue
            if report.state is NodeState.STARTING:
                continue
            del waiting[id]
            if not report.serves:
                reasons[id] = f"it reports {report.state} {report.detail}".strip()
            elif report.clients is None:
                reasons[id] = "it could not count connections"
            for name, origins in (report.clients or {}).items():
                origins_by_listener.setdefault(name, Counter()).update(origins)
        if time.monotonic() > end:
            return origins_by_listener, reasons | dict.fromkeys(waiting, "no new report")
        if waiting:
            time.sleep(poll)
    return origins_by_listener, reasons


def _reports(parameters: Mapping[int, str], read: Read) -> dict[int, NodeReport | None]:
    values = read(list(parameters.values()))
    return {id: NodeReport.read(values.get(name, "")) for id, name in parameters.items()}


def _unknown(names: Collection[str], reasons_by_id: Mapping[int, str]) -> str:
    names_text = ", ".join(sorted(names))
    ids_by_reason: dict[str, list[str]] = {}
    for id, reason in sorted(reasons_by_id.items()):
        ids_by_reason.setdefault(reason, []).append(str(id))
    reasons = "; ".join(f"node {', '.join(ids)}: {reason}" for reason, ids in ids_by_reason.items())
    return (
        f"{names_text} would be removed, and whether clients are connected is not known "
        f"({reasons}). Let them use another listener, then set `remove: anyway` in the stack's "
        "file, or a date from which it may be removed"
    )
