"""What an AWS stack keeps: its voters, brokers that may hold replicas, volumes that outlive it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.aws.server import REGION, MotoServer
from tests.e2e.aws_stack import Stack, aws_stack, cluster

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(600)]

OPEN: dict[str, Any] = {"deletion_protection": False}


@pytest.fixture
def stack(server: MotoServer, tmp_path: Path) -> Iterator[Stack]:
    with aws_stack(server, tmp_path) as found:
        yield found


def ids(stack: Stack) -> set[str]:
    """Of the instances that run and the volumes that are there."""
    instances = {str(instance["InstanceId"]) for instance in stack.instances().values()}
    return instances | {*stack.volumes().values()}


def test_a_later_stack_takes_over_what_an_earlier_one_has_kept(stack: Stack) -> None:
    stack.configure(cluster(**OPEN))
    stack.project.up()
    kept = stack.volumes()["test-broker-1"]
    own = stack.project.outputs()["contract"]["cluster_id"]
    assert "unchanged" in stack.project.up("--refresh", "--expect-no-changes")
    stack.project.destroy()
    assert stack.volumes() == {"test-broker-1": kept}
    advice = f"`volumes: {{1: {kept}}}` and `cluster_id: {own}` to use the first one"
    assert advice in stack.project.runs("preview")

    stack.configure(cluster(volumes={1: kept}, **OPEN))
    output = stack.project.fails(command="preview")
    assert f"{kept} has data of cluster {own}. A new stack can use it with" in output
    stack.configure(cluster(2, volumes={2: kept}, cluster_id=own, **OPEN))
    assert f"volumes.2: {kept} has the data of node 1" in stack.project.fails(command="preview")
    pinned = {1: f"{REGION}b"}
    stack.configure(cluster(volumes={1: kept}, pinned=pinned, cluster_id=own, **OPEN))
    output = stack.project.fails()
    assert f"is in {REGION}a, and node 1 in {REGION}b" in output
    assert not stack.instances()

    wanted = cluster(volumes={1: kept}, cluster_id=own, **OPEN)
    stack.configure(wanted)
    stack.project.up()
    assert stack.project.outputs()["contract"]["cluster_id"] == own
    stack.configure(cluster(volumes={1: kept}, cluster_id="b3RoZXItdGVzdHMtY2x1cw", **OPEN))
    output = stack.project.fails(command="preview")
    assert "the cluster of this stack is b3RoZXItdGVzdHMtY2x1cw" in output
    stack.configure(wanted)
    (running,) = stack.instances().values()
    attached = [mapping["Ebs"]["VolumeId"] for mapping in running["BlockDeviceMappings"]]
    assert kept in attached and stack.volumes() == {"test-broker-1": kept}
    assert stack.project.outputs()["ids"]["1"]["volume"] == kept
    output = stack.project.up("--refresh", "--expect-no-changes")
    assert "unchanged" in output and "are not attached" not in output

    stack.configure(cluster(**OPEN))
    assert "node 1 would start on blank volumes" in stack.project.fails(command="preview")
    stack.configure(cluster(volumes={1: kept}, data="delete", **OPEN))
    stack.project.up()
    stack.project.destroy()
    assert stack.volumes() == {"test-broker-1": kept}, "it was never the stack's own"


def test_what_would_lose_replicas_is_refused_before_an_instance_is_touched(stack: Stack) -> None:
    stack.configure(cluster(2, data="delete", **OPEN))
    stack.project.up()
    there = ids(stack)

    stack.configure(cluster(1, heap="2g", data="delete", **OPEN))
    assert "broker 2 would be removed" in stack.project.fails(command="preview")
    output = stack.project.fails()
    assert "kafka-reassign-partitions.sh" in output and "drained: [2]" in output
    stack.configure(cluster(3, data="delete", **OPEN))
    output = stack.project.fails()
    assert "the quorum has the voters 1 and would get 1, 2, 3" in output
    assert ids(stack) == there

    stack.configure(cluster(1, drained=[2], data="delete", **OPEN))
    stack.project.up()
    assert list(stack.instances()) == ["test-broker-1"]
    assert list(stack.volumes()) == ["test-broker-1"]
    stack.configure(cluster(1, data="delete", **OPEN))
    stack.project.up()
