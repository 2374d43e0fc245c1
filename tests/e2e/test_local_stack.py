"""The local placement on the real engine: three brokers, gate, changes, failures, destroy."""

import json
import os
import secrets
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from earshot_pulumi.local.cluster_memory import node_directory, recall
from earshot_pulumi.node_data import feature_level

from earshot.jvm.jars import KAFKA_VERSION
from earshot.report.json import read_report
from earshot.spark.run import DOCTOR_ALONE
from earshot.validation.result import Report
from earshot.validation.terms import Verdict
from tests.e2e.changing import (
    EXTRA,
    PATIENCE,
    bootstrap,
    leaving_by_listener,
    proved_listeners,
    restarted_ids,
    update_with_restarted,
)
from tests.e2e.engine import Deployment, deployment, living_processes, local_cluster
from tests.e2e.ports import consecutive_ports
from tests.e2e.steady_producer import REPLICAS, SteadyProducer, led_by_every_broker
from toolchain.paths import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

GIB = 1024**3
GATE = "pulumi:providers:earshot"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Three brokers, up and validated; every test leaves them up.

    Spark proves them once; after each change the doctor does, which says the same sooner.
    """
    cluster = local_cluster(extra=EXTRA)
    with deployment(tmp_path_factory.mktemp("stack") / "p", cluster) as new_stack:
        new_stack.up()
        assert {delivery.verdict for delivery in report_of(new_stack).delivery} == {Verdict.PASS}
        new_stack.cluster["validation"]["records"] = 0
        new_stack.up()
        yield new_stack


def report_of(stack: Deployment) -> Report:
    """The last validation's."""
    return read_report((stack.root.parent / "report.json").read_bytes(), "report.json")


def text(message: Message) -> str:
    value = message.value()
    assert isinstance(value, bytes)
    return value.decode()


def write(stack: Deployment, topic: str, count: int = 20) -> list[str]:
    """Records acknowledged by all in-sync replicas of a topic with three replicas."""
    servers = bootstrap(stack, stack.cluster["listeners"][0]["name"])
    admin = AdminClient({"bootstrap.servers": servers})
    if topic not in admin.list_topics(timeout=10).topics:
        admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(20)
    producer = Producer({"bootstrap.servers": servers, "acks": "all"})
    acknowledged: list[str] = []
    for number in range(count):
        producer.produce(
            topic,
            f"{topic}-{number}",
            on_delivery=lambda error, message: (
                acknowledged.append(text(message)) if error is None else None
            ),
        )
    assert producer.flush(30) == 0
    assert len(acknowledged) == count
    return acknowledged


def read(stack: Deployment, topic: str) -> list[str]:
    servers = bootstrap(stack, stack.cluster["listeners"][0]["name"])
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "t", "enable.partition.eof": False}
    )
    try:
        partitions = [TopicPartition(topic, number, 0) for number in range(3)]
        total = sum(consumer.get_watermark_offsets(partition, 10)[1] for partition in partitions)
        consumer.assign(partitions)
        record_texts: list[str] = []
        while len(record_texts) < total:
            message = consumer.poll(10)
            assert message is not None, f"{len(record_texts)} of {total} records came back"
            record_texts.append(text(message))
        return record_texts
    finally:
        consumer.close()


def test_the_stack_is_up_validated_and_small(stack: Deployment) -> None:
    pids = stack.pids()
    assert sorted(pids) == [1, 2, 3]
    assert sum(psutil.Process(pid).memory_info().rss for pid in pids.values()) < GIB
    outputs = stack.outputs()
    assert [broker["id"] for broker in outputs["contract"]["brokers"]] == [1, 2, 3]
    memory = recall(stack.root)
    assert memory is not None and outputs["contract"]["cluster_id"] == memory.cluster_id
    assert outputs["incarnations"].keys() == {"1", "2", "3"}
    report = report_of(stack)
    assert report.delivery == () and {cell.verdict for cell in report.cells} == {Verdict.PASS}
    assert DOCTOR_ALONE in report.notes


@pytest.mark.combination
def test_a_second_update_changes_nothing(stack: Deployment) -> None:
    old_pids = stack.pids()
    output = stack.up("--refresh")
    assert "unchanged" in output
    assert "created" not in output and "updated" not in output
    assert stack.pids() == old_pids


def test_the_brokers_outlive_the_command_and_its_terminal(stack: Deployment) -> None:
    for pid in stack.pids().values():
        assert os.getsid(pid) == pid, "a session of its own"
        assert os.getsid(pid) != os.getsid(0)


