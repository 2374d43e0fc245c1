"""`earshot plan --check`: what the gate would say, before there is anything to update."""

import json
from pathlib import Path

import pytest

from earshot.checks.policy_config import PolicyConfig
from earshot.cli import run
from earshot.cli.plan import describe, findings_text
from earshot.placement import plan_stack
from earshot.project import Project
from earshot.report.terminal import Terminal
from earshot.rules import kl003_kind_of_address as rule
from earshot.rules.evaluate import CheckResult
from earshot.rules.registry import FindingState, Severity
from tests.config import aws_documents
from tests.doubles.dns_server import dns_server

LISTENERS = [
    {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]},
    {"name": "EXTERNAL", "port": 9092, "scopes": ["host"]},
]


PUBLISHED = [
    {"name": "IN", "port": 19092, "scopes": ["internal"]},
    {
        "name": "OUT",
        "port": 9092,
        "scopes": ["external"],
        "published": {1: 39092, 2: 39093, 3: 39094},
    },
]
"""Listeners of three brokers in containers."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / "Pulumi.yaml").write_text("name: earshot\n")
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path)


def stack(project: Project, **cluster: object) -> None:
    document = {"placement": "local", "listeners": LISTENERS, **cluster}
    text = json.dumps({"config": {"earshot:cluster": document}})
    project.stack_file("mine").write_text(text)


def configured(project: Project, text: str) -> None:
    folder = project.root / "policies" / "config"
    folder.mkdir(parents=True)
    (folder / "mine.json").write_text(text)


def test_names_that_resolve_are_found_good(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    stack(project)
    assert run(["plan", "-s", "mine", "--check"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("stack mine: placement local") and output.endswith(
        "\nrules: nothing found\n"
    )


def test_a_name_that_does_not_resolve_ends_with_1(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    stack(project, external_host="kafka.invalid")
    configured(project, '{"names": {"resolvers": {"external": "system"}}}')
    assert run(["plan", "-s", "mine", "--check"]) == 1
    found = capsys.readouterr().out.split("\n\n", 4)[3].splitlines()
    assert found[0].startswith("error: brokers 1 to 3, listener EXTERNAL (scope external): ")
    assert "kafka.invalid" in found[0] and found[0].endswith("[KL011]")
    assert [line.split(":")[0].strip() for line in found[1:4]] == ["expected", "fix", "source"]


def test_without_check_nothing_is_looked_up(project: Project) -> None:
    stack(project, external_host="kafka.invalid")
    assert run(["plan", "-s", "mine"]) == 0


def test_what_the_pack_waives_is_waived_here(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    stack(project, external_host="kafka.invalid")
    configured(project, '{"names": {"waived": {"kafka.invalid": "made by another team"}}}')
    assert run(["plan", "-s", "mine", "--check"]) == 0
    assert "made by another team" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Expecting property name"),
        ("[]", "it is a list"),
        ("[" * 100_000, "maximum recursion depth exceeded"),
        ('{"names": {"timeout": 0}}', "timeout: found 0; allowed: more than 0.0"),
    ],
)
def test_a_configuration_that_is_none_is_one_error(
    project: Project, text: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stack(project)
    configured(project, text)
    assert run(["plan", "-s", "mine", "--check"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(
        "error: policies/config/mine.json: cannot be read as a configuration of the pack ("
    )
    assert reason in error and error.count("error:") == 1


@pytest.mark.parametrize("other", [["--format", "json"], ["--render", "all"]])
def test_a_document_stays_a_document(
    project: Project, other: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    stack(project)
    assert run(["plan", "-s", "mine", "--check", *other]) == 2
    assert capsys.readouterr().out == ""


def test_containers_are_checked_with_their_published_ports(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    stack(project, placement="docker", hosts=[{"external": "127.0.0.1"}], listeners=PUBLISHED)
    assert run(["plan", "-s", "mine", "--check"]) == 1
    output = capsys.readouterr().out
    assert "error: containers kafka-1, kafka-2, kafka-3, brokers 1 to 3, listener OUT" in output
    assert "[KL003]" in output and "[KL006]" not in output


def test_whose_address_a_name_has_is_a_note_where_no_host_is_known(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts = [{"external": "kafka.example.com"}]
    stack(project, placement="docker", hosts=hosts, listeners=PUBLISHED)
    with dns_server({"kafka.example.com": ("198.51.100.7",)}) as server:
        configured(project, json.dumps({"names": {"resolvers": {"external": [server]}}}))
        assert run(["plan", "-s", "mine", "--check"]) == 0
    output = capsys.readouterr().out
    assert "[KL019]" in output and "[KL012]" not in output
    assert "note  KL012: whether kafka.example.com leads to the brokers" in output


def test_what_aws_has_yet_to_name_is_not_known_and_no_error(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    stack(project, **aws_documents.document(**aws_documents.TWO_LISTENERS))
    assert run(["plan", "-s", "mine", "--check"]) == 0
    output = capsys.readouterr().out
    assert "\nnot known yet: " in output and "\nerror: " not in output
    assert output.endswith("rules: nothing else found\n")


def test_errors_come_before_warnings_and_those_before_what_is_not_known() -> None:
    error = rule.RULE.finding("says a", "b", listener="A")
    warning = rule.RULE.finding("says c", "d", listener="B", severity=Severity.WARNING)
    unknown = rule.RULE.finding("says e", "f", listener="C", state=FindingState.UNKNOWN)
    checked = CheckResult((unknown, warning, error), ("accepted",))
    text = findings_text(checked, Terminal(), PolicyConfig())
    heads = [line for line in text.splitlines() if line.endswith("[KL003]")]
    assert heads == [
        "error: listener A: says a [KL003]",
        "warning: listener B: says c [KL003]",
        "not known yet: listener C: says e [KL003]",
    ]
    assert text.endswith("  note  accepted\n") and "rules:" not in text


@pytest.mark.parametrize("severity", [Severity.ERROR, Severity.WARNING])
def test_where_there_is_anything_wrong_it_is_not_said_that_nothing_was_found(
    severity: Severity,
) -> None:
    finding = rule.RULE.finding("says a", "b", listener="A", severity=severity)
    text = findings_text(CheckResult((finding,), ()), Terminal(), PolicyConfig())
    assert "listener A: says a [KL003]" in text and "rules:" not in text
    assert (
        findings_text(CheckResult((), ()), Terminal(), PolicyConfig()) == "rules: nothing found\n"
    )


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (
            120,
            [
                "node container listener scopes protocol binds published advertises",
                "broker+controller 1 kafka-1 IN internal PLAINTEXT 0.0.0.0:19092 - kafka-1:19092",
            ],
        ),
        (
            80,
            [
                "listener scopes protocol binds published",
                "advertises",
                "broker+controller 1, kafka-1",
                "IN internal PLAINTEXT 0.0.0.0:19092 -",
                "kafka-1:19092",
            ],
        ),
    ],
)
def test_the_table_of_containers_fits_the_terminal(
    project: Project, width: int, lines: list[str]
) -> None:
    stack(
        project,
        placement="docker",
        listeners=PUBLISHED,
        hosts=[{"external": "kafka.example.com"}],
    )
    spec = project.read_cluster("mine")
    planned = plan_stack(spec, "mine", project.state_dir("mine"))
    text = describe("mine", spec, planned, Terminal(width=width))
    assert max(map(len, text.splitlines())) <= width
    head = text.split("\n\n")[1].splitlines()
    assert [" ".join(line.split()) for line in head[: len(lines)]] == lines


def test_the_table_of_processes_fits_80_columns(project: Project) -> None:
    stack(project)
    spec = project.read_cluster("mine")
    planned = plan_stack(spec, "mine", project.state_dir("mine"))
    text = describe("mine", spec, planned, Terminal(width=80))
    assert max(map(len, text.splitlines())) <= 80
    assert "broker+controller 3\n  INTERNAL    internal    PLAINTEXT  127.0.0.1:19094  " in text


def test_in_containers_it_shows_who_arrives(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    text = json.dumps({"config": {"earshot:cluster": {"placement": "docker"}}})
    project.stack_file("mine").write_text(text)
    assert run(["plan", "--stack", "mine"]) == 0
    out = capsys.readouterr().out
    matrix = out[out.index("clients  ") :].splitlines()
    rows = [line.split() for line in matrix[1:] if not line.startswith(" ")]
    assert [(row[-7], row[-6], row[-1]) for row in rows][:2] == [
        ("earshot-mine", "INTERNAL", "yes"), ("earshot-mine", "HOST", "no")
    ]  # fmt: skip
    assert "kafka-1 is a name that Docker gives on its networks only" in out
    assert max(map(len, matrix)) <= 80
