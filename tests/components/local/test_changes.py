"""What is settled before the first broker is stopped; Kafka's answers are given here."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from earshot_pulumi.local import changes, quorum
from earshot_pulumi.local.record import Record

from earshot.errors import EarshotError
from earshot.jvm.broker_settings import ParserAnswer
from earshot.jvm.java import Java
from earshot.listeners.model import ClusterPlan
from earshot.listeners.render import server_properties
from tests.components.local.nodes import node, recorded
from tests.components.local.test_quorum import PORTS, planned
from tests.components.test_node_data import record
from tests.raised import raised


@dataclass
class KafkaDouble:
    """Stands for jars and for the parser in them."""

    cached: set[str] = field(default_factory=lambda: {"4.1.1"})
    verified: list[str] = field(default_factory=list)
    published: set[str] = field(default_factory=lambda: {"4.1.1", "4.3.1", "3.9.2"})
    answer: ParserAnswer | EarshotError = field(default_factory=lambda: ParserAnswer({}, 27))
    asked: list[Mapping[int, str]] = field(default_factory=list)

    def jars(self, version: str, *, fetching: bool = True) -> tuple[Path, ...]:
        self.verified.append(version)
        if fetching and version in self.published:
            self.cached.add(version)
        if version not in self.cached:
            raise EarshotError(f"jars of {version}", observed="the repository has none")
        return ()

    def ask(self, java: Java, jars: object, properties: Mapping[int, str]) -> ParserAnswer:
        self.asked.append(properties)
        if isinstance(self.answer, EarshotError):
            raise self.answer
        return self.answer


@pytest.fixture(autouse=True)
def kafka(monkeypatch: pytest.MonkeyPatch) -> Iterator[KafkaDouble]:
    double = KafkaDouble()
    monkeypatch.setattr(changes, "kafka_broker_jars", double.jars)
    monkeypatch.setattr(changes, "ask_kafka", double.ask)
    monkeypatch.setattr(changes, "find_java", lambda: Java(Path("/j"), Path("/j/bin/java"), "17"))
    caches = (changes._verified, changes._answer)
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
                for item in plan.nodes:
                    directory = quorum.node_directory(tmp_path, item.id)
                    child = cleanup.enter_context(node(directory))
                    recorded(directory, Record.of(child.pid, "d"))
                    (directory / "server.properties").write_text(server_properties(plan, item))

        yield Started()


def problems(root: Path, plan: ClusterPlan) -> list[str]:
    return list(changes.problems(root, plan))


def asked(*plans: ClusterPlan) -> dict[int, str]:
    """The question about all settings of ``plans``, in their order."""
    return dict(enumerate(server_properties(it, item) for it in plans for item in it.nodes))


def test_an_unchanged_plan_asks_nothing(
    tmp_path: Path, run: list[ClusterPlan], kafka: KafkaDouble
) -> None:
    run.append(planned())
    assert problems(tmp_path, planned()) == []
    assert kafka.verified == []
    changes.prepare(tmp_path, planned())
    assert kafka.asked == []


def test_listeners_of_nodes_whose_settings_are_lost_are_not_checked(
    tmp_path: Path, run: list[ClusterPlan]
) -> None:
    run.append(planned())
    for id in (1, 2, 3):
        (quorum.node_directory(tmp_path, id) / "server.properties").unlink()
    assert problems(tmp_path, planned()) == []


@pytest.mark.parametrize(
    "text", ["bootstrap.servers=localhost:9092\n", "listeners=nonsense\n", "listeners=A://:99999\n"]
)
def test_a_file_that_another_program_has_written_is_named_with_its_node(
    text: str, tmp_path: Path, run: list[ClusterPlan]
) -> None:
    run.append(planned())
    file = quorum.node_directory(tmp_path, 2) / "server.properties"
    file.write_text(text)
    assert not any("listener list" in problem for problem in problems(tmp_path, planned()))
    (problem,) = changes.client_problems(tmp_path, planned())
    assert problem.startswith(f"{file} is not what node 2 was started with")


def test_where_nothing_runs_nothing_is_asked(tmp_path: Path, kafka: KafkaDouble) -> None:
    plan = planned(extra={"num.io.threads": "abc"})
    assert problems(tmp_path, plan) == []
    changes.prepare(tmp_path, plan)
    assert kafka.asked == []


def test_a_setting_that_kafka_refuses_is_told_once_for_all_nodes(
    tmp_path: Path, run: list[ClusterPlan], kafka: KafkaDouble
) -> None:
    run.append(planned())
    plan = planned(extra={"num.io.threads": "abc"})
    text = "Invalid value abc for configuration num.io.threads: Not a number of type INT"
    kafka.answer = ParserAnswer({0: text, 1: text, 2: "requirement failed: x."}, 27)
    found = [
        f"Kafka 4.1.1 refuses the settings of node 1, 2: {text}. Correct them in the stack file",
        (
            "Kafka 4.1.1 refuses the settings of node 3: requirement failed: x. "
            "Correct them in the stack file"
        ),
    ]
    assert problems(tmp_path, plan) == found
    error = raised(EarshotError, changes.prepare, tmp_path, plan)
    assert str(error) == f"nothing was changed:\n- {found[0]}\n- {found[1]}"
    assert kafka.asked == [asked(plan)]


def test_a_parser_that_cannot_be_asked_is_no_consent(
    tmp_path: Path, run: list[ClusterPlan], kafka: KafkaDouble
) -> None:
    run.append(planned())
    kafka.answer = EarshotError("the check", observed="no answer within 60 s", remedy="again")
    found = problems(tmp_path, planned(extra={"num.io.threads": "4"}))
    assert found == ["the check: no answer within 60 s; fix: again"]


def test_a_version_that_is_not_there_stops_nothing_and_is_not_fetched_by_a_preview(
    tmp_path: Path, run: list[ClusterPlan], kafka: KafkaDouble
) -> None:
    run.append(planned())
    quorum.settle(tmp_path, planned())
    plan = planned(kafka_version="4.9.9")
    assert problems(tmp_path, plan) == []
    with pytest.raises(EarshotError, match=r"jars of 4\.9\.9: the repository has none"):
        changes.prepare(tmp_path, plan)
    changes.prepare(tmp_path, planned(kafka_version="4.3.1"))
    assert kafka.cached == {"4.1.1", "4.3.1"}
    assert len(kafka.asked) == 1


@pytest.mark.parametrize(
    ("level", "newest", "refused"), [(27, 27, False), (21, 27, False), (29, 27, True)]
)
def test_an_older_kafka_is_refused_where_it_does_not_know_the_data_s_level(
    tmp_path: Path, kafka: KafkaDouble, level: int, newest: int, refused: bool
) -> None:
    quorum.settle(tmp_path, planned(kafka_version="4.9.9"))
    folder = quorum.node_directory(tmp_path, 1) / "log"
    folder.mkdir(parents=True)
    (folder / "meta.properties").touch()
    (folder / "bootstrap.checkpoint").write_bytes(record(level))
    kafka.answer = ParserAnswer({1: "not of interest: nothing runs"}, newest)
    found = problems(tmp_path, planned(kafka_version="4.1.1"))
    older = (
        "Kafka 4.1.1 is older than 4.9.9, which has written the data; a KRaft cluster "
        "goes forward only. Keep the version, or remove the data with "
        "`data: delete` and `pulumi destroy`"
    )
    assert found == ([older] if refused else [])


def test_an_older_kafka_is_refused_where_the_data_s_level_cannot_be_read(tmp_path: Path) -> None:
    quorum.settle(tmp_path, planned(kafka_version="4.3.1"))
    assert problems(tmp_path, planned(kafka_version="4.1.1")) == [], "there is no data"
    folder = quorum.node_directory(tmp_path, 1) / "log"
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
        "with these; or stop the cluster first (`pulumi destroy`; data is kept)"
    )


def test_what_a_later_step_would_be_refused_for_is_told_before_the_first(
    tmp_path: Path, run: list[ClusterPlan], kafka: KafkaDouble
) -> None:
    run.append(planned())
    plan, wanted = planned(extra={"a": "1"}), planned(extra={"a": "2"})
    kafka.answer = ParserAnswer({3: "a is wrong."}, 27)
    text = "Kafka 4.1.1 refuses the settings of node 1: a is wrong. Correct them in the stack file"
    assert list(changes.problems(tmp_path, plan, wanted)) == [text]
    assert kafka.asked == [asked(plan, wanted)]
    with pytest.raises(EarshotError):
        changes.prepare(tmp_path, planned(), wanted)


def test_the_version_of_a_node_is_the_one_it_was_started_with(tmp_path: Path) -> None:
    assert changes.version_of(tmp_path) == ""
    plan = planned(kafka_version="4.3.1")
    (tmp_path / "server.properties").write_text(server_properties(plan, plan.nodes[0]))
    assert changes.version_of(tmp_path) == "4.3.1"