@pytest.mark.parametrize(
    ("advertised", "rule"),
    [
        ("nope.invalid", "KL011"),
        pytest.param("0.0.0.0", "KL003", marks=pytest.mark.combination),
        pytest.param("localhost:{port}", "KL004", marks=pytest.mark.combination),
    ],
)
def test_a_bad_name_is_stopped_before_anything_is_touched(
    stack: Deployment, advertised: str, rule: str
) -> None:
    old_pids = stack.pids()
    address = advertised.format(port=stack.cluster["listeners"][1]["port"])
    stack.cluster["listeners"][1]["advertised"] = {2: address, 1: "localhost"}
    try:
        outputs = [
            stack.refusal(command="preview"),
            stack.refusal(),
            stack.refusal("--skip-preview"),
        ]
    finally:
        del stack.cluster["listeners"][1]["advertised"]
    for output in outputs:
        assert output.count(f"[{rule}]") == 1
        assert "EXTERNAL" in output and address in output
    assert stack.pids() == old_pids


@pytest.mark.combination
def test_a_change_of_one_broker_alone_is_checked_too(stack: Deployment) -> None:
    old_pids = stack.pids()
    node = next(
        resource["urn"]
        for resource in stack.resources()
        if resource["urn"].endswith("LocalNode::broker-1")
    )
    stack.cluster["heap"] = "200m"
    try:
        stack.cluster["listeners"][1]["advertised"] = {1: "nope.invalid"}
        preview = stack.refusal("--target", node, command="preview")
        update = stack.refusal("--skip-preview", "--target", node)
        assert "[KL011]" in preview and "[KL011]" in update and stack.pids() == old_pids
        del stack.cluster["listeners"][1]["advertised"]
        stack.up("--target", node)
        new_pids = stack.pids()
    finally:
        stack.cluster["listeners"][1].pop("advertised", None)
        del stack.cluster["heap"]
        stack.up()
    assert {id for id in old_pids if old_pids[id] != new_pids[id]} == {1}


@pytest.mark.combination
def test_the_pack_in_ci_judges_the_same_gate(stack: Deployment) -> None:
    pack = ("--policy-pack", str(ROOT / "policies"))
    preview_with_pack = stack.pulumi("preview", *pack)
    assert preview_with_pack.returncode == 0 and "earshot@" in preview_with_pack.stdout, (
        preview_with_pack.stdout
    )
    assert (
        "no-gate" not in preview_with_pack.stdout and "[mandatory]" not in preview_with_pack.stdout
    )
    stack.cluster["gate"] = "off"
    stack.cluster["listeners"][1]["advertised"] = {2: "nope.invalid"}
    try:
        output = stack.refusal(*pack, command="preview")
    finally:
        del stack.cluster["gate"], stack.cluster["listeners"][1]["advertised"]
    assert "gate: off: the advertised listeners were not checked" in output
    assert "nope.invalid does not resolve" in output and "[mandatory]  kl011" in output


@pytest.mark.combination
def test_settings_are_kept_as_secrets_and_for_their_owner_alone(stack: Deployment) -> None:
    nodes = [
        resource
        for resource in stack.resources()
        if resource["urn"].endswith("LocalNode::broker-1")
    ]
    for stored_values in (nodes[0]["inputs"], nodes[0]["outputs"]):
        assert "ciphertext" in stored_values["properties"]
    (gate,) = (
        resource
        for resource in stack.resources()
        if resource["type"] == GATE and "plan" in resource["inputs"]
    )
    for stored_values in (gate["inputs"], gate["outputs"]):
        text = json.dumps(stored_values)
        assert "ciphertext" in text and "offsets.topic.num.partitions" not in text
    settings = node_directory(stack.root, 1) / "server.properties"
    assert settings.stat().st_mode & 0o777 == 0o600
    stack.cluster["extra"] = EXTRA | {"num.io.threads": "7531"}
    try:
        preview = stack.pulumi("preview", "--diff")
    finally:
        stack.cluster["extra"] = EXTRA
    assert preview.returncode == 0 and "[secret]" in preview.stdout
    assert "7531" not in preview.stdout


def test_levels_of_the_configuration_count_at_the_gate(stack: Deployment) -> None:
    old_pids = stack.pids()
    stack.cluster["listeners"][1]["advertised"] = {2: "nope.invalid"}
    try:
        stack.policy = {"KL011": "advisory"}
        preview = stack.pulumi("preview")
        stack.policy = {"KL999": "advisory"}
        refusal = stack.refusal(command="preview")
    finally:
        stack.policy = {}
        del stack.cluster["listeners"][1]["advertised"]
    assert preview.returncode == 0 and "warning: broker 2, listener EXTERNAL" in preview.stdout
    assert "policies/config/test.json" in refusal and "KL999: no such policy" in refusal
    assert stack.pids() == old_pids


