"""Changing one node: what is done in which order; processes and brokers are doubles."""

import fcntl
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from earshot_pulumi.driver import CatchingUp
from earshot_pulumi.local import cluster_memory, restart
from earshot_pulumi.local.preflight import Kafka
from earshot_pulumi.local.process import Launch
from earshot_pulumi.local.process_record import Record
from earshot_pulumi.local.readiness import RunningCluster

from earshot.errors import EarshotError
from earshot.jvm.java import Java
from earshot.listeners.render import server_properties
from tests.components.local.test_cluster_memory import planned
from tests.raised import raised

PLAN = planned()
FAILURE = EarshotError(
    "node 1 did not come up", observed="KafkaException: no\n  logs: /log", remedy="see there"
)


def launch(root: Path, heap: str) -> Launch:
    properties = server_properties(PLAN, PLAN.nodes[0])
    return Launch(1, root / "node-1", properties, heap, "4.1.1", Path("/java"), ())


@dataclass
class NodeDouble:
    """Stands for the process of node 1 and for what is seen of its broker."""

    runs: Launch | None
    serving: bool = True
    answers: bool = False
    """Whether a broker serves although no update has seen that."""
    behind: bool = False
    """Whether another node is not in sync."""
    ended: list[int] = field(default_factory=list)
    """Other nodes that do not run."""
    suspended: list[int] = field(default_factory=list)
    """Processes of other nodes that a signal holds."""
    fails: dict[str, EarshotError] = field(default_factory=dict)
    """By heap, why a node that was started with it does not come up."""
    full: bool = False
    """Whether the disk has no room left."""
    mute: bool = False
    """Whether Java does not run."""
    unstartable: tuple[str, ...] = ()
    """Heaps with which it cannot even be started."""
    calls: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    """The settings with which it was started, if they are not to be generated again."""

    def running(self, directory: Path) -> Record | None:
        return None if self.runs is None else Record(1, 1.0, self.runs.digest)

    def check_room(self, launch: Launch) -> None:
        assert self.runs is not None
        if self.full:
            raise EarshotError("node 1", observed="cannot be written (No space left on device)")

    def check_java(self, launch: Launch) -> None:
        assert self.runs is not None
        if self.mute:
            raise EarshotError("node 1: /java", observed="does not run with a heap of 512m")

    def stop(self, directory: Path, grace: float) -> bool:
        self.calls.append(f"stop {grace:.0f}")
        self.runs = None
        return True

    def start(self, launch: Launch, cluster_id: str) -> Record:
        self.calls.append(f"start {launch.heap}")
        if launch.heap in self.unstartable:
            raise EarshotError("node 1", observed="cannot be written (No space left on device)")
        self.runs = launch
        self.texts.append(launch.started_with)
        return Record(2, 2.0, launch.digest)

    def wait_for(self, cluster: RunningCluster, nodes: Sequence[int]) -> None:
        assert self.runs is not None and cluster.cluster_id == "id"
        self.is_locked(cluster.root)
        self.calls.append(f"wait {nodes}")
        if self.runs.heap in self.fails:
            raise self.fails[self.runs.heap]

    def wait_for_others(self, cluster: RunningCluster, id: int) -> None:
        if self.behind:
            raise EarshotError("node 2", observed="not ready after 120 s")

    def is_locked(self, root: Path) -> None:
        with (root / restart.LOCK).open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NodeDouble:
    """A node that runs with a heap of 256m."""
    double = NodeDouble(launch(tmp_path, "256m"))
    for name in ("running", "stop", "start", "check_room", "check_java"):
        monkeypatch.setattr(restart, name, getattr(double, name))
    monkeypatch.setattr(RunningCluster, "wait_for", lambda *it: double.wait_for(*it))
    monkeypatch.setattr(RunningCluster, "wait_for_others", lambda *it: double.wait_for_others(*it))
    monkeypatch.setattr(RunningCluster, "serves_clients", lambda _: double.answers)
    monkeypatch.setattr(cluster_memory, "serves", lambda _: double.serving)
    monkeypatch.setattr(cluster_memory, "majority_runs", lambda _: double.serving or double.answers)
    monkeypatch.setattr(cluster_memory, "ended", lambda _, except_id: double.ended)
    monkeypatch.setattr(cluster_memory, "suspended", lambda _, except_id: double.suspended)
    return double


WAIT = "wait [1]"


