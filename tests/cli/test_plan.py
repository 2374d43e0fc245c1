"""`earshot plan`: every socket of a stack; with `--check`, what the gate would report."""

import json

import pytest

from earshot.checks.policy_config import Level, PolicyConfig
from earshot.cli.plan import describe, findings_text
from earshot.placement import plan_stack
from earshot.project import Project
from earshot.report.terminal import Terminal
from earshot.rules import kl003_kind_of_address as rule
from earshot.rules.evaluate import CheckResult
from earshot.rules.rule import FindingState, Severity
from earshot.validation.contract import read_contract
from tests.cli.command import Earshot, save_stack
from tests.cli.conftest import STACK
from tests.config import aws_documents
from tests.doubles.dns_server import dns_server

LISTENERS = [
    {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]},
    {"name": "EXTERNAL", "port": 9092, "scopes": ["host"]},
]
PUBLISHED = [
    {"name": "IN", "port": 19092, "scopes": ["internal"]},
    {"name": "OUT", "port": 9092, "scopes": ["external"],
     "published": {1: 39092, 2: 39093, 3: 39094}},
]  # fmt: skip
"""Listeners of three brokers in containers."""


def stack(project: Project, **cluster: object) -> None:
    """The stack `mine`, on this machine unless ``cluster`` has another placement."""
    save_stack(project, "mine", **{"placement": "local", "listeners": LISTENERS, **cluster})


def containers(project: Project, host: str) -> None:
    """The stack `mine` in containers, whose clients elsewhere use ``host``."""
    stack(project, placement="docker", listeners=PUBLISHED, hosts=[{"external": host}])


def container(project: Project, **cluster: object) -> None:
    """The stack `mine` with one broker in a container."""
    outer = {"name": "OUT", "port": 9092, "scopes": ["external"], "published": {0: 39092}}
    stack(
        project,
        placement="docker",
        broker_ids=[0],
        names={0: "kafka0"},
        hosts=[{"external": "k.example"}],
        listeners=[PUBLISHED[0], outer],
        **cluster,
    )


def configure(project: Project, text: str) -> None:
    """The configuration of the policy pack for the stack."""
    folder = project.root / "policies" / "config"
    folder.mkdir(parents=True)
    (folder / "mine.json").write_text(text)


def test_every_socket_is_shown(project: Project, earshot: Earshot) -> None:
    output = earshot.output("plan --stack local")
    plan = plan_stack(project.read_cluster("local"), "local", project.root).plan
    for node in plan.nodes:
        for listener in node.listeners:
            assert f"{listener.bind}" in output
            assert f"{listener.host}:{listener.port}" in output
    first, facts, _, head, *lines = output.splitlines()
    rows, matrix = lines[:9], lines[10:]
    assert first == f"stack local: placement local, Kafka {plan.kafka_version}"
    assert facts == (
        "3 brokers, voters 1, 2, 3, replicas 3, min ISR 2, between brokers INTERNAL, gate required"
    )
    assert head.split() == ["node", "listener", "scopes", "protocol", "binds", "advertises"]
    assert rows[0].split() == [
        *("broker+controller", "1", "INTERNAL", "internal", "PLAINTEXT"),
        *("127.0.0.1:19092", "localhost:19092"),
    ]
    assert rows[2].split()[:2] == ["CONTROLLER", "controller"] and not lines[9]
    assert matrix[0].split() == ["clients", "listener", "sent", "to", "arrive"]
    assert matrix[1].split()[:3] == ["this", "machine", "INTERNAL"] and matrix[1].endswith("yes")


def test_json_is_the_contract(project: Project, earshot: Earshot) -> None:
    contract = read_contract(earshot.output("plan --stack local --format json"), "stdout")
    assert contract.cluster == "local"
    assert [broker.id for broker in contract.brokers] == [1, 2, 3]


def test_one_node_or_all_are_rendered(project: Project, earshot: Earshot) -> None:
    assert "node.id=2\n" in earshot.output("plan -s local --render 2")
    assert earshot.output("plan -s local --render all").count("node.id=") == 3
    assert "allowed: all, 1, 2, 3" in earshot.refusal("plan -s local --render 7")
    assert earshot.refusal("plan --stack local --format json --render 1") == (
        "error: --render: found with --format json, which prints another document\n"
        "  fix: leave one of them out\n"
    )