def test_a_killed_broker_comes_back_with_its_data(stack: Deployment) -> None:
    records = write(stack, "kept")
    old_pids = stack.pids()
    os.kill(old_pids[2], signal.SIGKILL)
    stack.up("--refresh")
    new_pids = stack.pids()
    assert new_pids[2] != old_pids[2]
    assert (new_pids[1], new_pids[3]) == (old_pids[1], old_pids[3])
    assert sorted(read(stack, "kept")) == sorted(records)


@pytest.mark.combination
@pytest.mark.parametrize("change", ["heap and port", "version"])
def test_a_change_rolls_one_broker_at_a_time(stack: Deployment, change: str) -> None:
    topic = f"rolled-{change}".replace(" ", "-")
    records = write(stack, topic)
    old_pids = stack.pids()
    if change == "heap and port":
        stack.cluster["heap"] = "264m"
        stack.cluster["listeners"][1]["port"] = consecutive_ports(4, 1)[0]
    else:
        stack.cluster["kafka_version"] = "4.3.1"
    output = stack.up()
    new_pids = stack.pids()
    assert all(new_pids[id] != old_pids[id] for id in (1, 2, 3))
    order = [
        line.split()[2] + ("" if "LocalNode" in line else " ready")
        for line in output.splitlines()
        if "updated (" in line and "broker-" in line
    ]
    assert order == [f"broker-{id}{suffix}" for id in (1, 2, 3) for suffix in ("", " ready")], (
        output
    )
    assert sorted(read(stack, topic)) == sorted(records)
    if change == "version":
        memory = recall(stack.root)
        assert memory is not None and memory.kafka_version == "4.3.1"
        data_folders = [node_directory(stack.root, id) / "log" for id in (1, 2, 3)]
        assert feature_level(data_folders) == 27, "of 4.1, as it was formatted"


@pytest.mark.combination
def test_growing_to_four_leaves_the_voters_alone_and_shrinking_needs_an_empty_broker(
    stack: Deployment,
) -> None:
    old_pids = stack.pids()
    stack.cluster["brokers"] = 4
    stack.up()
    new_pids = stack.pids()
    assert {id: new_pids[id] for id in (1, 2, 3)} == old_pids
    assert sorted(new_pids) == [1, 2, 3, 4]

    admin = AdminClient({"bootstrap.servers": bootstrap(stack, "INTERNAL")})
    topic = NewTopic("on-four", 1, replica_assignment=[[4]], config={"min.insync.replicas": "1"})
    admin.create_topics([topic])["on-four"].result(20)
    stack.cluster["brokers"] = 3
    output = stack.refusal()
    assert "broker 4 would be removed and still holds" in output and "on-four-0" in output
    assert stack.pids() == new_pids

    admin.delete_topics(["on-four"])["on-four"].result(20)
    log = node_directory(stack.root, 4) / "log"
    end = time.monotonic() + 30
    while (log / "on-four-0").exists():
        assert time.monotonic() < end
        time.sleep(0.2)
    stack.up()
    assert stack.pids() == old_pids


@pytest.mark.combination
def test_a_second_checkout_on_the_same_ports_is_refused_before_anything_is_touched(
    stack: Deployment, tmp_path: Path
) -> None:
    old_pids = stack.pids()
    with deployment(tmp_path / "p", stack.cluster) as other_checkout:
        for command in ("preview", "up"):
            output = other_checkout.refusal(command=command)
            for id, pid in old_pids.items():
                properties = node_directory(stack.root, id) / "server.properties"
                port_holder = f"is in use by pid {pid} (java) (Kafka with {properties})"
                assert output.count(f"listener INTERNAL of node {id}: port ") == 1
                assert port_holder in output
        assert not other_checkout.root.exists()
    assert stack.pids() == old_pids


@pytest.mark.combination
def test_other_voters_are_refused_before_anything_is_touched(stack: Deployment) -> None:
    old_pids = stack.pids()
    stack.cluster["controllers"]["count"] = 1
    try:
        output = stack.refusal()
    finally:
        del stack.cluster["controllers"]["count"]
    assert "has the voters 1, 2, 3 and would get 1" in output
    assert stack.pids() == old_pids


