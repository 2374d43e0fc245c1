"""Checks before the first broker is stopped: settings, versions, links, clients of listeners.

Kafka's parser is a double; clients use real sockets of processes that stand for brokers.
"""

import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from earshot_pulumi.local import cluster_memory, preflight

from earshot.errors import EarshotError
from earshot.jvm.broker_settings import ParserAnswer
from earshot.jvm.java import Java
from earshot.listeners.model import ClusterPlan
from earshot.listeners.render import server_properties
from earshot.transition.refusal import STOP_FIRST
from earshot.transition.steps import transition
from tests.components.local.nodes import recorded_node
from tests.components.local.test_cluster_memory import PORTS, planned
from tests.components.test_node_data import record
from tests.e2e.ports import consecutive_ports
from tests.raised import raised
from tests.transition import pairs


@dataclass
class KafkaDouble:
    """Stands for jars and for the parser in them."""

    cached: set[str] = field(default_factory=lambda: {"4.1.1"})
    verified: list[str] = field(default_factory=list)
    published: set[str] = field(default_factory=lambda: {"4.1.1", "4.3.1", "3.9.2"})
    answer: ParserAnswer | EarshotError = field(default_factory=lambda: ParserAnswer({}, 27))
    requests: list[Mapping[int, str]] = field(default_factory=list)

    def jars(self, version: str, *, fetching: bool = True) -> tuple[Path, ...]:
        self.verified.append(version)
        if fetching and version in self.published:
            self.cached.add(version)
        if version not in self.cached:
            raise EarshotError(f"jars of {version}", observed="the repository has none")
        return ()

    def ask(self, java: Java, jars: object, properties: Mapping[int, str]) -> ParserAnswer:
        self.requests.append(properties)
        if isinstance(self.answer, EarshotError):
            raise self.answer
        return self.answer


@pytest.fixture(autouse=True)
def kafka(monkeypatch: pytest.MonkeyPatch) -> Iterator[KafkaDouble]:
    double = KafkaDouble()
    monkeypatch.setattr(preflight, "kafka_broker_jars", double.jars)
    monkeypatch.setattr(preflight, "ask_kafka", double.ask)
    monkeypatch.setattr(preflight, "find_java", lambda: Java(Path("/j"), Path("/j/bin/java"), "17"))
    caches = (preflight._verified, preflight._answer)
    for cache in caches:
        cache.cache_clear()
    yield double
    for cache in caches:
        cache.cache_clear()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[list[ClusterPlan]]:
    """Appending a plan starts its nodes, which end with the test."""
    with ExitStack() as cleanup:

        class Started(list[ClusterPlan]):
            def append(self, plan: ClusterPlan) -> None:
                for planned_node in plan.nodes:
                    directory = cluster_memory.node_directory(tmp_path, planned_node.id)
                    cleanup.enter_context(recorded_node(directory))
                    text = server_properties(plan, planned_node)
                    (directory / "server.properties").write_text(text)

        yield Started()


def problems(root: Path, plan: ClusterPlan) -> list[str]:
    return list(preflight.problems(root, plan))


def request(*plans: ClusterPlan) -> dict[int, str]:
    """The request about all settings of ``plans``, in their order."""
    texts = [server_properties(plan, node) for plan in plans for node in plan.nodes]
    return dict(enumerate(texts))


def test_an_unchanged_plan_asks_nothing(
    tmp_path: Path, run: list[ClusterPlan], kafka: KafkaDouble
) -> None:
    run.append(planned())
    assert problems(tmp_path, planned()) == []
    assert kafka.verified == []
    preflight.prepare(tmp_path, planned())
    assert kafka.requests == []


def test_listeners_of_nodes_whose_settings_are_lost_are_not_checked(
    tmp_path: Path, run: list[ClusterPlan]
) -> None:
    run.append(planned())
    for id in (1, 2, 3):
        (cluster_memory.node_directory(tmp_path, id) / "server.properties").unlink()
    assert problems(tmp_path, planned()) == []


@pytest.mark.parametrize(
    "text", ["bootstrap.servers=localhost:9092\n", "listeners=nonsense\n", "listeners=A://:99999\n"]
)
def test_a_file_that_another_program_has_written_is_named_with_its_node(
    text: str, tmp_path: Path, run: list[ClusterPlan]
) -> None:
    run.append(planned())
    file = cluster_memory.node_directory(tmp_path, 2) / "server.properties"
    file.write_text(text)
    assert not any("listener list" in problem for problem in problems(tmp_path, planned()))
    (problem,) = preflight.client_problems(tmp_path, planned())
    assert problem.startswith(
        f"{file} has other settings than those with which node 2 was started, because"
    )


def test_where_nothing_runs_nothing_is_asked(tmp_path: Path, kafka: KafkaDouble) -> None:
    plan = planned(extra={"num.io.threads": "abc"})
    assert problems(tmp_path, plan) == []
    preflight.prepare(tmp_path, plan)
    assert kafka.requests == []