def test_of_a_container_its_name_published_ports_and_variables_are_shown(
    project: Project, earshot: Earshot
) -> None:
    container(project)
    lines = [line.split() for line in earshot.output("plan --stack mine").splitlines()]
    assert lines[1][:4] == ["1", "broker,", "voters", "0,"]
    head = "listener scopes protocol binds published advertises"
    assert lines[3:8] == [
        head.split(),
        ["broker+controller", "0,", "kafka0"],
        ["IN", "internal", "PLAINTEXT", "0.0.0.0:19092", "-", "kafka0:19092"],
        ["OUT", "external", "PLAINTEXT", "0.0.0.0:9092", "39092->9092", "k.example:39092"],
        ["CONTROLLER", "controller", "PLAINTEXT", "0.0.0.0:29092", "-", "kafka0:29092"],
    ]
    container(project, cluster_id="MkU3OEVBNTcwNTJENDM2Qk")
    variables = earshot.output("plan -s mine --render 0").splitlines()
    assert "KAFKA_NODE_ID=0" in variables
    ids = [line for line in variables if "CLUSTER_ID" in line]
    assert ids == ["CLUSTER_ID=MkU3OEVBNTcwNTJENDM2Qk"]


def test_names_that_aws_has_not_given_are_not_known_and_no_error(
    project: Project, earshot: Earshot
) -> None:
    stack(project, **aws_documents.document(**aws_documents.TWO_LISTENERS))
    error = earshot.refusal("plan -s mine --render 1")
    assert "its names are not known before AWS has given them" in error
    output = earshot.output("plan -s mine --check")
    assert "\nnot checked: " in output and "\nerror: " not in output
    assert output.endswith("rules: nothing else found\n")


@pytest.mark.parametrize(
    ("content", "observed"),
    [
        ("", "is empty"),
        ("\x00\x01", "is no YAML"),
        (STACK.replace("local", "moon"), "found 'moon'"),
        (STACK.replace("9092, scopes: [host]", "0, scopes: [host]"), "port: found 0"),
        (STACK.replace("port: 9092", "port: 70000"), "port: found 70000"),
        (STACK.replace("9092, scopes: [host]", "nine, scopes: [host]"), "'nine'"),
        (STACK.replace("EXTERNAL", "INTERNAL"), "INTERNAL is defined"),
        (STACK.replace("[internal]", "[host]"), "has the scope internal"),
        (STACK + "    brokerz: 3\n", "brokerz: is no key that earshot knows"),
    ],
)
def test_bad_configuration_is_one_clear_error(
    project: Project, content: str, observed: str, earshot: Earshot
) -> None:
    project.stack_file("local").write_text(content)
    error = earshot.refusal("plan --stack local")
    assert error.startswith("error: stacks/Pulumi.local.yaml")
    assert error.count("error:") == 1
    assert observed in error
    assert "Traceback" not in error


def test_names_that_resolve_have_no_findings(project: Project, earshot: Earshot) -> None:
    stack(project)
    output = earshot.output("plan -s mine --check")
    assert output.startswith("stack mine: placement local")
    assert output.endswith("\nrules: nothing found\n")


def test_a_name_that_does_not_resolve_ends_with_1(project: Project, earshot: Earshot) -> None:
    stack(project, external_host="kafka.invalid")
    configure(project, '{"names": {"resolvers": {"external": "system"}}}')
    code, output, _ = earshot("plan -s mine --check")
    lines = output.split("\n\n", 4)[3].splitlines()
    assert code == 1
    assert lines[0].startswith("error: brokers 1 to 3, listener EXTERNAL (scope external): ")
    assert "kafka.invalid" in lines[0] and lines[0].endswith("[KL011]")
    assert [line.split(":")[0].strip() for line in lines[1:4]] == ["expected", "fix", "source"]


def test_a_name_is_accepted_without_check_or_if_the_pack_waives_it(
    project: Project, earshot: Earshot
) -> None:
    stack(project, external_host="kafka.invalid")
    assert "made by another team" not in earshot.output("plan -s mine")
    configure(project, '{"names": {"waived": {"kafka.invalid": "made by another team"}}}')
    assert "made by another team" in earshot.output("plan -s mine --check")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Expecting property name"),
        ("[]", "it is a list"),
        ("[" * 100_000, "maximum recursion depth exceeded"),
        ('{"names": {"timeout": 0}}', "timeout: found 0; allowed: more than 0.0"),
    ],
)
def test_an_invalid_configuration_of_the_pack_is_one_error(
    project: Project, text: str, reason: str, earshot: Earshot
) -> None:
    stack(project)
    configure(project, text)
    code, _, error = earshot("plan -s mine --check")
    assert code == 2 and error.startswith(
        "error: policies/config/mine.json: cannot be read as a configuration of the pack ("
    )
    assert reason in error and error.count("error:") == 1


@pytest.mark.parametrize("option", ["--format json", "--render all"])
def test_a_document_has_no_findings(project: Project, option: str, earshot: Earshot) -> None:
    stack(project)
    earshot.refusal(f"plan -s mine --check {option}")


