"""A cluster is known again from its nodes' own files."""

from pathlib import Path

import pytest
from earshot_pulumi.local import cluster_memory, reconstruction
from earshot_pulumi.local.reconstruction import ClusterMemory

from earshot.errors import EarshotError
from earshot.listeners.render import server_properties
from tests.components.local.test_cluster_memory import PORTS, planned
from tests.raised import raised

ID = "ZWFyc2hvdC10ZXN0cy1ydQ"
CONTROLLERS = PORTS["CONTROLLER"]
VOTERS = {str(id): f"localhost:{CONTROLLERS + id - 1}" for id in (1, 2, 3)}


def formatted(root: Path, id: int, cluster_id: str = ID, server: str | None = None) -> None:
    """A node's directory as Kafka and earshot leave it."""
    directory = root / f"node-{id}"
    (directory / "log").mkdir(parents=True)
    meta = f"#\n#Sun Nov 22 08:52:27 UTC 2026\ncluster.id={cluster_id}\nnode.id={id}\nversion=1\n"
    (directory / "log" / "meta.properties").write_text(meta)
    if server is None:
        plan = planned()
        server = server_properties(plan, plan.node(id))
    (directory / "server.properties").write_text(server)


def refusal(root: Path) -> str:
    error = raised(EarshotError, reconstruction.reconstruct, root)
    return str(error)


def test_without_data_there_is_no_cluster(tmp_path: Path) -> None:
    (tmp_path / "node-1" / "log").mkdir(parents=True)
    assert reconstruction.reconstruct(tmp_path) is None
    assert reconstruction.reconstruct(tmp_path / "none") is None
    assert cluster_memory.recall(tmp_path) is None


def test_the_nodes_tell_what_was_lost(tmp_path: Path) -> None:
    for id in (1, 2, 3):
        formatted(tmp_path, id)
    version = planned().kafka_version
    assert reconstruction.reconstruct(tmp_path) == ClusterMemory(
        ID, VOTERS, version, (1, 2, 3), serving=True, served=False
    )


@pytest.mark.parametrize("text", [None, "", "{", '{"cluster_id": "x"}'])
def test_a_lost_memory_keeps_the_cluster_id(tmp_path: Path, text: str | None) -> None:
    former = cluster_memory.settle(tmp_path, planned())
    for id in (1, 2, 3):
        formatted(tmp_path, id, former.cluster_id)
    file = tmp_path / "cluster.json"
    file.unlink() if text is None else file.write_text(text)
    assert cluster_memory.recall(tmp_path) == ClusterMemory(
        former.cluster_id, VOTERS, former.kafka_version, (1, 2, 3), serving=True, served=False
    )
    assert cluster_memory.settle(tmp_path, planned()).cluster_id == former.cluster_id
    assert cluster_memory.read_memory(tmp_path) is not None


def test_one_node_that_tells_is_enough(tmp_path: Path) -> None:
    formatted(tmp_path, 1, server="")
    formatted(tmp_path, 2)
    assert reconstruction.reconstruct(tmp_path) == ClusterMemory(
        ID, VOTERS, planned().kafka_version, (1, 2), serving=True, served=False
    )


def test_of_several_versions_the_newest_counts(tmp_path: Path) -> None:
    for id, version in ((1, "4.9.1"), (2, "4.10.0"), (3, "4.9.1")):
        plan = planned(kafka_version=version)
        formatted(tmp_path, id, server=server_properties(plan, plan.node(id)))
    memory = reconstruction.reconstruct(tmp_path)
    assert memory is not None and memory.kafka_version == "4.10.0"


def test_a_voter_s_own_address_counts(tmp_path: Path) -> None:
    for id, port in ((1, 14001), (2, 14001), (3, CONTROLLERS)):
        plan = planned(controllers={"port": port})
        formatted(tmp_path, id, server=server_properties(plan, plan.node(id)))
    memory = reconstruction.reconstruct(tmp_path)
    assert memory is not None
    assert memory.voters == VOTERS | {"1": "localhost:14001", "2": "localhost:14002"}


def test_controllers_of_their_own_are_no_brokers(tmp_path: Path) -> None:
    plan = planned(brokers=1, controllers={"mode": "separate", "count": 1})
    for node in plan.nodes:
        formatted(tmp_path, node.id, server=server_properties(plan, node))
    memory = reconstruction.reconstruct(tmp_path)
    assert memory is not None and memory.brokers == (1,)


def test_two_clusters_are_refused(tmp_path: Path) -> None:
    formatted(tmp_path, 1)
    formatted(tmp_path, 2, "another-cluster")
    assert refusal(tmp_path) == (
        f"cluster.json in {tmp_path}: is missing or unreadable, and cannot be made again: the "
        f"nodes contradict each other about the cluster.id (node-1: {ID}; "
        "node-2: another-cluster)\n"
        "  fix: put cluster.json back from a copy, or move away the directories that do not "
        "belong there; `data: delete` and `pulumi destroy` remove all data"
    )


def test_other_voters_are_refused(tmp_path: Path) -> None:
    formatted(tmp_path, 1)
    plan = planned(brokers=1)
    formatted(tmp_path, 2, server=server_properties(plan, plan.nodes[0]))
    assert "about the voters (node-1: 1, 2, 3; node-2: 1)" in refusal(tmp_path)


def test_the_data_of_another_node_is_refused(tmp_path: Path) -> None:
    formatted(tmp_path, 1)
    (tmp_path / "node-1").rename(tmp_path / "node-2")
    assert f"the data in {tmp_path / 'node-2'} is of node 1" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("cluster_id", "server", "what"),
    [
        ("", None, "no node's files contain the cluster.id\n"),
        (ID, "", "no node's files contain the voters"),
        (ID, "controller.quorum.voters=1@h:1\n",
         "no node's server.properties contains its version of Kafka\n"),
    ],
    ids=["the cluster's id", "voters", "the release"],
)  # fmt: skip
def test_what_no_node_tells_is_named_and_not_guessed(
    tmp_path: Path, cluster_id: str, server: str | None, what: str
) -> None:
    formatted(tmp_path, 1, cluster_id, server)
    assert f"cannot be made again: {what}" in refusal(tmp_path)


def test_a_node_that_does_not_tell_its_roles_is_told_by_its_id(tmp_path: Path) -> None:
    formatted(tmp_path, 2)
    for id in (10_000, 10_001):
        formatted(tmp_path, id, server="")
    (tmp_path / "node-2" / "server.properties").unlink()
    plan = planned()
    text = server_properties(plan, plan.node(1))
    formatted(tmp_path, 1, server=text)
    memory = reconstruction.reconstruct(tmp_path)
    assert memory is not None and memory.brokers == (1, 2, 10_000)


def test_only_folders_of_nodes_count(tmp_path: Path) -> None:
    formatted(tmp_path, 1)
    other = tmp_path / "node-old" / "log"
    other.mkdir(parents=True)
    (other / "meta.properties").write_text("cluster.id=x\n")
    assert reconstruction.stored_values(tmp_path, "cluster.id") == {"node-1": ID}
    formatted(tmp_path, 2, cluster_id="")
    assert reconstruction.stored_values(tmp_path, "cluster.id") == {"node-1": ID}


def test_a_file_that_cannot_be_read_is_one_clear_error(tmp_path: Path) -> None:
    formatted(tmp_path, 1)
    file = tmp_path / "node-1" / "server.properties"
    file.unlink()
    file.mkdir()
    error = raised(EarshotError, reconstruction.reconstruct, tmp_path)
    assert str(error) == f"{file}: cannot be read (Is a directory)"
