"""The whole validation on real brokers: healthy, a broker dead, dying meanwhile, interrupted."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
import pyspark
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from earshot.doctor import replication
from earshot.doctor.doctor import examine
from earshot.errors import EarshotError
from earshot.files import cache
from earshot.jvm.archive import start_options
from earshot.jvm.jars import spark_connector_jars
from earshot.jvm.java import find_java
from earshot.listeners.terms import Scope
from earshot.spark.run import ValidationOptions, validate
from earshot.validation.client import configuration
from earshot.validation.result import Report
from earshot.validation.terms import Stage, Verdict
from tests.e2e.cluster import Cluster, local_plan, own_topics, running_cluster
from tests.e2e.open_sockets import OpenSocket, documented_addresses, open_sockets
from tests.e2e.ports import free_ports
from tests.e2e.stranger import BLOCKS, OBJECT_READ, Stranger
from tests.rest import with_combinations

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
    # PySpark leaves the sockets that it collects rows from to the garbage collector
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

LISTENERS = ("INTERNAL", "EXTERNAL")
PLANTED = "Pl4ntedS3cret"
OPTIONS = ValidationOptions(records=6000, deadline=150)
PAIRS = [(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)]
UNSUITABLE = {
    "delete.topic.enable": "false",
    "log.cleanup.policy": "compact",
    "message.max.bytes": "1000",
    "log.retention.ms": "1000",
    "log.retention.bytes": "100",
    "log.retention.check.interval.ms": "500",
    "log.segment.bytes": "1048576",
    "log.roll.ms": "1000",
    "log.segment.delete.delay.ms": "1",
    "log.message.timestamp.before.max.ms": "1",
    "log.message.timestamp.after.max.ms": "1",
    "min.insync.replicas": "2",
    "compression.type": "gzip",
    "num.partitions": "7",
    "auto.create.topics.enable": "false",
}
"""Defaults of a broker under which no record of ours could be written, kept or read."""


@pytest.fixture(scope="module")
def shared_cluster() -> Iterator[Cluster]:
    _, plan = local_plan(brokers=3)
    with running_cluster(plan) as new_cluster:
        yield new_cluster


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Cluster:
    """Three brokers with two listeners, running as planned."""
    shared_cluster.reset()
    return shared_cluster


def failures(report: Report) -> dict[tuple[str, int], Stage | None]:
    return {
        (cell.listener, cell.broker): cell.failed_stage
        for cell in report.cells
        if cell.verdict is not Verdict.PASS
    }


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for temporary files, which tests search for leftovers."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's cache with only the jars of the real one."""
    spark_connector_jars()
    real_cache, cache_folder = cache.root(), tmp_path / "cache" / "earshot"
    cache_folder.mkdir(parents=True)
    (cache_folder / "jars").symlink_to(real_cache / "jars")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_folder.parent))
    return cache_folder


def on_words(words: str, act: Callable[[], None]) -> Callable[[str], None]:
    """An `on_event` that acts at the first event with ``words`` in it."""
    seen_events: list[str] = []

    def listen(text: str) -> None:
        if words in text and not seen_events:
            seen_events.append(text)
            act()

    return listen


def test_a_healthy_cluster_passes_in_every_pair_of_listeners(
    cluster: Cluster, scratch: Path
) -> None:
    report = validate(cluster.contract, OPTIONS)
    assert report.verdict is Verdict.PASS and report.exit_code == 0
    assert [(cell.listener, cell.broker) for cell in report.cells] == [
        (name, id) for name in LISTENERS for id in (1, 2, 3)
    ]
    assert all(cell.latency_ms for cell in report.cells)
    pairs = {
        (delivery.written_through, delivery.read_through, delivery.broker)
        for delivery in report.delivery
    }
    assert pairs == {
        (writer, reader, id) for writer in LISTENERS for reader in LISTENERS for id in (1, 2, 3)
    }
    assert {
        (delivery.acknowledged, delivery.read, delivery.unknown) for delivery in report.delivery
    } == {(1000, 1000, 0)}
    assert [
        (replication.leader, replication.follower) for replication in report.replication
    ] == PAIRS
    assert {(replication.verdict, replication.listener) for replication in report.replication} == {
        (Verdict.PASS, "INTERNAL")
    }
    assert own_topics(cluster.contract) == set()
    assert list(scratch.iterdir()) == []