def test_containers_are_checked_with_their_published_ports(
    project: Project, earshot: Earshot
) -> None:
    containers(project, "127.0.0.1")
    code, output, _ = earshot("plan -s mine --check")
    assert code == 1
    assert "error: containers kafka-1, kafka-2, kafka-3, brokers 1 to 3, listener OUT" in output
    assert "[KL003]" in output and "[KL006]" not in output


def test_the_address_of_a_name_is_a_note_if_no_host_is_known(
    project: Project, earshot: Earshot
) -> None:
    containers(project, "kafka.example.com")
    with dns_server({"kafka.example.com": ("198.51.100.7",)}) as server:
        configure(project, json.dumps({"names": {"resolvers": {"external": [server]}}}))
        output = earshot.output("plan -s mine --check")
    assert "[KL019]" in output and "[KL012]" not in output
    assert "note  KL012: whether kafka.example.com leads to the brokers" in output


def test_errors_come_before_warnings_and_those_before_what_is_not_known() -> None:
    error = rule.RULE.finding("says a", "b", listener="A")
    warning = rule.RULE.finding("says c", "d", listener="B", severity=Severity.WARNING)
    unknown = rule.RULE.finding("says e", "f", listener="C", state=FindingState.UNKNOWN)
    result = CheckResult((unknown, warning, error), ("accepted",))
    text = findings_text(result, Terminal(), PolicyConfig())
    heads = [line for line in text.splitlines() if line.endswith("[KL003]")]
    assert heads == [
        "error: listener A: says a [KL003]",
        "warning: listener B: says c [KL003]",
        "not checked: listener C: says e [KL003]",
    ]
    assert text.endswith("  note  accepted\n") and "rules:" not in text


@pytest.mark.parametrize("severity", [Severity.ERROR, Severity.WARNING])
def test_with_a_finding_there_is_no_line_that_nothing_was_found(severity: Severity) -> None:
    finding = rule.RULE.finding("says a", "b", listener="A", severity=severity)
    text = findings_text(CheckResult((finding,), ()), Terminal(), PolicyConfig())
    assert "listener A: says a [KL003]" in text and "rules:" not in text
    text = findings_text(CheckResult((), ()), Terminal(), PolicyConfig())
    assert text == "rules: nothing found\n"


def test_an_error_of_a_disabled_rule_is_not_nothing() -> None:
    result = CheckResult((rule.RULE.finding("says a", "b", listener="A"),), ())
    text = findings_text(result, Terminal(), PolicyConfig(levels={"KL003": Level.DISABLED}))
    assert "note  1 error left out, because the policy disables KL003" in text
    assert text.endswith("rules: nothing else found\n")


def table(project: Project, width: int) -> list[str]:
    """The lines of the table of sockets, none longer than ``width``."""
    spec = project.read_cluster("mine")
    planned = plan_stack(spec, "mine", project.state_dir("mine"))
    text = describe("mine", spec, planned, Terminal(width=width))
    assert max(map(len, text.splitlines())) <= width
    return [" ".join(line.split()) for line in text.split("\n\n")[1].splitlines()]


@pytest.mark.parametrize(("width", "lines"), [
    (120, ["node container listener scopes protocol binds published advertises",
           "broker+controller 1 kafka-1 IN internal PLAINTEXT 0.0.0.0:19092 - kafka-1:19092"]),
    (80, ["listener scopes protocol binds published", "advertises", "broker+controller 1, kafka-1",
          "IN internal PLAINTEXT 0.0.0.0:19092 -", "kafka-1:19092"]),
])  # fmt: skip
def test_the_table_of_containers_fits_the_terminal(
    project: Project, width: int, lines: list[str]
) -> None:
    containers(project, "kafka.example.com")
    assert table(project, width)[: len(lines)] == lines


def test_the_table_of_processes_fits_80_columns(project: Project) -> None:
    stack(project)
    lines = table(project, 80)
    row = lines[lines.index("broker+controller 3") + 1]
    assert row.startswith("INTERNAL internal PLAINTEXT 127.0.0.1:19094 ")


def test_the_matrix_of_containers_shows_which_clients_arrive(
    project: Project, earshot: Earshot
) -> None:
    save_stack(project, "mine", placement="docker")
    output = earshot.output("plan --stack mine")
    matrix = output[output.index("clients  ") :].splitlines()
    rows = [line.split() for line in matrix[1:] if not line.startswith(" ")]
    assert [(row[-7], row[-6], row[-1]) for row in rows][:2] == [
        ("earshot-mine", "INTERNAL", "yes"), ("earshot-mine", "HOST", "no")
    ]  # fmt: skip
    assert "kafka-1 is a name that Docker gives on its networks only" in output
    assert max(map(len, matrix)) <= 80