@pytest.mark.combination
def test_a_change_that_cannot_work_stops_no_broker_and_is_taken_back(stack: Deployment) -> None:
    old_pids, memory, cluster = stack.pids(), recall(stack.root), stack.cluster

    def refusal(command: str, **change: Any) -> str:
        stack.cluster = cluster | change
        flags = ("--skip-preview",) if command == "up" else ()
        output = stack.refusal(*flags, command=command)
        assert stack.pids() == old_pids
        assert recall(stack.root) == memory
        return output

    output = refusal("up", kafka_version="4.9.9")
    assert "the repository has no org.apache.kafka:kafka_2.13:4.9.9\n" in output

    output = refusal("preview", extra={"background.threads": "abc"})
    version = cluster.get("kafka_version", KAFKA_VERSION)
    assert (
        f"has a problem: - Kafka {version} refuses the settings of node 1, 2, 3: Invalid value abc "
        "for configuration background.threads: Not a number of type INT. Correct them"
    ) in " ".join(output.split())
    assert "map[" not in output

    output = refusal("preview", extra={"metric.reporters": "no.such.Reporter"})
    assert "no.such.Reporter" in output and "map[" not in output

    listeners = [cluster["listeners"][0] | {"name": "BROKERS"}, cluster["listeners"][1]]
    output = refusal("preview", listeners=listeners)
    assert "would change from INTERNAL to BROKERS in one step" in output

    stack.cluster = cluster
    stack.up()
    assert stack.pids() == old_pids


def test_a_broker_that_does_not_come_up_is_put_back_as_it_was(stack: Deployment) -> None:
    records = write(stack, "put-back")
    old_pids = stack.pids()
    stack.cluster["extra"] = EXTRA | {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "bob",  # without a type: the authorizer rejects it at its start
    }
    output = stack.refusal("--skip-preview")
    stack.cluster["extra"] = EXTRA
    assert "node 1 did not come up: IllegalArgumentException: " in output, output
    assert "but got bob" in output, output
    assert "it was started again with its former settings and serves" in output
    new_pids = stack.pids()
    assert new_pids[1] != old_pids[1]
    assert (new_pids[2], new_pids[3]) == (old_pids[2], old_pids[3])
    stack.up()
    assert stack.pids() == new_pids
    assert sorted(read(stack, "put-back")) == sorted(records)


@pytest.mark.combination
def test_a_broker_of_an_interrupted_run_is_adopted(stack: Deployment) -> None:
    """The CLI was killed: a broker runs that is not in the state."""
    old_pids = stack.pids()
    urn = next(
        line.strip()
        for line in stack.pulumi("stack", "--show-urns").stdout.replace("URN:", "\n").splitlines()
        if line.strip().endswith("LocalNode::broker-3")
    )
    deletion = stack.pulumi("state", "delete", urn, "--yes", "--force", "--target-dependents")
    assert deletion.returncode == 0, deletion.stdout
    stack.up()
    assert stack.pids() == old_pids


@pytest.fixture
def producer(stack: Deployment) -> Iterator[SteadyProducer]:
    """A client that writes to every broker through EXTERNAL during the test."""
    servers, topic = bootstrap(stack, "EXTERNAL"), f"steady-{secrets.token_hex(3)}"
    led_by_every_broker(servers, topic)
    with SteadyProducer(servers, topic, len(REPLICAS)) as new_producer:
        yield new_producer


def renamed_folder(stack: Deployment) -> list[dict[str, Any]]:
    """The listeners, INTERNAL with another name and port."""
    internal, external = stack.cluster["listeners"]
    (port,) = consecutive_ports(3, 1)
    return [{**internal, "name": "REPL", "port": port}, external]


def interrupt_update(stack: Deployment) -> None:
    """An update that Ctrl-C ends once it has restarted broker 1."""
    with update_with_restarted(stack, lambda ids: 1 in ids) as child:
        os.killpg(child.pid, signal.SIGINT)
        child.communicate(timeout=PATIENCE)
        assert child.returncode != 0


def test_the_old_name_in_the_file_again_returns_after_an_interrupt(
    stack: Deployment, producer: SteadyProducer
) -> None:
    pids, listeners = stack.pids(), stack.cluster["listeners"]
    stack.cluster["listeners"] = renamed_folder(stack)
    interrupt_update(stack)
    interrupted_pids = stack.pids()
    assert restarted_ids(pids, stack) == [1]
    stack.cluster["listeners"] = listeners
    stack.up()
    assert restarted_ids(interrupted_pids, stack) == [1]
    assert proved_listeners(stack) == leaving_by_listener(stack).keys() == {"INTERNAL", "EXTERNAL"}
    assert producer.failed == []


