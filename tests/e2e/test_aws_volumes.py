"""An AWS stack keeps its voters, brokers that may have replicas, and volumes that outlive it."""

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
    with aws_stack(server, tmp_path) as new_stack:
        yield new_stack


def ids(stack: Stack) -> set[str]:
    """Of the instances that run and the volumes that are there."""
    instances = {str(instance["InstanceId"]) for instance in stack.instances().values()}
    return instances | {*stack.volumes().values()}


def test_a_later_stack_takes_over_what_an_earlier_one_has_kept(stack: Stack) -> None:
    stack.configure(cluster(**OPEN))
    stack.project.up()
    kept_volume = stack.volumes()["test-broker-1"]
    cluster_id = stack.project.outputs()["contract"]["cluster_id"]
    assert "unchanged" in stack.project.up("--refresh", "--expect-no-changes")
    stack.project.destroy()
    assert stack.volumes() == {"test-broker-1": kept_volume}
    advice = f"`volumes: {{1: {kept_volume}}}` and `cluster_id: {cluster_id}` to use the first one"
    assert advice in stack.project.run("preview")

    stack.configure(cluster(volumes={1: kept_volume}, **OPEN))
    output = stack.project.failed_output(command="preview")
    assert f"{kept_volume} has data of cluster {cluster_id}. A new stack can use it with" in output
    stack.configure(cluster(2, volumes={2: kept_volume}, cluster_id=cluster_id, **OPEN))
    assert f"volumes.2: {kept_volume} has the data of node 1" in stack.project.failed_output(
        command="preview"
    )
    pinned_zones = {1: f"{REGION}b"}
    stack.configure(
        cluster(volumes={1: kept_volume}, pinned=pinned_zones, cluster_id=cluster_id, **OPEN)
    )
    output = stack.project.failed_output()
    assert f"is in {REGION}a, and node 1 in {REGION}b" in output
    assert not stack.instances()

    settings_with_volume = cluster(volumes={1: kept_volume}, cluster_id=cluster_id, **OPEN)
    stack.configure(settings_with_volume)
    stack.project.up()
    assert stack.project.outputs()["contract"]["cluster_id"] == cluster_id
    stack.configure(cluster(volumes={1: kept_volume}, cluster_id="b3RoZXItdGVzdHMtY2x1cw", **OPEN))
    output = stack.project.failed_output(command="preview")
    assert "the cluster of this stack is b3RoZXItdGVzdHMtY2x1cw" in output
    stack.configure(settings_with_volume)
    (instance,) = stack.instances().values()
    attached_volumes = [mapping["Ebs"]["VolumeId"] for mapping in instance["BlockDeviceMappings"]]
    assert kept_volume in attached_volumes and stack.volumes() == {"test-broker-1": kept_volume}
    assert stack.project.outputs()["ids"]["1"]["volume"] == kept_volume
    output = stack.project.up("--refresh", "--expect-no-changes")
    assert "unchanged" in output and "are not attached" not in output

    stack.configure(cluster(**OPEN))
    assert "node 1 would start on blank volumes" in stack.project.failed_output(command="preview")
    stack.configure(cluster(volumes={1: kept_volume}, data="delete", **OPEN))
    stack.project.up()
    stack.project.destroy()
    assert stack.volumes() == {"test-broker-1": kept_volume}, "it was never the stack's own"


def test_what_would_lose_replicas_is_refused_before_an_instance_is_touched(stack: Stack) -> None:
    stack.configure(cluster(2, data="delete", **OPEN))
    stack.project.up()
    old_ids = ids(stack)

    stack.configure(cluster(1, heap="2g", data="delete", **OPEN))
    assert "broker 2 would be removed" in stack.project.failed_output(command="preview")
    output = stack.project.failed_output()
    assert "kafka-reassign-partitions.sh" in output and "drained: [2]" in output
    stack.configure(cluster(3, data="delete", **OPEN))
    output = stack.project.failed_output()
    assert "the quorum has the voters 1 and would get 1, 2, 3" in output
    assert ids(stack) == old_ids

    stack.configure(cluster(1, drained=[2], data="delete", **OPEN))
    stack.project.up()
    assert list(stack.instances()) == ["test-broker-1"]
    assert list(stack.volumes()) == ["test-broker-1"]
    stack.configure(cluster(1, data="delete", **OPEN))
    stack.project.up()
