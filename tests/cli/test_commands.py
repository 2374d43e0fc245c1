"""The command line: exit codes, one clear message per fault, and nothing heavy for light work."""

import inspect
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from earshot import __version__
from earshot.cli import run
from earshot.cli.commands import app
from earshot.cli.target import stack_contract, target
from earshot.doctor.draft import Draft
from earshot.errors import EarshotError
from earshot.listeners.address import Address
from earshot.listeners.terms import Scope
from earshot.placement import plan_stack
from earshot.project import Project
from earshot.report.json import json as as_json
from earshot.report.json import read_report
from earshot.rules.evaluate import RULES
from earshot.rules.examples import example_of
from earshot.validation.contract import Contract, read_contract
from earshot.validation.result import Report
from tests.config import aws_documents
from tests.doubles.closed_port import closed_port
from tests.raised import raised
from tests.remote.contracts import docker_contract
from tests.report import samples

STACK = """\
config:
  earshot:cluster:
    placement: local
    listeners:
      - {name: INTERNAL, port: 19092, scopes: [internal]}
      - {name: EXTERNAL, port: 9092, scopes: [host]}
"""
DOCKER = """
config:
  earshot:cluster:
    placement: docker
    broker_ids: [0]
    names: {0: kafka0}
    hosts: [{external: k.example}]
    listeners:
      - {name: IN, port: 19092, scopes: [internal]}
      - {name: OUT, port: 9092, scopes: [external], published: {0: 39092}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / "Pulumi.yaml").write_text("name: earshot\nstackConfigDir: stacks\n")
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "Pulumi.local.yaml").write_text(STACK)
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path)


def piped(content: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content))


def save(project: Project, report: str) -> Path:
    file = project.report_file("local")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(report)
    return file


class TestGeneral:
    def test_version(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["--version"]) == 0
        assert capsys.readouterr().out == f"earshot {__version__}\n"

    @pytest.mark.parametrize(
        "command", ["plan", "doctor", "validate", "client", "report", "rules", "adopt", "lint"]
    )
    def test_help_shows_an_example(self, command: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert run([command, "--help"]) == 0
        assert f"earshot {command} " in capsys.readouterr().out.lower().split("usage:")[1]

    @pytest.mark.parametrize("command", [[], ["plan"]])
    def test_help_has_a_short_name(
        self, command: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run([*command, "--help"]) == 0
        text = capsys.readouterr().out
        assert run([*command, "-h"]) == 0
        assert capsys.readouterr().out == text

    def test_help_fits_a_terminal_of_80_columns(self) -> None:
        for item in app.registered_commands:
            assert item.callback is not None
            for line in (inspect.getdoc(item.callback) or "").split("\n\n", 1)[-1].splitlines():
                assert len(line) <= 78, f"{item.callback.__name__}: {line}"

    @pytest.mark.parametrize(
        "arguments",
        [["nope"], ["plan"], ["plan", "--stack"], ["doctor", "--deadline", "soon"], ["--nope"]],
    )
    def test_wrong_usage_is_2(
        self, arguments: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(arguments) == 2
        assert "Error" in capsys.readouterr().err

    def test_a_user_error_is_one_message(
        self, project: Project, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["plan", "--stack", "prod"]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("error: stack prod: stacks/Pulumi.prod.yaml does not exist")
        assert "allowed: stacks with a file: local" in captured.err
        assert "Traceback" not in captured.err

    def test_debug_shows_the_trace_wherever_it_stands(
        self, project: Project, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for arguments in (["--debug", "plan", "-s", "prod"], ["plan", "-s", "prod", "--debug"]):
            assert run(arguments) == 2
            assert "Traceback" in capsys.readouterr().err

    def test_a_fault_of_its_own_is_one_line(
        self, project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def broken(self: Project, stack: str) -> None:
            raise RuntimeError("out of ideas")

        monkeypatch.setattr(Project, "read_cluster", broken)
        assert run(["plan", "--stack", "local"]) == 70
        error = capsys.readouterr().err
        assert len(error.splitlines()) == 1
        assert "RuntimeError: out of ideas; --debug shows where" in error

    def test_a_missing_extra_is_named(
        self, project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for module, extra in (("docker.errors", "docker"), ("pyspark", "spark"), ("boto3", "aws")):

            def bare(self: Project, stack: str, module: str = module) -> None:
                raise ModuleNotFoundError(f"No module named {module!r}", name=module)

            monkeypatch.setattr(Project, "read_cluster", bare)
            assert run(["plan", "--stack", "local"]) == 2
            assert capsys.readouterr().err == (
                f"error: this command needs more packages; fix: pip install 'earshot[{extra}]'\n"
            )

    def test_a_message_cannot_steer_the_terminal(
        self, project: Project, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["report", "\x1b[2J.json"]) == 2
        assert "\\u001b[2J.json" in capsys.readouterr().err

    @pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_a_signal_ends_it_after_its_clean_up(
        self, number: signal.Signals, code: int, tmp_path: Path
    ) -> None:
        # a command that waits, as a validation does, with something to clean up
        program = (
            "import time, pathlib, sys\n"
            "import earshot.cli.report as command\n"
            "def wait(*_, **__):\n"
            "    try:\n"
            "        print('waiting', flush=True)\n"
            # a signal just before one long sleep would be seen after it
            "        while True: time.sleep(0.05)\n"
            "    finally:\n"
            "        pathlib.Path(sys.argv[-1]).write_text('done')\n"
            "command.run = wait\n"
            "from earshot.cli import main\n"
            "main()\n"
        )
        mark = tmp_path / "cleaned"
        child = subprocess.Popen(
            [sys.executable, "-c", program, "report", str(mark)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "waiting\n"
        child.send_signal(number)
        _, errors = child.communicate(timeout=30)
        assert child.returncode == code
        assert mark.read_text() == "done"
        assert errors in ("interrupted\n", "terminated\n")

    def test_a_reader_that_goes_away_is_no_fault(self, project: Project) -> None:
        child = subprocess.Popen(
            [sys.executable, "-m", "earshot", "plan", "--stack", "local", "--render", "all"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert child.stdout is not None and child.stderr is not None
        child.stdout.close()
        errors = child.stderr.read()
        child.stderr.close()
        assert child.wait(30) == 0
        assert errors == b""

    @pytest.mark.parametrize("arguments", [["--help"], ["plan", "--stack", "local"], ["rules"]])
    def test_light_commands_load_nothing_heavy(
        self, project: Project, arguments: list[str]
    ) -> None:
        program = (
            "import sys\n"
            "from earshot.cli import run\n"
            "assert run(sys.argv[1:]) == 0\n"
            "heavy = {'pyspark', 'py4j', 'confluent_kafka', 'pulumi', 'jinja2', 'cryptography'}\n"
            "sys.exit(' '.join(heavy & set(sys.modules)) or None)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
        )
        assert done.stderr == ""


class TestPlan:
    def test_one_document_is_printed(
        self, project: Project, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["plan", "--stack", "local", "--format", "json", "--render", "1"]) == 2
        assert capsys.readouterr() == (
            "",
            (
                "error: --render: found with --format json, which prints another document\n"
                "  fix: leave one of them out\n"
            ),
        )

    def test_shows_every_socket(self, project: Project, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["plan", "--stack", "local"]) == 0
        output = capsys.readouterr().out
        expected = plan_stack(project.read_cluster("local"), "local", project.root).plan
        for node in expected.nodes:
            for item in node.listeners:
                assert f"{item.bind}" in output
                assert f"{item.host}:{item.port}" in output
        first, facts, _, head, *lines = output.splitlines()
        rows, who = lines[:9], lines[10:]
        assert first == f"stack local: placement local, Kafka {expected.kafka_version}"
        assert facts == (
            "3 brokers, voters 1, 2, 3, replicas 3, min ISR 2, between brokers INTERNAL, "
            "gate required"
        )
        assert head.split() == ["node", "listener", "scopes", "protocol", "binds", "advertises"]
        assert rows[0].split() == [
            *("broker+controller", "1", "INTERNAL", "internal", "PLAINTEXT"),
            *("127.0.0.1:19092", "localhost:19092"),
        ]
        assert rows[2].split()[:2] == ["CONTROLLER", "controller"] and not lines[9]
        assert who[0].split() == ["clients", "listener", "sent", "to", "arrive"]
        assert who[1].split()[:3] == ["this", "machine", "INTERNAL"] and who[1].endswith("yes")

    def test_json_is_the_contract(
        self, project: Project, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["plan", "--stack", "local", "--format", "json"]) == 0
        contract = read_contract(capsys.readouterr().out, "stdout")
        assert contract.cluster == "local"
        assert [broker.id for broker in contract.brokers] == [1, 2, 3]

    def test_renders_one_node_or_all(
        self, project: Project, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["plan", "-s", "local", "--render", "2"]) == 0
        assert "node.id=2\n" in capsys.readouterr().out
        assert run(["plan", "-s", "local", "--render", "all"]) == 0
        assert capsys.readouterr().out.count("node.id=") == 3

    def test_a_node_that_there_is_not(
        self, project: Project, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["plan", "-s", "local", "--render", "7"]) == 2
        assert "allowed: all, 1, 2, 3" in capsys.readouterr().err

    def test_of_containers_shows_their_names_and_published_ports(
        self, project: Project, capsys: pytest.CaptureFixture[str]
    ) -> None:
        project.stack_file("mine").write_text(DOCKER)
        assert run(["plan", "--stack", "mine"]) == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert lines[1][:4] == ["1", "broker,", "voters", "0,"]
        head = "listener scopes protocol binds published advertises"
        assert lines[3:8] == [
            head.split(),
            ["broker+controller", "0,", "kafka0"],
            ["IN", "internal", "PLAINTEXT", "0.0.0.0:19092", "-", "kafka0:19092"],
            ["OUT", "external", "PLAINTEXT", "0.0.0.0:9092", "39092->9092", "k.example:39092"],
            ["CONTROLLER", "controller", "PLAINTEXT", "0.0.0.0:29092", "-", "kafka0:29092"],
        ]

    def test_what_aws_has_yet_to_name_is_not_rendered(
        self, project: Project, capsys: pytest.CaptureFixture[str]
    ) -> None:
        cluster = aws_documents.document(**aws_documents.TWO_LISTENERS)
        text = json.dumps({"config": {"earshot:cluster": cluster}})
        project.stack_file("mine").write_text(text)
        assert run(["plan", "-s", "mine", "--render", "1"]) == 2
        assert "its names are not known before AWS has given them" in capsys.readouterr().err

    def test_renders_a_container_as_a_file_of_variables(
        self, project: Project, capsys: pytest.CaptureFixture[str]
    ) -> None:
        project.stack_file("mine").write_text(DOCKER)
        assert run(["plan", "-s", "mine", "--render", "0"]) == 0
        assert "KAFKA_NODE_ID=0\n" in capsys.readouterr().out

    def test_a_container_is_rendered_with_the_id_of_the_stack_s_file(
        self, project: Project, capsys: pytest.CaptureFixture[str]
    ) -> None:
        given = "MkU3OEVBNTcwNTJENDM2Qk"
        project.stack_file("mine").write_text(f"{DOCKER}    cluster_id: {given}\n")
        assert run(["plan", "-s", "mine", "--render", "0"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line for line in lines if "CLUSTER_ID" in line] == [f"CLUSTER_ID={given}"]

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
        self, project: Project, content: str, observed: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        project.stack_file("local").write_text(content)
        assert run(["plan", "--stack", "local"]) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: stacks/Pulumi.local.yaml")
        assert error.count("error:") == 1
        assert observed in error
        assert "Traceback" not in error


class TestReport:
    @pytest.mark.parametrize(
        ("name", "code"), [("all_pass", 0), ("dead_broker", 1), ("inconclusive", 3)]
    )
    def test_the_exit_code_is_the_verdict(
        self, name: str, code: int, project: Project, capsys: pytest.CaptureFixture[str]
    ) -> None:
        save(project, as_json(samples.ALL[name]()))
        assert run(["report", "--stack", "local"]) == code
        assert capsys.readouterr().out.startswith("earshot ")

    def test_reports_of_hostile_size_are_one_error(
        self, project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("earshot.cli.report.MOST_CELLS", 10)
        kept = save(project, as_json(samples.all_pass()))
        assert run(["report", str(kept), str(kept)]) == 2
        assert "have 12 cells" in capsys.readouterr().err
        text = '{"kind": "doctor", "run": "r", "cluster": "c", "started": 0, "seconds": 0, '
        kept.write_text(text + '"cells": [' + "{}," * 60_000 + "{}]}")
        assert run(["report", str(kept)]) == 2
        error = capsys.readouterr().err
        assert len(error) < 4000

    def test_a_report_is_not_written_over(
        self, project: Project, capsys: pytest.CaptureFixture[str]
    ) -> None:
        kept = save(project, as_json(samples.all_pass()))
        for arguments in (["--stack", "local"], [str(kept)]):
            assert run(["report", *arguments, "-o", str(kept)]) == 2
            assert capsys.readouterr().err == (
                f"error: output {kept}: is a file that is read\n  allowed: another file\n"
            )
        assert kept.read_text() == as_json(samples.all_pass())

    @pytest.mark.parametrize("name", ["server.properties", "README.md"])
    def test_a_file_that_is_no_report_is_replaced_by_force_alone(
        self, name: str, project: Project, capsys: pytest.CaptureFixture[str]
    ) -> None:
        save(project, as_json(samples.all_pass()))
        (other := project.root / name).write_text("listeners=A://:1\n")
        command = ["report", "--stack", "local", "--format", "json", "-o", str(other)]
        assert run(command) == 2
        assert capsys.readouterr().err == (
            f"error: output {other}: exists, and is not a report of earshot\n"
            "  allowed: a new file, or a report of earshot\n"
            "  fix: name another file, or add --force to replace this one\n"
        )
        assert other.read_text() == "listeners=A://:1\n"
        assert run([*command, "--force"]) == 0
        assert other.read_text() == as_json(samples.all_pass())

    def test_an_earlier_report_is_replaced(self, project: Project) -> None:
        save(project, as_json(samples.all_pass()))
        (file := project.root / "r.json").write_text(as_json(samples.dead_broker()))
        assert run(["report", "--stack", "local", "-o", str(file)]) == 0
        assert file.read_text() == as_json(samples.all_pass())

    def test_a_dash_is_stdout_in_the_format_that_is_asked_for(
        self, project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(project.root)
        save(project, as_json(samples.all_pass()))
        command = ["report", "--stack", "local", "-o", "-"]
        assert run(command) == 0
        assert capsys.readouterr().out.startswith("earshot ")
        assert run([*command, "--format", "json", "-o", "r.json"]) == 0
        assert capsys.readouterr().out == as_json(samples.all_pass())
        assert Path("r.json").read_text() == as_json(samples.all_pass())
        assert not Path("-").exists()

    def test_several_files_become_one(
        self, project: Project, capsys: pytest.CaptureFixture[str]
    ) -> None:
        one = save(project, as_json(samples.all_pass()))
        two = project.root / "two.json"
        cells = samples.healthy_cells("container")
        two.write_text(as_json(samples.report(cells, vantages=[])))
        assert run(["report", str(one), str(two), "--format", "json"]) == 0
        report = read_report(capsys.readouterr().out, "stdout")
        assert {cell.vantage for cell in report.cells} == {"host", "container"}

    def test_files_get_the_format_of_their_suffix_and_stdout_the_text(
        self, project: Project, capsys: pytest.CaptureFixture[str]
    ) -> None:
        save(project, as_json(samples.drift()))
        arguments = ["report", "-s", "local", "-o", "a/junit.xml", "-o", "page.html"]
        assert run(arguments) == 1
        assert capsys.readouterr().out.startswith("earshot doctor: FAIL")
        assert Path("a/junit.xml").read_text().startswith("<?xml")
        assert Path("page.html").read_text().startswith("<!doctype html>")

    def test_format_goes_before_suffix(self, project: Project) -> None:
        save(project, as_json(samples.drift()))
        assert run(["report", "-s", "local", "-o", "report.txt", "-f", "json"]) == 1
        assert read_report(Path("report.txt").read_text(), "file").cells

    @pytest.mark.parametrize(
        ("arguments", "observed"),
        [
            (["report"], "neither --stack nor a file"),
            (["report", "-s", "local"], "has no report yet"),
            (["report", "nowhere.json"], "cannot be read (No such file or directory)"),
            (["report", "Pulumi.yaml"], "is not JSON"),
            (["report", "s3://bucket"], "s3://bucket: is no object's URL"),
            (["report", "-s", "local", "-o", "x.y"], "its suffix names no format"),
            (["report", "-s", "local", "-o", "stacks", "-f", "json"], "is a folder"),
        ],
    )
    def test_each_fault_has_its_message(
        self,
        arguments: list[str],
        observed: str,
        project: Project,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        assert run(arguments) == 2
        assert observed in capsys.readouterr().err

    def test_a_file_that_cannot_be_written(
        self, project: Project, capsys: pytest.CaptureFixture[str]
    ) -> None:
        save(project, as_json(samples.drift()))
        assert run(["report", "-s", "local", "-o", "Pulumi.yaml/report.json"]) == 2
        assert "cannot be written" in capsys.readouterr().err


class TestRules:
    def test_lists_all(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["rules"]) == 0
        assert "KL011" in capsys.readouterr().out

    def test_shows_one_in_full_in_any_case(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["rules", "kl011", "--format", "json"]) == 0
        (rule,) = json.loads(capsys.readouterr().out)
        known = next(item for item in RULES if item.id == "KL011")
        assert "wurstmeister/kafka-docker#183" in rule.pop("reported")
        assert rule == {
            "id": "KL011",
            "title": known.title,
            "reason": known.reason,
            "remedy": known.remedy,
            "source": known.source,
            "severity": "error",
            "kafka": str(known.kafka),
            "applied": "to a stack's plan at the gate and by `earshot plan --check`",
            "bad": example_of("KL011").bad,
            "good": example_of("KL011").good,
        }

    def test_shows_one_in_full_as_text(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["rules", "KL011"]) == 0
        known = next(item for item in RULES if item.id == "KL011")
        first, *rest = capsys.readouterr().out.splitlines()
        assert first == f"KL011: {known.title}"
        shown = "\n".join(rest)
        for name in ("reason", "remedy", "source", "severity", "kafka"):
            assert re.search(rf"^ *{name}:? ", shown, re.MULTILINE)
        assert not re.search(r"^ *(id|title):? ", shown, re.MULTILINE)
        example = example_of("KL011")
        lines = [f"  {line}" for line in example.bad.splitlines()]
        lines = ["", "bad:", *lines, "", "good:"]
        lines += [f"  {line}" for line in example.good.splitlines()]
        assert rest[-len(lines) :] == lines

    def test_an_unknown_id_lists_the_known(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["rules", "KL999"]) == 2
        assert "allowed: KL0" in capsys.readouterr().err


class TestTarget:
    def contract(self, project: Project) -> Contract:
        plan = plan_stack(project.read_cluster("local"), "local", project.root).plan
        return Contract.of(plan, "local", "local")

    def test_of_a_stack(self, project: Project) -> None:
        contract = self.contract(project)
        file = project.contract_file("local")
        file.parent.mkdir(parents=True)
        file.write_text(contract.to_json())
        found = target("organization/earshot/local", None, "a:1")
        assert (found.contract, found.bootstrap) == (contract, (Address("a", 1),))
        assert found.report_file == project.report_file("local")
        assert target("local", None, None).bootstrap == ()

    def test_of_a_file(self, project: Project) -> None:
        Path("c.json").write_text(self.contract(project).to_json())
        found = target(None, "c.json", None)
        assert found.contract == self.contract(project)
        assert found.report_file is None

    def test_of_a_file_on_stdin(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", piped(self.contract(project).to_json().encode()))
        assert target(None, "-", None).contract == self.contract(project)
        monkeypatch.setattr(sys, "stdin", piped(b"{"))
        with pytest.raises(EarshotError, match=r"^stdin: is not JSON"):
            target(None, "-", None)

    def test_of_addresses(self) -> None:
        found = target(None, None, "a:1, [::1]:2,,")
        assert found.bootstrap == (Address("a", 1), Address("::1", 2))
        assert found.contract is None

    def test_of_names_that_only_others_give(self) -> None:
        found = target(None, None, "my_kafka:1,kafka.:2")
        assert found.bootstrap == (Address("my_kafka", 1), Address("kafka.", 2))

    @pytest.mark.parametrize(
        ("options", "observed"),
        [
            ((None, None, None), "neither --stack nor --contract nor --bootstrap"),
            (("local", "c.json", None), "are both given"),
            ((None, "c.json", None), "cannot be read"),
            ((None, "Pulumi.yaml", None), "is not JSON"),
            ((None, None, "host"), "has no port"),
            ((None, None, ""), "has no port"),
            ((None, None, "host:70000"), "is not a usable port"),
            ((None, None, "my_kafka:70000"), "host 'my_kafka': has the label 'my_kafka'"),
            ((None, None, "_:9092_"), "host '_': has the label '_'"),
            ((None, None, "256.1.1.1:9092"), "looks like an IPv4 address"),
        ],
    )
    def test_each_fault_has_its_message(
        self, options: tuple[str | None, str | None, str | None], observed: str, project: Project
    ) -> None:
        with pytest.raises(EarshotError, match=observed):
            target(*options)

    def test_a_stack_without_contract_and_pulumi(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", str(project.root))
        error = raised(EarshotError, stack_contract, project, "organization/earshot/local")
        file = project.contract_file("local")
        assert str(error) == (
            f"stack local: has no contract yet: {file} does not exist, and there is no pulumi on "
            "PATH to ask\n  fix: deploy it (make up STACK=local), or name a --contract"
        )

    def double_of_pulumi(self, project: Project, script: str) -> None:
        """A double of the Pulumi CLI, first on PATH."""
        double = project.root / "pulumi"
        double.write_text(f"#!/bin/sh\n{script}\n")
        double.chmod(0o755)

    def test_pulumi_is_asked_where_no_update_ran_here(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Path("c.json").write_text(self.contract(project).to_json())
        self.double_of_pulumi(project, 'echo "$*" > asked; /bin/cat c.json')
        monkeypatch.setenv("PATH", str(project.root))
        assert stack_contract(project, "local") == self.contract(project)
        asked = Path("asked").read_text()
        assert asked == "stack output contract --json --stack local --non-interactive\n"

    def test_what_pulumi_says_is_passed_on(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.double_of_pulumi(project, "echo 'error: no stack named local' >&2; exit 255")
        monkeypatch.setenv("PATH", str(project.root))
        assert raised(EarshotError, stack_contract, project, "local").observed == (
            f"has no contract yet: {project.contract_file('local')} does not exist, and `stack "
            "output contract --json --stack local` says: no stack named local"
        )

    def test_pulumi_that_does_not_answer_is_given_up(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.double_of_pulumi(project, "exec /bin/sleep 60")
        monkeypatch.setenv("PATH", str(project.root))
        monkeypatch.setattr("earshot.cli.target.PULUMI_SECONDS", 0.05)
        error = raised(EarshotError, stack_contract, project, "local")
        assert error.observed.endswith(", and `pulumi` did not answer within 0.05 s")


@pytest.mark.usefixtures("project")
class TestDoctor:
    """Around the doctor itself, for which a double stands here."""

    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, dict[str, object]]]:
        found: list[tuple[object, dict[str, object]]] = []

        def examine(looked_at: object, *, draft: Draft, **options: object) -> Report:
            found.append((looked_at, options))
            return samples.drift()

        monkeypatch.setattr("earshot.cli.doctor.examine", examine)
        return found

    def test_addresses_are_looked_at(
        self, asked: list[tuple[object, dict[str, object]]], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["doctor", "--bootstrap", "a:1, b:2,a:1"]) == 1
        addresses = (Address("a", 1), Address("b", 2))
        usual = {"client": {}, "bootstrap": (), "deadline": 10.0, "produce": True}
        assert asked == [(addresses, usual)]
        assert "containers" not in capsys.readouterr().out

    def test_a_contract_is_looked_at_and_addresses_beside_it(
        self, asked: list[tuple[object, dict[str, object]]], capsys: pytest.CaptureFixture[str]
    ) -> None:
        Path("c.json").write_text(docker_contract().to_json())
        arguments = ["--contract", "c.json", "--bootstrap", "a:1", "--deadline", "3"]
        assert run(["doctor", *arguments, "--no-produce"]) == 1
        ((contract, options),) = asked
        assert contract == docker_contract()
        assert (options["bootstrap"], options["deadline"]) == ((Address("a", 1),), 3.0)
        assert options["produce"] is False
        assert "listeners for clients in containers" in capsys.readouterr().out

    def test_of_a_scope_only_its_listeners_are_looked_at(
        self, asked: list[tuple[object, dict[str, object]]], capsys: pytest.CaptureFixture[str]
    ) -> None:
        Path("c.json").write_text(docker_contract().to_json())
        assert run(["doctor", "--contract", "c.json", "--scope", "host"]) == 1
        ((contract, _),) = asked
        assert contract == docker_contract().for_scope(Scope.HOST)
        assert "listeners for clients in containers" not in capsys.readouterr().out

    def test_an_unknown_scope_is_refused(
        self, asked: list[tuple[object, dict[str, object]]], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["doctor", "--bootstrap", "a:1", "--scope", "host"]) == 2
        assert capsys.readouterr().err.endswith(
            "--scope host: the purpose of a listener is not known outside its cluster\n"
            "  fix: name a --stack or a --contract\n"
        )
        contract = docker_contract().for_scope(Scope.INTERNAL)
        Path("c.json").write_text(contract.to_json())
        assert run(["doctor", "--contract", "c.json", "--scope", "host"]) == 2
        assert capsys.readouterr().err.endswith(
            "--scope host: no listener of the contract is for it\n"
            f"  allowed: {', '.join(contract.scopes)}\n"
        )
        assert asked == []

    @pytest.mark.parametrize("command", ["doctor", "validate"])
    @pytest.mark.parametrize("read", ["c.json", "client.properties"])
    def test_what_it_reads_is_not_written_over(
        self,
        command: str,
        read: str,
        asked: list[tuple[object, dict[str, object]]],
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        Path("c.json").write_text(docker_contract().to_json())
        Path("client.properties").write_text("security.protocol=SSL\n")
        before = Path(read).read_text()
        options = ["--contract", "c.json", "--client-config", "client.properties"]
        assert run([command, *options, "--format", "json", "-o", read]) == 2
        assert capsys.readouterr().err == (
            f"error: output {read}: is a file that is read\n  allowed: another file\n"
        )
        assert (asked, Path(read).read_text()) == ([], before)


def test_doctor_of_a_closed_port(capsys: pytest.CaptureFixture[str]) -> None:
    with closed_port() as address:
        assert run(["doctor", "--bootstrap", str(address), "--format", "json"]) == 1
    report = read_report(capsys.readouterr().out, "stdout")
    assert [cell.cause.kind for cell in report.cells if cell.cause] == ["refused"]


def test_a_contract_that_cannot_be_read_is_one_error_of_the_plan(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    (project.root / "stacks").mkdir(exist_ok=True)
    project.stack_file("mine").write_text(STACK)
    file = project.contract_file("mine")
    file.parent.mkdir(parents=True)
    file.write_bytes(b"\xff\xfe")
    assert run(["plan", "-s", "mine"]) == 2
    assert capsys.readouterr().err == f"error: file {file}: is no UTF-8 text\n"
    file.unlink()
    file.mkdir()
    assert run(["plan", "-s", "mine"]) == 2
    assert capsys.readouterr().err == f"error: file {file}: cannot be read (Is a directory)\n"


def test_an_unknown_key_of_an_address_in_a_contract_is_one_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(docker_contract().to_json())
    name = next(iter(document["brokers"][0]["advertised"]))
    document["brokers"][0]["advertised"][name]["tls"] = True
    (tmp_path / "new.json").write_text(json.dumps(document))
    assert run(["doctor", "--contract", str(tmp_path / "new.json")]) == 2
    error = capsys.readouterr().err
    assert f"advertised.{name}.tls: is no key that earshot knows; allowed: host, port" in error


@pytest.mark.parametrize(
    ("stdin", "message"),
    [
        ("<&-", "error: stdin: "),
        ("< bytes", "error: stdin: is no UTF-8 text"),
        ("< /dev/zero", "error: stdin: cannot be read (it holds more than 64 MiB)"),
    ],
)
def test_a_contract_on_stdin_that_is_none_is_one_error(
    tmp_path: Path, stdin: str, message: str
) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    done = shell(f"doctor --contract - {stdin}", tmp_path, PYTHONIOENCODING="utf-8:strict")
    assert (done.returncode, done.stderr[: len(message)]) == (2, message)


def test_a_stdout_that_is_closed_is_no_fault(tmp_path: Path) -> None:
    done = shell("rules >&-", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("words", ["rules", "--version", "plan --help"])
def test_a_stdout_that_is_full_is_one_error(tmp_path: Path, words: str) -> None:
    done = shell(f"{words} > /dev/full", tmp_path)
    said = (
        "error: stdout: cannot be written (No space left on device)\n"
        "  fix: free space on that disk, then run the same command again\n"
    )
    assert (done.returncode, done.stderr) == (2, said)


@pytest.mark.parametrize("words", ["rules KL999", "plan --nothing", "nothing"])
def test_a_stderr_that_is_full_leaves_the_exit_code(tmp_path: Path, words: str) -> None:
    assert shell(f"{words} 2> /dev/full", tmp_path).returncode == 2


@pytest.mark.parametrize("words", ["doctor -s local", "lint ."])
def test_a_folder_that_was_removed_is_one_error(tmp_path: Path, words: str) -> None:
    (tmp_path / "gone").mkdir()
    done = shell(words, tmp_path, "cd gone && rmdir ../gone && ")
    said = "error: the current folder: was removed\n  fix: change into the project's folder\n"
    assert (done.returncode, done.stderr) == (2, said)


@pytest.mark.parametrize("words", ["--help", "plan --help", "lint --help"])
def test_a_reader_of_the_help_may_go_away(tmp_path: Path, words: str) -> None:
    done = shell(f"{words} 2>&1 | true; exit ${{PIPESTATUS[0]}}", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def shell(
    words: str, folder: Path, before: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """`earshot` as a shell starts it, after what it does ``before``."""
    start = f"{sys.executable} -c 'from earshot.cli import main; main()'"
    return subprocess.run(
        ["bash", "-c", f"{before}{start} {words}"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
