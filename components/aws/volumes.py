"""Data volumes that outlive their stack, and how a later stack of that name takes them over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pulumi
import pulumi_aws as aws

from components.aws.tags import STACK
from earshot.errors import SpecError
from earshot.spec.aws import AwsSpec

NODE: Final = "earshot:node"
VOTERS: Final = "earshot:voters"
"""The ids of the quorum: they are in the data, and never change."""


SHOWN: Final = 9
"""Volumes that one warning names."""


def of_volume(spec: AwsSpec, id: int) -> dict[str, str]:
    """What tells later which node's data is on a volume, beside its stack."""
    return {NODE: str(id), VOTERS: _voters(spec)}


def check_given(stack: str, spec: AwsSpec, parent: pulumi.Resource) -> None:
    """Raises SpecError for volumes of ``spec`` that are not there, or hold something else."""
    if not spec.volumes:
        return
    listed = aws.ebs.get_ebs_volumes(
        filters=[_by_id(list(spec.volumes.values()))], opts=pulumi.InvokeOptions(parent=parent)
    )
    found: list[str] = []
    for id, volume in spec.volumes.items():
        if volume not in listed.ids:
            found.append(f"volumes.{id}: {volume} is not in {spec.region}")
            continue
        there = aws.ebs.get_volume(
            filters=[_by_id([volume])], opts=pulumi.InvokeOptions(parent=parent)
        )
        told = f"volumes.{id}: {volume}"
        found += [f"{told} {text}" for text in problems(stack, spec, id, there)]
    if found:
        raise SpecError.of(f"stack {stack}", found)


def idle(stack: str, spec: AwsSpec, parent: pulumi.Resource) -> str:
    """What to say of volumes of ``stack`` that are attached to nothing; empty where there are none.

    An earlier stack of that name has kept them, as a rule; nodes start on blank ones all the same.
    """
    listed = aws.ebs.get_ebs_volumes(
        tags={STACK: stack},
        filters=[{"name": "status", "values": ["available"]}],
        opts=pulumi.InvokeOptions(parent=parent),
    )
    ids = sorted(set(listed.ids) - set(spec.volumes.values()))
    if not ids:
        return ""
    nodes = [f"{_node_of(id, parent)}: {id}" for id in ids[:SHOWN]]
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    return (
        f"volumes of stack {stack} are attached to nothing, by node: {', '.join(nodes)}{more}. If "
        f"an earlier stack has kept them, `volumes: {{{nodes[0]}}}` takes the first over"
    )


def _node_of(id: str, parent: pulumi.Resource) -> str:
    found = aws.ebs.get_volume(filters=[_by_id([id])], opts=pulumi.InvokeOptions(parent=parent))
    return (found.tags or {}).get(NODE, "?")


def problems(stack: str, spec: AwsSpec, id: int, there: Any) -> Iterator[str]:
    """Why node ``id`` must not get the volume ``there``, as AWS describes it."""
    tags: Mapping[str, str] = there.tags or {}
    if (held := tags.get(STACK)) != stack:
        yield (
            f"is of {f'stack {held}' if held else 'no stack'}, and holds data of a cluster with "
            f"another id; allowed: volumes of stack {stack}"
        )
    elif (node := tags.get(NODE)) != str(id):
        yield f"holds the data of node {node or '(unknown)'}; allowed: that of node {id}"
    elif (voters := tags.get(VOTERS)) != _voters(spec):
        yield (
            f"was formatted for a quorum of {voters or '(unknown)'} and would get one of "
            f"{_voters(spec)}; voters are in every node's data, and a static quorum cannot change "
            "them"
        )
    if there.availability_zone != spec.zone_of[id]:
        yield (
            f"is in {there.availability_zone}, and node {id} in {spec.zone_of[id]}; "
            f"keep the node there: `pinned: {{{id}: {there.availability_zone}}}`"
        )
    wanted = spec.volume_of(id).size_gib
    if there.size < wanted:
        yield (
            f"has {there.size} GiB, and `size_gib` asks for {wanted}; ask for less, or enlarge it: "
            f"aws ec2 modify-volume --volume-id {there.volume_id} --size {wanted}"
        )
    if not there.encrypted:
        yield "is not encrypted; copy it by way of an encrypted snapshot"


def _by_id(ids: list[str]) -> Any:
    return {"name": "volume-id", "values": ids}


def _voters(spec: AwsSpec) -> str:
    return ",".join(map(str, spec.controller_ids))
