"""What the providers do in a checkout that was copied or moved, with the state it took along."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.local import cluster_memory, preflight, process, restart
from earshot_pulumi.local.kinds import LocalNodeKind, LocalPreflightKind
from earshot_pulumi.local.process import Launch
from earshot_pulumi.local.process_record import Record, running
from earshot_pulumi.local.readiness import RunningCluster

from earshot.errors import EarshotError
from earshot.jvm.java import Java
from earshot.listeners.render import server_properties
from tests.components.called import Called
from tests.components.local.nodes import node, recorded
from tests.components.local.test_cluster_memory import planned
from tests.raised import raised

KAFKA = Path(".earshot/stacks/local/kafka")


@pytest.fixture
def original(tmp_path: Path) -> Path:
    """A checkout with the data of one node."""
    project = tmp_path / "original"
    (project / KAFKA / "node-1").mkdir(parents=True)
    (project / "Pulumi.yaml").write_text("name: earshot\n")
    cluster_memory.settle(project / KAFKA, planned(brokers=1))
    return project


def props(project: Path, **more: Any) -> dict[str, Any]:
    """As a state holds them."""
    root = project / KAFKA
    common = {"root": str(root), "state_dir": str(root.parent), "data": "keep", "remove": "unused"}
    return {**common, "node_id": 1.0, **more}


def test_a_copy_leaves_the_node_of_the_original_alone(
    original: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    directory, copy = original / KAFKA / "node-1", original.with_name("copy")
    with node(directory) as child:
        record = recorded(directory, Record.of(child.pid, "d"))
        shutil.copytree(original, copy)
        monkeypatch.chdir(copy)
        assert Called(LocalNodeKind()).read(props(original)) is None
        Called(LocalNodeKind()).delete(props(original))
        assert running(directory) == record
        assert capsys.readouterr().out == f"node 1 in {original / KAFKA} runs on\n"
        monkeypatch.chdir(original)
        Called(LocalNodeKind()).delete(props(original))
        assert running(directory) is None


def test_a_moved_checkout_stops_its_node(original: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = original.with_name("moved")
    with node(original / KAFKA / "node-1") as child:
        record = recorded(original / KAFKA / "node-1", Record.of(child.pid, "d"))
        original.rename(moved)
        monkeypatch.chdir(moved)
        read = Called(LocalNodeKind()).read(props(original))
        assert read is not None and read["incarnation"] == record.incarnation
        Called(LocalNodeKind()).delete(props(original))
        assert running(moved / KAFKA / "node-1") is None


def test_a_node_is_not_replaced_while_another_does_not_serve(
    original: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, olds = original / KAFKA / "node-1", props(original, cluster_id="id")
    checked: list[tuple[str, int, Path]] = []

    def check(cluster: RunningCluster, id: int, node_directory: Path) -> None:
        checked.append((cluster.cluster_id, id, node_directory))
        if len(checked) == 1:
            raise EarshotError("node 1 was not stopped")

    monkeypatch.chdir(original)
    monkeypatch.setattr(restart, "check_others", check)
    with node(directory) as child:
        recorded(directory, Record.of(child.pid, "d"))
        raised(EarshotError, Called(LocalNodeKind()).delete_before_replacement, olds)
        assert running(directory) is not None
        Called(LocalNodeKind()).delete_before_replacement(olds)
        assert running(directory) is None
    assert checked == [("id", 1, directory)] * 2


def test_in_a_moved_checkout_no_node_is_started_again_with_the_old_paths(
    original: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka = preflight.Kafka("4.1.1", Java(Path("/java"), Path("/java/bin/java"), "17.0.1"), ())
    monkeypatch.setattr(preflight, "find_kafka", lambda *_, **__: kafka)
    launches: list[Launch | None] = []

    def restarted(_root: Path, wanted: Launch, previous: Launch | None, *_: Any) -> Record:
        launches.append(previous)
        return Record(1, 1.0, wanted.digest)

    monkeypatch.setattr(restart, "restart", restarted)
    olds = props(original, properties="a=1\n", heap="1g", kafka_version="4.1.1", cluster_id="id")
    moved = original.with_name("moved")
    for place in (original, moved):
        if place == moved:
            original.rename(moved)
        monkeypatch.chdir(place)
        Called(LocalNodeKind()).update(olds, olds)
    first, second = launches
    assert first is not None and first.properties == "a=1\n"
    assert second is None, "it names the data where they were"


def test_a_node_that_no_state_knows_is_not_stopped_for_what_cannot_be_started(
    original: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka = preflight.Kafka("4.1.1", Java(Path("/java"), Path("/java/bin/java"), "17.0.1"), ())
    monkeypatch.setattr(preflight, "find_kafka", lambda *_, **__: kafka)
    monkeypatch.chdir(original)
    inputs = props(original, properties="a=1\n", heap="1g", kafka_version="4.1.1", cluster_id="id")
    directory = original / KAFKA / "node-1"
    with node(directory) as child:
        recorded(directory, Record.of(child.pid, "other settings"))
        with pytest.raises(EarshotError, match="/java/bin/java"):
            Called(LocalNodeKind()).create(inputs)
        assert running(directory) is not None


@pytest.mark.parametrize("change", [{}, {"heap": "2g"}, {"certificate": "other"}])
def test_a_node_that_was_killed_or_started_otherwise_is_changed_although_the_state_is_not(
    original: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, str]
) -> None:
    monkeypatch.chdir(original)
    decides = {"properties": "a=1\n", "heap": "1g", "kafka_version": "4.1.1"}
    inputs = props(original, cluster_id="id", **decides)
    assert Called(LocalNodeKind()).differs(inputs, inputs), "nothing runs"
    directory = original / KAFKA / "node-1"
    with node(directory) as child:
        runs = {**decides, "certificate": "", **change}
        recorded(directory, Record.of(child.pid, process.digest(*runs.values())))
        assert Called(LocalNodeKind()).differs(inputs, inputs) is bool(change)
        assert Called(LocalNodeKind()).differs(inputs, {**inputs, "heap": "3g"})


def test_a_copy_that_deletes_its_data_keeps_the_data_of_the_original(
    original: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = original.with_name("copy")
    shutil.copytree(original, copy)
    monkeypatch.chdir(copy)
    Called(LocalPreflightKind()).delete(props(original, data="delete"))
    assert (original / KAFKA / "node-1").is_dir()
    assert not (copy / KAFKA).exists()


def test_the_data_of_a_broker_that_runs_are_not_deleted(
    original: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(original)
    monkeypatch.setattr(cluster_memory, "running", lambda directory: object())
    Called(LocalPreflightKind()).delete(props(original, data="delete"))
    assert (original / KAFKA / "node-1").is_dir()


def test_a_memory_that_cannot_be_made_again_stops_the_preview_and_not_the_removal(
    original: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(original)
    for id in (1, 2):
        log = original / KAFKA / f"node-{id}" / "log"
        log.mkdir(parents=True)
        (log / "meta.properties").write_text(f"cluster.id=cluster-{id}\nnode.id={id}\n")
    (original / KAFKA / "cluster.json").write_text("")
    plan = planned(brokers=1).model_dump(mode="json")
    (failure,) = Called(LocalPreflightKind()).check({}, props(original, plan=plan)).failures
    assert "the nodes contradict each other about the cluster.id" in failure
    Called(LocalNodeKind()).delete(props(original))
    Called(LocalPreflightKind()).delete(props(original))


def test_a_memory_that_was_made_again_is_told(
    original: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(original)
    monkeypatch.setattr(preflight, "prepare", lambda *_: None)
    plan, root = planned(brokers=1), original / KAFKA
    (root / "node-1" / "log").mkdir()
    (root / "node-1" / "log" / "meta.properties").write_text("cluster.id=kept\nnode.id=1\n")
    (root / "node-1" / "server.properties").write_text(server_properties(plan, plan.node(1)))
    (root / "cluster.json").write_text("")
    made = Called(LocalPreflightKind()).create(props(original, plan=plan.model_dump(mode="json")))
    assert made.id == "kept"
    assert capsys.readouterr().out == (
        f"cluster.json in {root} was lost; made again from the nodes' own files\n"
    )


def test_a_cluster_of_the_state_whose_folder_is_gone_is_not_started_empty(
    original: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(original)
    root, plan = original / KAFKA, planned(brokers=1)
    news = props(original, plan=plan.model_dump(mode="json"))
    olds = {**news, "cluster_id": "former"}
    provider = Called(LocalPreflightKind())
    assert not provider.differs(olds, news)
    shutil.rmtree(root)
    # Pulumi compares resources in `destroy --target`, too, which must remain possible
    assert provider.differs(olds, news)
    assert str(raised(EarshotError, provider.update, olds, news)) == (
        f"nothing was changed: data of cluster former in {root}: is gone, and the state of this "
        "stack has the cluster: the update would start an empty one\n"
        "  fix: put the folder back from a copy, or run this in the checkout that has it; for an "
        "empty cluster instead, `pulumi destroy`, then the same command again"
    )


@pytest.mark.parametrize(("remove", "refusal"), [("unused", "\n- in use"), ("anyway", "")])
def test_clients_of_a_listener_that_goes_count_unless_it_is_to_go_anyway(
    original: Path, monkeypatch: pytest.MonkeyPatch, remove: str, refusal: str
) -> None:
    monkeypatch.chdir(original)
    monkeypatch.setattr(preflight, "client_problems", lambda *_: iter(["in use"]))
    plan = planned(brokers=1).model_dump(mode="json")
    checked = Called(LocalPreflightKind()).check({}, props(original, plan=plan, remove=remove))
    assert "".join(checked.failures) == refusal