def test_a_setting_that_kafka_refuses_is_told_once_for_all_nodes(
    tmp_path: Path, run: list[ClusterPlan], kafka: KafkaDouble
) -> None:
    run.append(planned())
    plan = planned(extra={"num.io.threads": "abc"})
    text = "Invalid value abc for configuration num.io.threads: Not a number of type INT"
    kafka.answer = ParserAnswer({0: text, 1: text, 2: "requirement failed: x."}, 27)
    messages = [
        f"Kafka 4.1.1 refuses the settings of node 1, 2: {text}. {CORRECT}",
        (f"Kafka 4.1.1 refuses the settings of node 3: requirement failed: x. {CORRECT}"),
    ]
    assert problems(tmp_path, plan) == messages
    error = raised(EarshotError, preflight.prepare, tmp_path, plan)
    assert str(error) == f"nothing was changed:\n- {messages[0]}\n- {messages[1]}"
    assert kafka.requests == [request(plan)]


def test_a_parser_that_cannot_be_asked_is_no_consent(
    tmp_path: Path, run: list[ClusterPlan], kafka: KafkaDouble
) -> None:
    run.append(planned())
    kafka.answer = EarshotError("the check", observed="no answer within 60 s", remedy="again")
    messages = problems(tmp_path, planned(extra={"num.io.threads": "4"}))
    assert messages == ["the check: no answer within 60 s; fix: again"]


def test_a_version_that_is_not_there_stops_nothing_and_is_not_fetched_by_a_preview(
    tmp_path: Path, run: list[ClusterPlan], kafka: KafkaDouble
) -> None:
    run.append(planned())
    cluster_memory.settle(tmp_path, planned())
    plan = planned(kafka_version="4.9.9")
    assert problems(tmp_path, plan) == []
    with pytest.raises(EarshotError, match=r"jars of 4\.9\.9: the repository has none"):
        preflight.prepare(tmp_path, plan)
    preflight.prepare(tmp_path, planned(kafka_version="4.3.1"))
    assert kafka.cached == {"4.1.1", "4.3.1"}
    assert len(kafka.requests) == 1


@pytest.mark.parametrize(
    ("level", "newest", "refused"), [(27, 27, False), (21, 27, False), (29, 27, True)]
)
def test_an_older_kafka_is_refused_where_it_does_not_know_the_data_s_level(
    tmp_path: Path, kafka: KafkaDouble, level: int, newest: int, refused: bool
) -> None:
    cluster_memory.settle(tmp_path, planned(kafka_version="4.9.9"))
    folder = cluster_memory.node_directory(tmp_path, 1) / "log"
    folder.mkdir(parents=True)
    (folder / "meta.properties").touch()
    (folder / "bootstrap.checkpoint").write_bytes(record(level))
    kafka.answer = ParserAnswer({1: "not of interest: nothing runs"}, newest)
    messages = problems(tmp_path, planned(kafka_version="4.1.1"))
    older = (
        "Kafka 4.1.1 is older than 4.9.9, which has written the data; a KRaft cluster "
        "cannot go back to an older release. Keep the version, or remove the data with "
        "`data: delete` and `pulumi destroy`"
    )
    assert messages == ([older] if refused else [])


def test_an_older_kafka_is_refused_where_the_data_s_level_cannot_be_read(tmp_path: Path) -> None:
    cluster_memory.settle(tmp_path, planned(kafka_version="4.3.1"))
    assert problems(tmp_path, planned(kafka_version="4.1.1")) == [], "there is no data"
    folder = cluster_memory.node_directory(tmp_path, 1) / "log"
    folder.mkdir(parents=True)
    (folder / "meta.properties").touch()
    (problem,) = problems(tmp_path, planned(kafka_version="4.1.1"))
    assert problem.startswith("Kafka 4.1.1 is older than 4.3.1")


def renamed() -> ClusterPlan:
    listeners = [
        {"name": "BROKERS", "port": PORTS["INTERNAL"], "scopes": "internal"},
        {"name": "EXTERNAL", "port": PORTS["EXTERNAL"], "scopes": "host"},
    ]
    return planned(listeners=listeners)


def test_a_renamed_inter_broker_listener_is_refused_while_running_nodes_are_unknown(
    tmp_path: Path, run: list[ClusterPlan]
) -> None:
    assert problems(tmp_path, renamed()) == []
    run.append(planned())
    (problem,) = problems(tmp_path, renamed())
    assert "from INTERNAL (PLAINTEXT) to BROKERS (PLAINTEXT)" in problem
    assert problem.endswith(
        "Run the same command once with the current listeners, so that they are recorded, and then "
        f"with these; or {STOP_FIRST}"
    )