def changed(root: Path, node: NodeDouble, previous: Launch | None = None) -> Record:
    former = previous or launch(root, "256m")
    return restart.restart(RunningCluster(root, "id"), launch(root, "512m"), former)


def test_a_node_is_stopped_started_and_waited_for(tmp_path: Path, node: NodeDouble) -> None:
    assert changed(tmp_path, node).pid == 2
    assert node.calls == ["stop 30", "start 512m", WAIT]


def test_without_a_quorum_there_is_no_wait(tmp_path: Path, node: NodeDouble) -> None:
    node.serving = False
    node.fails["512m"] = FAILURE
    changed(tmp_path, node)
    assert node.calls == ["stop 3", "start 512m"]


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ({"ended": [2, 3]},
         ("down already: node 2, 3; with one more node down, brokers could refuse writes\n"
          "  fix: run the same command again: it starts node 2, 3 first")),
        ({"suspended": [12, 34]},
         ("suspended by a signal: process 12 34; with one more node down, brokers could refuse "
          "writes\n  fix: continue it (`kill -CONT 12 34`), then run the same command again")),
        ({"behind": True},
         ("not in sync: node 2; with one more node down, brokers could refuse writes\n"
          "  fix: wait until they are in sync, then run the same command again; if they cannot "
          "be, stop the cluster first (`pulumi destroy`; with `data: keep` it keeps the data)")),
    ],
    ids=["down", "suspended", "not in sync"],
)  # fmt: skip
def test_no_node_is_stopped_while_another_does_not_serve(
    tmp_path: Path, node: NodeDouble, others: dict[str, object], reason: str
) -> None:
    vars(node).update(others)
    error = raised(EarshotError, changed, tmp_path, node)
    assert str(error) == f"node 1 was not stopped: {reason}"
    assert node.calls == []
    # Pulumi stops a node before it replaces it
    cluster, directory = RunningCluster(tmp_path, "id"), launch(tmp_path, "256m").directory
    error = raised(EarshotError, restart.check_others, cluster, 1, directory)
    assert str(error) == f"node 1 was not stopped: {reason}"
    node.runs = None  # this one is to be started, not to be stopped
    restart.check_others(cluster, 1, directory)
    changed(tmp_path, node)
    assert node.calls == ["stop 30", "start 512m", WAIT]


def test_a_cluster_that_serves_after_an_interrupted_start_changes_one_node_at_a_time(
    tmp_path: Path, node: NodeDouble
) -> None:
    cluster_memory.settle(tmp_path, PLAN)
    node.serving, node.answers = False, True
    changed(tmp_path, node)
    assert node.calls == ["stop 30", "start 512m", WAIT]
    memory = cluster_memory.recall(tmp_path)
    assert memory is not None and memory.serving


def test_brokers_of_a_first_start_are_not_asked_before_the_next_one_starts(
    tmp_path: Path, node: NodeDouble
) -> None:
    """They answer only when a majority runs, and each would take seconds."""
    cluster_memory.settle(tmp_path, PLAN)
    node.serving, node.answers, node.runs = False, True, None
    changed(tmp_path, node)
    memory = cluster_memory.recall(tmp_path)
    assert memory is not None and not memory.serving


def test_one_that_runs_so_already_is_left_alone(tmp_path: Path, node: NodeDouble) -> None:
    node.runs = launch(tmp_path, "512m")
    assert changed(tmp_path, node).pid == 1
    assert node.calls == [WAIT]


def test_one_that_does_not_come_up_is_started_again_as_it_was(
    tmp_path: Path, node: NodeDouble
) -> None:
    node.fails["512m"] = FAILURE
    assert str(raised(EarshotError, changed, tmp_path, node)) == (
        "node 1 did not come up: KafkaException: no\n"
        "  logs: /log\n"
        "  it was started again with its former settings and serves; the nodes after it did not "
        "change\n"
        "  fix: see there"
    )
    assert node.calls == ["stop 30", "start 512m", WAIT, "stop 3", "start 256m", WAIT]


def test_it_gets_the_files_back_with_which_it_ran(tmp_path: Path, node: NodeDouble) -> None:
    """Those that its settings name may have changed since: its own copies are in this text."""
    node.fails["512m"] = FAILURE
    settings = tmp_path / "node-1" / "server.properties"
    settings.parent.mkdir()
    settings.write_text("ssl.keystore.location=/node-1/files/1-node-1.pem")
    with pytest.raises(EarshotError):
        changed(tmp_path, node)
    assert node.texts == ["", settings.read_text()]