def test_three_steps_each_proved_with_all_brokers_serving(
    stack: Deployment, producer: SteadyProducer
) -> None:
    pids = stack.pids()
    stack.cluster["listeners"] = renamed_folder(stack)
    interrupt_update(stack)
    assert "step 1 of 3: REPL added next to INTERNAL" in stack.up()
    assert restarted_ids(pids, stack) == [1, 2, 3]
    assert (
        proved_listeners(stack)
        == leaving_by_listener(stack).keys()
        == {"INTERNAL", "REPL", "EXTERNAL"}
    )
    assert bootstrap(stack, "INTERNAL") and bootstrap(stack, "REPL")
    assert "step 2 of 3: brokers reach each other through REPL" in stack.up()
    assert proved_listeners(stack) == {"INTERNAL", "REPL", "EXTERNAL"}
    assert "step 3 of 3: INTERNAL removed" in stack.up()
    assert proved_listeners(stack) == leaving_by_listener(stack).keys() == {"REPL", "EXTERNAL"}
    assert producer.failed == [] and len(producer.acknowledged) > 0


def test_destroy_stops_the_brokers_and_keeps_the_data(stack: Deployment) -> None:
    records = write(stack, "survives")
    processes = [psutil.Process(pid) for pid in stack.pids().values()]
    stack.destroy()
    assert living_processes(processes) == []
    assert stack.pids() == {}
    assert all((node_directory(stack.root, id) / "log").is_dir() for id in (1, 2, 3))
    # what no cluster that runs can be given
    stack.cluster["listeners"][0]["name"] = "BROKERS"
    stack.cluster["controllers"]["name"] = "QUORUM"
    stack.up()
    assert sorted(read(stack, "survives")) == sorted(records)


@pytest.mark.combination
def test_a_port_in_use_is_named_before_anything_starts(tmp_path: Path) -> None:
    import socket

    cluster = local_cluster(1)
    port = cluster["listeners"][1]["port"]
    with socket.socket() as listening, deployment(tmp_path / "p", cluster) as stack:
        listening.bind(("0.0.0.0", port))
        listening.listen()
        output = stack.refusal()
        assert f"listener EXTERNAL of node 1: port {port} is in use by pid {os.getpid()}" in output
        assert stack.pids() == {}


@pytest.mark.combination
def test_a_gate_that_is_off_is_said_to_be_and_destroy_can_delete_the_data(tmp_path: Path) -> None:
    cluster = local_cluster(1, gate="off", data="delete")
    cluster["listeners"] = cluster["listeners"][:1]
    with deployment(tmp_path / "p", cluster) as stack:
        output = stack.up()
        assert "gate: off: the advertised listeners were not checked" in output
        assert list(stack.pids()) == [1]
        copied_deployment(stack, tmp_path / "copy").destroy()
        assert list(stack.pids()) == [1], "its state named the brokers and data of the original"
        assert stack.root.exists()
        stack.destroy()
        assert not stack.root.exists()


def copied_deployment(stack: Deployment, folder: Path) -> Deployment:
    """A copy of the project with its state and data, as made by `cp -r`."""
    shutil.copytree(stack.folder, folder, symlinks=True)
    new_variables = {
        "PULUMI_HOME": str(folder / "home"),
        "PULUMI_BACKEND_URL": (folder / "state").as_uri(),
    }
    copy = replace(stack, folder=folder, environment=stack.environment | new_variables)
    completed = copy.pulumi("stack", "select", stack.stack)
    assert completed.returncode == 0, completed.stdout
    return copy


@pytest.mark.combination
@pytest.mark.parametrize(("extra", "words"), [
    ({"background.threads": "0"}, ["Invalid value 0 for configuration background.threads"]),
    ({"authorizer.class.name": "no.such.Authorizer"},
     ["node 1 did not come up", "no.such.Authorizer"]),
], ids=[
    "a property that Kafka refuses is quoted", "a broker that cannot start says why",
])  # fmt: skip
def test_a_first_start_that_fails(tmp_path: Path, extra: dict[str, str], words: list[str]) -> None:
    with deployment(tmp_path / "p", local_cluster(1, extra=extra)) as stack:
        output = stack.refusal("--skip-preview")
        assert all(word in output for word in words) and "\tat " not in output, output
        assert stack.pids() == {}