def test_the_final_plan_is_checked_before_the_first_step(
    tmp_path: Path, run: list[ClusterPlan], kafka: KafkaDouble
) -> None:
    run.append(planned())
    plan, last = planned(extra={"a": "1"}), planned(extra={"a": "2"})
    kafka.answer = ParserAnswer({3: "a is wrong."}, 27)
    text = "Kafka 4.1.1 refuses the settings of node 1: a is wrong. " + CORRECT
    assert list(preflight.problems(tmp_path, plan, last)) == [text]
    assert kafka.requests == [request(plan, last)]
    with pytest.raises(EarshotError):
        preflight.prepare(tmp_path, planned(), last)


def test_the_version_of_a_node_is_the_one_it_was_started_with(tmp_path: Path) -> None:
    assert preflight.version_of(tmp_path) == ""
    plan = planned(kafka_version="4.3.1")
    (tmp_path / "server.properties").write_text(server_properties(plan, plan.nodes[0]))
    assert preflight.version_of(tmp_path) == "4.3.1"


CORRECT = "Correct them in the stack file or in the component's inputs"
LISTENS = """
import socket, time
servers = [socket.create_server(("127.0.0.1", port)) for port in ({ports})]
accepted = [servers[0].accept() for _ in range(9)]
"""
NAME = psutil.Process().name()


def plan_with(ports: list[int], *names: str) -> ClusterPlan:
    listeners = [
        {"name": name, "port": port, "scopes": ["internal"]}
        for name, port in zip(names, ports, strict=True)
    ]
    return pairs.planned({"brokers": 1, "listeners": listeners})


@pytest.fixture
def ports() -> list[int]:
    return consecutive_ports(1, 2)


@pytest.fixture
def runs(tmp_path: Path, ports: list[int]) -> Iterator[ClusterPlan]:
    """A node that listens for INTERNAL and REPL, and accepts clients of INTERNAL."""
    planned = plan_with(ports, "INTERNAL", "REPL")
    directory = cluster_memory.node_directory(tmp_path, 1)
    with recorded_node(directory, LISTENS.format(ports=", ".join(map(str, ports)))) as child:
        (directory / "server.properties").write_text(server_properties(planned, planned.node(1)))
        until(lambda: len(psutil.Process(child.pid).net_connections("tcp")) == len(ports))
        yield planned


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_clients_of_a_listener_that_goes_are_counted_and_named(
    tmp_path: Path, runs: ClusterPlan, ports: list[int]
) -> None:
    without = plan_with(ports[1:], "REPL")
    assert list(preflight.client_problems(tmp_path, without)) == []
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(socket.create_connection(("127.0.0.1", ports[0])))
        until(lambda: "2 connections" in "".join(preflight.client_problems(tmp_path, without)))
        (text,) = preflight.client_problems(tmp_path, without)
        assert text == (
            "listener INTERNAL would be removed, and has 2 connections of clients: 2 from "
            f"127.0.0.1 (pid {os.getpid()}, {NAME}). Let them use another listener, then run the "
            "same command again; or set `remove: anyway`, "
            "or a date from which it may be removed"
        )
        assert list(preflight.client_problems(tmp_path, runs)) == []
        first = transition(runs, plan_with([ports[0] + 1, ports[1]], "OTHER", "REPL"))[0].plan
        assert list(preflight.client_problems(tmp_path, first)) == [], (
            "this step removes no listener"
        )


def test_another_protocol_takes_the_listener_from_its_clients(
    tmp_path: Path, runs: ClusterPlan, ports: list[int]
) -> None:
    listeners = [
        {"name": "INTERNAL", "port": ports[0], "scopes": ["internal"], "protocol": "SSL"},
        {"name": "REPL", "port": ports[1], "scopes": ["internal"]},
    ]
    secured = pairs.planned({"brokers": 1, "listeners": listeners})
    with socket.create_connection(("127.0.0.1", ports[0])):
        until(lambda: bool(list(preflight.client_problems(tmp_path, secured))))
        (text,) = preflight.client_problems(tmp_path, secured)
    assert text.startswith("listener INTERNAL would get the protocol SSL, and has 1 connection of ")


def test_nodes_of_the_cluster_and_nodes_of_lost_settings_are_left_out(
    tmp_path: Path, runs: ClusterPlan, ports: list[int]
) -> None:
    two = pairs.planned(
        {"brokers": 2, "listeners": [{"name": "REPL", "port": ports[1], "scopes": ["internal"]}]}
    )
    directory = cluster_memory.node_directory(tmp_path, 2)
    code = (
        f"import socket, time; c = socket.create_connection(('127.0.0.1', {ports[0]})); "
        "time.sleep(60)"
    )
    with recorded_node(directory, code) as child:
        until(lambda: bool(psutil.Process(child.pid).net_connections("tcp")))
        assert list(preflight.client_problems(tmp_path, two)) == []
    with socket.create_connection(("127.0.0.1", ports[0])):
        until(lambda: bool(list(preflight.client_problems(tmp_path, two))))
        (cluster_memory.node_directory(tmp_path, 1) / "server.properties").unlink()
        assert list(preflight.client_problems(tmp_path, two)) == []