def test_one_that_does_not_come_up_again_either_says_so(tmp_path: Path, node: NodeDouble) -> None:
    again = EarshotError("node 1 did not come up", observed="DiskException: full")
    node.fails |= {"512m": FAILURE, "256m": again}
    assert (
        "\n  it was started again with its former settings, and node 1 did not come up: "
        "DiskException: full\n" in str(raised(EarshotError, changed, tmp_path, node))
    )


def test_one_that_only_has_to_catch_up_is_left_to_the_next_wait(
    tmp_path: Path, node: NodeDouble
) -> None:
    node.fails["512m"] = CatchingUp("broker 1", observed="is not in sync")
    assert changed(tmp_path, node).pid == 2
    assert node.calls == ["stop 30", "start 512m", WAIT]


def test_a_node_that_did_not_run_is_not_started_with_former_settings(
    tmp_path: Path, node: NodeDouble
) -> None:
    node.fails["512m"] = FAILURE
    node.runs = None
    assert raised(EarshotError, changed, tmp_path, node) is FAILURE
    assert node.calls == ["stop 30", "start 512m", WAIT]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The node's process shows its heap, and its Kafka is there."""
    process = SimpleNamespace(cmdline=lambda: ["/java", "-Xmx256m", "-cp", "jars"])
    monkeypatch.setattr(psutil, "Process", lambda pid: process)
    kafka = Kafka("4.1.1", Java(Path("/"), Path("/java"), "17"), ())
    monkeypatch.setattr(restart, "find_kafka", lambda version, fetching: kafka)


@pytest.mark.usefixtures("shown")
@pytest.mark.parametrize("previous", [None, "1g"])
def test_a_node_is_put_back_as_it_ran_if_the_state_does_not_have_its_settings(
    previous: str | None, tmp_path: Path, node: NodeDouble
) -> None:
    """After an interrupted update, or with a lost or older state."""
    node.fails["512m"] = FAILURE
    runs = replace(launch(tmp_path, "256m"), certificate="of the interrupted update")
    node.runs = runs
    runs.directory.mkdir()
    (runs.directory / "server.properties").write_text(runs.properties)
    former = launch(tmp_path, previous) if previous else None
    wanted = launch(tmp_path, "512m")

    def change() -> None:
        restart.restart(RunningCluster(tmp_path, "id"), wanted, former)

    assert "it was started again with its former settings and serves" in str(
        raised(EarshotError, change)
    )
    assert node.calls == ["stop 30", "start 512m", WAIT, "stop 3", "start 256m", WAIT]
    assert node.texts == ["", runs.properties]
    assert node.runs.digest == runs.digest, "the next update finds what runs"


@pytest.mark.usefixtures("shown")
def test_a_node_of_a_moved_checkout_is_not_put_back_with_its_former_paths(
    tmp_path: Path, node: NodeDouble
) -> None:
    node.fails["512m"] = FAILURE
    directory = launch(tmp_path, "256m").directory
    directory.mkdir()
    (directory / "server.properties").write_text("log.dirs=/former/node-1/log\n")
    assert raised(EarshotError, changed, tmp_path, node, previous=launch(tmp_path, "1g")) is FAILURE


def test_a_controller_alone_is_waited_for(tmp_path: Path, node: NodeDouble) -> None:
    plan = planned(controllers={"mode": "separate"})
    controller = plan.controllers[0]
    properties = server_properties(plan, controller)
    wanted = replace(launch(tmp_path, "512m"), id=controller.id, properties=properties)
    restart.restart(RunningCluster(tmp_path, "id"), wanted, None)
    assert node.calls[-1] == f"wait [{controller.id}]"


@pytest.mark.parametrize(
    ("flag", "message"),
    [("full", "No space left"), ("mute", "does not run with a heap of 512m")],
)
def test_no_node_is_stopped_that_could_not_be_started(
    tmp_path: Path, node: NodeDouble, flag: str, message: str
) -> None:
    setattr(node, flag, True)
    with pytest.raises(EarshotError, match=message):
        changed(tmp_path, node)
    assert node.calls == []


def test_one_that_cannot_even_be_started_again_is_not_said_to_be(
    tmp_path: Path, node: NodeDouble
) -> None:
    node.unstartable = ("256m", "512m")
    assert raised(EarshotError, changed, tmp_path, node).observed == (
        "cannot be written (No space left on device)\n  it could not be started again with its "
        "former settings: node 1: cannot be written (No space left on device)"
    )
