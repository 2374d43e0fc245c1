"""Data volumes that outlive their stack, and the checks before a later stack uses them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pulumi
import pulumi_aws as aws

from earshot.config.aws import AwsSpec
from earshot.errors import SpecError
from earshot.listeners.cluster_id import of_stack_name
from earshot_pulumi.aws.tags import STACK
from earshot_pulumi.unknown_inputs import is_marker

NODE: Final = "earshot:node"
VOTERS: Final = "earshot:voters"
"""The ids of the voters, which are in the data and never change."""
CLUSTER: Final = "earshot:cluster-id"
"""Earlier releases set none: they derived the id from the stack's name."""

MAX_SHOWN: Final = 9
"""Maximum number of volumes in one warning."""


def of_volume(spec: AwsSpec, id: int, cluster_id: str) -> dict[str, str]:
    """Tags of a data volume in addition to its stack's: its node, and the voters and cluster of its
    data."""
    return {NODE: str(id), VOTERS: _voters(spec), CLUSTER: cluster_id}


def attached_id(stack: str, parent: pulumi.Resource) -> str | None:
    """The id of the cluster whose data is on volumes attached to ``stack``'s instances, or None."""
    ids = _of_stack(stack, "in-use", parent)
    return _id_of(_volume(min(ids), parent).tags or {}) if ids else None


def check_given(stack: str, spec: AwsSpec, cluster_id: str | None, parent: pulumi.Resource) -> None:
    """Raises SpecError for volumes of ``spec`` that do not exist, or have other data.

    ``cluster_id`` is that of the cluster, if the stack's file or attached volumes decide it.
    """
    if not spec.volumes or any(map(is_marker, spec.volumes.values())):
        return  # a preview that does not know them
    volumes = aws.ebs.get_ebs_volumes(
        filters=[_by_id(spec.volumes.values())], opts=pulumi.InvokeOptions(parent=parent)
    )
    reasons: list[str] = []
    for id, volume in spec.volumes.items():
        texts: Iterable[str] = [f"is not in {spec.region}"]
        if volume in volumes.ids:
            texts = problems(stack, spec, id, cluster_id, _volume(volume, parent))
        reasons += [f"volumes.{id}: {volume} {text}" for text in texts]
    if reasons:
        raise SpecError.of(f"stack {stack}", reasons)


def idle(
    stack: str,
    spec: AwsSpec,
    cluster_id: str | None,
    own: Collection[str],
    parent: pulumi.Resource,
) -> str:
    """A warning about volumes of ``stack`` that are not attached; empty without any.

    Usually an earlier stack of that name has kept them, and the nodes start on blank ones. The
    volumes ``own`` are in the stack's state, and are attached by this update.
    """
    ids = sorted(set(_of_stack(stack, "available", parent)) - {*spec.volumes.values(), *own})
    if not ids:
        return ""
    tag_maps = [_volume(id, parent).tags or {} for id in ids[:MAX_SHOWN]]
    first_id = _id_of(tag_maps[0])
    key = f" and `cluster_id: {first_id}`" if first_id != cluster_id else ""
    nodes = [
        f"{volume_tags.get(NODE, '?')}: {id}"
        for id, volume_tags in zip(ids, tag_maps, strict=False)
    ]
    more_text = f" and {len(ids) - MAX_SHOWN} more" if len(ids) > MAX_SHOWN else ""
    return (
        f"volumes of stack {stack} are not attached, by node: {', '.join(nodes)}{more_text}. If an "
        f"earlier stack has kept them, set `volumes: {{{nodes[0]}}}`{key} to use the first one"
    )


def _of_stack(stack: str, status: str, parent: pulumi.Resource) -> Sequence[str]:
    return aws.ebs.get_ebs_volumes(
        tags={STACK: stack},
        filters=[{"name": "status", "values": [status]}],
        opts=pulumi.InvokeOptions(parent=parent),
    ).ids


def _volume(id: str, parent: pulumi.Resource) -> aws.ebs.GetVolumeResult:
    return aws.ebs.get_volume(filters=[_by_id([id])], opts=pulumi.InvokeOptions(parent=parent))


def _id_of(tags: Mapping[str, str]) -> str:
    """The id of the cluster whose data is on a volume with these ``tags``."""
    return tags.get(CLUSTER) or of_stack_name(tags[STACK])


def problems(
    stack: str, spec: AwsSpec, id: int, cluster_id: str | None, volume: Any
) -> Iterator[str]:
    """Why node ``id`` must not get ``volume``, a description from AWS."""
    tags: Mapping[str, str] = volume.tags or {}
    if not tags.get(STACK):
        yield f"has no tag of a stack; allowed: volumes of stack {stack}"
    elif (volume_cluster := _id_of(tags)) != cluster_id:
        owner = f"is of stack {tags[STACK]}, and " if tags[STACK] != stack else ""
        yield (
            f"{owner}has data of cluster {volume_cluster}"
            + (f"; the cluster of this stack is {cluster_id}" if cluster_id else "")
            + f". A new stack can use it with `cluster_id: {volume_cluster}`"
        )
    elif (node := tags.get(NODE)) != str(id):
        yield f"has the data of node {node or '(unknown)'}; allowed: that of node {id}"
    elif (voters := tags.get(VOTERS)) != _voters(spec):
        yield (
            f"was formatted for a quorum of {voters or '(unknown)'} and would get one of "
            f"{_voters(spec)}; voters are in every node's data, and a static quorum cannot change "
            "them"
        )
    if volume.availability_zone != spec.zone_of[id]:
        yield (
            f"is in {volume.availability_zone}, and node {id} in {spec.zone_of[id]}; "
            f"keep the node there: `pinned: {{{id}: {volume.availability_zone}}}`"
        )
    size = spec.volume_of(id).size_gib
    if volume.size < size:
        yield (
            f"has {volume.size} GiB, and `size_gib` asks for {size}; ask for less, or enlarge it: "
            f"aws ec2 modify-volume --volume-id {volume.volume_id} --size {size}"
        )
    if not volume.encrypted:
        yield "is not encrypted; copy it through an encrypted snapshot"


def _by_id(ids: Iterable[str]) -> Any:
    return {"name": "volume-id", "values": list(ids)}


def _voters(spec: AwsSpec) -> str:
    return ",".join(map(str, spec.controller_ids))
