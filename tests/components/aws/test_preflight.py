"""Checks before an instance is changed, by Kafka's parser and the archive's server."""

from typing import Any

import pytest
from earshot_pulumi.aws import archive, preflight
from earshot_pulumi.aws.changes import HeldStack
from earshot_pulumi.aws.preflight import ChangePreflightKind
from earshot_pulumi.properties import write
from earshot_pulumi.provider.kind import UNKNOWN
from pulumi.output import Unknown

from earshot.errors import EarshotError
from earshot.jvm.broker_settings import ParserAnswer
from tests.components.aws.registered import PREFLIGHT, Answers, registered
from tests.components.called import Called
from tests.config.aws_documents import ARCHIVE, read_aws


def props(**changes: Any) -> dict[str, Any]:
    settings = {"1": "node.id=1\n", "2": "node.id=2\n"}
    held: dict[str, Any] = write(HeldStack.of("mine", read_aws())) | {"written": "4.0.0"}
    return held | {"archive": ARCHIVE, "properties": settings} | changes


class Doubles:
    """Doubles of Kafka's parser and of the archive's server."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.nodes: list[list[int]] = []
        self.archives: list[str] = []
        self.refusals: dict[int, str] = {}
        self.archive_problem: str | None = None
        monkeypatch.setattr(preflight, "ask_kafka", self._kafka)
        monkeypatch.setattr(preflight, "kafka_broker_jars", lambda version: ())
        monkeypatch.setattr(archive, "problem", self._archive)

    def _kafka(self, _java: object, _jars: object, properties: dict[int, str]) -> ParserAnswer:
        self.nodes.append(sorted(properties))
        return ParserAnswer({id: it for id, it in self.refusals.items() if id in properties})

    def _archive(self, wanted: Any, progress: object) -> str | None:
        self.archives.append(wanted.url)
        return self.archive_problem


@pytest.fixture
def doubles(monkeypatch: pytest.MonkeyPatch) -> Doubles:
    return Doubles(monkeypatch)


def test_what_kafka_refuses_is_said_once_with_the_nodes(doubles: Doubles) -> None:
    doubles.refusals = dict.fromkeys((1, 2), "Invalid value abc for configuration num.io.threads")
    (failure,) = Called(ChangePreflightKind()).check({}, props()).failures
    assert failure == (
        "\n- Kafka 4.1.1 refuses the settings of node 1, 2: "
        "Invalid value abc for configuration num.io.threads. Correct them in "
        "the stack file or in the component's inputs"
    )


def test_an_archive_that_will_not_do_is_refused(doubles: Doubles) -> None:
    doubles.archive_problem = "`archive.url`: there is nothing"
    (failure,) = Called(ChangePreflightKind()).check({}, props()).failures
    assert failure == "\n- `archive.url`: there is nothing"


def test_only_what_has_changed_is_asked(doubles: Doubles) -> None:
    provider = Called(ChangePreflightKind())
    provider.check(props(), props())
    assert (doubles.nodes, doubles.archives) == ([], [])
    provider.check(props(), props(properties={"1": "node.id=1\n", "2": "node.id=2\nx=y\n"}))
    provider.check(props(kafka_version="4.0.0"), props())
    provider.check(props(archive={}), props())
    assert (doubles.nodes, doubles.archives) == ([[2], [1, 2]], [ARCHIVE["url"]])


def test_in_a_preview_without_names_kafka_is_not_asked(doubles: Doubles) -> None:
    assert Called(ChangePreflightKind()).check({}, props(properties=UNKNOWN)).failures == []
    assert doubles.nodes == []


def test_a_class_that_the_archive_may_have_is_no_refusal(doubles: Doubles) -> None:
    doubles.refusals = {1: "Invalid value a.B for configuration x: Class a.B could not be found."}
    assert Called(ChangePreflightKind()).check({}, props()).failures == []


def test_what_cannot_be_asked_is_said_and_stops_nothing(
    doubles: Doubles, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unavailable(*_: object, **__: object) -> None:
        raise EarshotError("it", observed="cannot be asked")

    monkeypatch.setattr(preflight, "ask_kafka", unavailable)
    monkeypatch.setattr(archive, "problem", unavailable)
    assert Called(ChangePreflightKind()).check({}, props()).failures == []
    assert capsys.readouterr().out == (
        "it: cannot be asked\nKafka has not checked the settings: it: cannot be asked\n"
    )


def test_the_stack_hands_over_what_its_nodes_will_start_with() -> None:
    inputs = registered(read_aws()).one(PREFLIGHT).inputs
    assert inputs["archive"] == ARCHIVE and inputs["kafka_version"] == "4.1.1"
    assert inputs["properties"].keys() == {"1", "2", "3"}
    assert "advertised.listeners=INTERNAL://ip-10-0-0-" in inputs["properties"]["3"]
    unknown = registered(read_aws(), Answers(preview=True)).one(PREFLIGHT).inputs
    assert isinstance(unknown["properties"], Unknown)