@pytest.mark.combination
def test_the_first_run_of_a_user_records_an_archive_of_sparks_classes(
    cluster: Cluster, scratch: Path, own_cache: Path
) -> None:
    messages: list[str] = []
    report = validate(cluster.contract, replace(OPTIONS, record=True), messages.append)
    assert report.verdict is Verdict.PASS
    assert any("Spark's classes" in text for text in messages)
    assert list(scratch.iterdir()) == []
    assert [path.name for path in own_cache.glob("archives/recording-*")] == []
    assert takes_spark_classes_from_archive()


def takes_spark_classes_from_archive() -> bool:
    """True if a JVM with the next run's options loads most of Spark's classes from the archive."""
    java, jars = find_java(), spark_connector_jars()
    class_path = (Path(pyspark.__file__).parent / "jars", *jars)
    all_options = start_options(java.executable, class_path)
    options = [option for option in all_options if not option.startswith("-Xlog")]
    script = (
        "from pyspark.sql import SparkSession; import sys;"
        "s = SparkSession.builder.master('local[1]')"
        ".config('spark.driver.extraJavaOptions', sys.argv[1]).config('spark.jars', sys.argv[2])"
        ".config('spark.ui.enabled', 'false').config('spark.driver.host', '127.0.0.1')"
        ".getOrCreate();"
        "assert s.range(5).count() == 5; s.stop()"
    )
    log = "-Xlog:class+load=info"
    completed = subprocess.run(
        [sys.executable, "-c", script, " ".join([*options, log]), ",".join(map(str, jars))],
        env=os.environ | {"JAVA_HOME": str(java.home), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    assert completed.returncode == 0, completed.stderr
    loaded_classes = [line for line in completed.stdout.splitlines() if "org.apache.spark." in line]
    shared_classes = [line for line in loaded_classes if "shared objects file (top)" in line]
    return len(shared_classes) > len(loaded_classes) / 2


@dataclass
class Look:
    """Answers and files that another user of this machine gets, and the sockets of the run."""

    answers: list[tuple[int, str, bytes]] = field(default_factory=list)
    files: tuple[list[str], list[str]] = ([], [])
    sockets: list[OpenSocket] = field(default_factory=list)

    def holds(self, secret: str) -> bool:
        return any(secret.encode() in answer for _, _, answer in self.answers)

    def answers_to(self, wanted_question: str) -> list[bytes]:
        return [
            answer for _, question, answer in self.answers if question == wanted_question and answer
        ]


@pytest.mark.combination  # test_local_secure.py attacks a run, too
@pytest.mark.parametrize(
    "guarded",
    [
        pytest.param(True, id="with authentication"),
        # shows that the attack finds what authentication keeps from it
        pytest.param(False, id="without authentication"),
    ],
)
def test_another_user_gets_nothing_of_a_run(cluster: Cluster, scratch: Path, guarded: bool) -> None:
    """A share of records is rounded up, by the way."""
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u"'
    client = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f'{login} password="{PLANTED}";'}
    conf = {} if guarded else {"spark.authenticate": "false"}
    # a compressed block may show a secret in pieces
    conf |= {"spark.broadcast.compress": "false"}
    options = ValidationOptions(records=1, deadline=150, client=client, spark_conf=conf)
    jar, look = spark_connector_jars()[0], Look()

    def connect_to_all() -> None:
        look.sockets = open_sockets(psutil.Process())
        look.answers += stranger.answers({socket.port for socket in look.sockets}, jar.name)
        look.files = stranger.readable(scratch, [PLANTED])

    def connect_repeatedly() -> None:
        # while jobs run, too: Spark drops the blocks of a job that is over
        while not has_ended.is_set():
            look.answers += stranger.answers({socket.port for socket in look.sockets}, jar.name)

    def begin_attack() -> None:
        connect_to_all()
        attack_thread.start()

    has_ended, attack_thread = threading.Event(), threading.Thread(target=connect_repeatedly)
    with Stranger() as stranger:
        try:
            report = validate(cluster.contract, options, on_words("records through", begin_attack))
        finally:
            has_ended.set()
            if attack_thread.ident is not None:
                attack_thread.join()
    assert report.verdict is Verdict.PASS
    assert {delivery.acknowledged for delivery in report.delivery} == {1}
    documented_processes = documented_addresses()
    for open_socket in look.sockets:  # SECURITY.md lists each
        assert open_socket.is_loopback and documented_processes.get(open_socket.process) in (
            open_socket.address,
            "as its listeners bind",
        )
    driver = [socket.port for socket in look.sockets if socket.process == "Spark driver"]
    assert len(driver) == 3, "one for its RPC, one for blocks, one for Python"
    # which no property of Spark's changes, and everybody has: they are public
    assert any(jar.read_bytes()[:1000] in answer for answer in look.answers_to("spark jar"))
    assert not any(answer.startswith(b"!y") for answer in look.answers_to("py4j"))
    assert look.answers_to("py4j") and len(look.answers_to("spark block")) >= 2 * BLOCKS
    if os.geteuid() == 0:
        assert look.files == ([], [])
    exposed = any(OBJECT_READ in answer for answer in look.answers_to("spark rpc"))
    assert (look.holds(PLANTED), exposed) == (not guarded, not guarded)
    note = (
        "Spark (local[*]) does not authenticate connections: any user who can connect to a port of "
        "its driver or executors can run code there and read the client properties of this run; "
        "set spark.authenticate and spark.network.crypto.enabled (docs/security.md)"
    )
    assert report.notes == (() if guarded else (note,))


def test_a_broken_way_between_brokers_fails_though_clients_reach_them_all(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication, "LIMIT", 8.0)
    (closed_port,) = free_ports(1)
    cluster.advertise(3, INTERNAL=f"localhost:{closed_port}")
    report = validate(cluster.contract.for_scope(Scope.HOST), OPTIONS)
    assert {(cell.listener, cell.verdict) for cell in report.cells} == {("EXTERNAL", Verdict.PASS)}
    assert {delivery.verdict for delivery in report.delivery} == {Verdict.PASS}
    observed_by_pair = {
        (replication_pair.leader, replication_pair.follower): replication_pair.cause.observed
        for replication_pair in report.replication
        if replication_pair.cause is not None
    }
    observed = "broker 3 acknowledged no record within 8 s that brokers 1 and 2 had to copy"
    assert observed_by_pair == {(3, 1): observed, (3, 2): observed}
    assert report.exit_code == 1
    assert own_topics(cluster.contract) == set()


@pytest.mark.combination
def test_a_broker_whose_defaults_suit_no_record_of_ours() -> None:
    """Nor does it delete topics: all runs share one, and read their own records of it."""
    _, plan = local_plan(brokers=1)
    with running_cluster(plan, extra={1: UNSUITABLE}) as lone:
        doctor_report = examine(lone.contract)
        spark_report = validate(lone.contract, OPTIONS)
        admin = AdminClient(configuration(lone.contract.listeners[0].bootstrap, None, {}))
        remaining_topics = set(admin.list_topics(timeout=10).topics)
    note = (
        "topic __earshot-test-shared stays and every run uses it again, as no topic can be deleted "
        "here (Broker: Topic deletion is disabled); its records are gone after an hour"
    )
    for report in (doctor_report, spark_report):
        assert report.verdict is Verdict.PASS, report
        assert report.notes == (note,)
    # the doctor's records stand before them
    assert {
        (delivery.acknowledged, delivery.read, delivery.foreign)
        for delivery in spark_report.delivery
    } == {(3000, 3000, 0)}
    assert spark_report.replication == ()
    assert remaining_topics - {"__consumer_offsets"} == {"__earshot-test-shared"}


def test_a_dead_broker_fails_its_cells_and_only_those(cluster: Cluster) -> None:
    cluster.kill(2)
    report = validate(cluster.contract, OPTIONS)
    assert report.exit_code == 1
    assert failures(report) == {(name, 2): Stage.TCP for name in LISTENERS}
    assert {delivery.broker for delivery in report.delivery} == {1, 3}
    assert {delivery.verdict for delivery in report.delivery} == {Verdict.PASS}
    assert own_topics(cluster.contract) == set()


@pytest.mark.combination
@pytest.mark.parametrize("moment", ["records through", "reading"])
def test_a_broker_that_dies_meanwhile_fails_its_cells_and_only_those(
    cluster: Cluster, moment: str
) -> None:
    report = validate(cluster.contract, OPTIONS, on_words(moment, lambda: cluster.kill(2)))
    assert report.exit_code == 1
    assert failures(report) == {(name, 2): Stage.TCP for name in LISTENERS}
    cause = next(cell.cause for cell in report.cells if cell.broker == 2)
    assert cause is not None and "while the job ran" in cause.observed, cause
    proven = {
        delivery.broker
        for delivery in report.delivery
        if delivery.acknowledged and not delivery.lost
    }
    assert proven == {1, 3}
    assert report.seconds < OPTIONS.deadline


@pytest.mark.combination
def test_without_any_broker_the_doctor_s_cells_are_the_report(cluster: Cluster) -> None:
    for id in (1, 2, 3):
        cluster.kill(id)
    report = validate(cluster.contract, OPTIONS)
    assert report.kind == "validation" and report.exit_code == 1
    assert set(failures(report).values()) == {Stage.TCP}


def test_a_deadline_that_is_too_short_proves_nothing(cluster: Cluster) -> None:
    # more than any machine moves in that time
    options = ValidationOptions(records=3_000_000, deadline=2.5)
    report = validate(cluster.contract, options)
    assert report.exit_code == 3
    assert {cell.verdict for cell in report.cells} == {Verdict.INCONCLUSIVE}
    assert all("deadline" in cell.reason for cell in report.cells)
    assert own_topics(cluster.contract) == set()


@pytest.mark.combination
def test_what_a_killed_run_left_is_removed(cluster: Cluster) -> None:
    admin = AdminClient(configuration(cluster.contract.listeners[0].bootstrap, None, {}))
    leftover_topic = NewTopic(f"__earshot-{cluster.name}-1600000000-deadbeef", 1, 1)
    admin.create_topics([leftover_topic])[leftover_topic.topic].result(10)
    validate(cluster.contract, ValidationOptions(records=6, deadline=150))
    assert own_topics(cluster.contract) == set()


@pytest.mark.combination
def test_an_exception_leaves_neither_topic_nor_jvm(cluster: Cluster, scratch: Path) -> None:

    def fail() -> None:
        raise RuntimeError("of the caller")

    with pytest.raises(RuntimeError, match="of the caller"):
        validate(cluster.contract, OPTIONS, on_words("reading", fail))
    assert own_topics(cluster.contract) == set()
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    "moment", with_combinations("records through", ["doctor", "records through", "reading"])
)
def test_sigterm_leaves_neither_topic_nor_jvm(
    cluster: Cluster, tmp_path: Path, scratch: Path, moment: str
) -> None:
    contract = tmp_path / "contract.json"
    contract.write_text(cluster.contract.to_json())
    program = (
        "import pathlib, sys\n"
        "from earshot.validation.contract import read_contract\n"
        "from earshot.spark.run import ValidationOptions, validate\n"
        "contract = read_contract(pathlib.Path(sys.argv[1]).read_text(), 'test')\n"
        "options = ValidationOptions(records=200_000, deadline=150)\n"
        "validate(contract, options, lambda text: print(text, flush=True))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(contract)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        while moment not in (line := process.stdout.readline()):
            assert line, process.stderr.read()
        time.sleep(0.3)
        children = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 143, errors
    assert errors == ""
    assert children
    assert psutil.wait_procs(children, timeout=10)[1] == []
    assert own_topics(cluster.contract) == set()
    assert list(scratch.iterdir()) == []


def test_a_property_that_spark_refuses_is_one_clear_error(cluster: Cluster) -> None:
    options = ValidationOptions(
        records=6, deadline=100, spark_conf={"spark.driver.bindAddress": "192.0.2.1"}
    )
    with pytest.raises(EarshotError) as caught:
        validate(cluster.contract, options)
    assert "Spark" in str(caught.value) and "\tat " not in str(caught.value)
    assert own_topics(cluster.contract) == set()
