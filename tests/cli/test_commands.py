"""All commands: exit codes, one clear message per fault, and nothing heavy for light work."""

import inspect
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from earshot import __version__
from earshot.cli.commands import app
from earshot.doctor.draft import Draft
from earshot.listeners.address import Address
from earshot.listeners.terms import Scope
from earshot.project import Project
from earshot.report.json import read_report
from earshot.validation.result import Report
from tests.cli.command import Earshot
from tests.doubles.closed_port import closed_port
from tests.remote.contracts import docker_contract
from tests.report import samples

ROOT = Path(__file__).parents[2]
WAITING = """
import time, pathlib, sys
import earshot.cli.report as command
def wait(*_, **__):
    try:
        print('waiting', flush=True)
        while True: time.sleep(0.05)  # a signal just before one long sleep would be seen after it
    finally:
        pathlib.Path(sys.argv[-1]).write_text('done')
command.run = wait
from earshot.cli import main
main()
"""
LOADING = """
import sys
from earshot.cli import run
assert run(sys.argv[1:]) == 0
heavy = {'pyspark', 'py4j', 'confluent_kafka', 'pulumi', 'jinja2', 'cryptography'}
sys.exit(' '.join(heavy & set(sys.modules)) or None)
"""


def test_version(earshot: Earshot) -> None:
    assert earshot.output("--version") == f"earshot {__version__}\n"


@pytest.mark.parametrize(
    "command", ["plan", "doctor", "validate", "client", "report", "rules", "adopt", "lint"]
)
def test_help_shows_an_example(command: str, earshot: Earshot) -> None:
    help_text = earshot.output(f"{command} --help")
    assert f"earshot {command} " in help_text.lower().split("usage:")[1]


@pytest.mark.parametrize("command", ["", "plan"])
def test_help_has_a_short_name(command: str, earshot: Earshot) -> None:
    assert earshot.output(f"{command} --help") == earshot.output(f"{command} -h")


def test_help_fits_a_terminal_of_80_columns() -> None:
    for command in app.registered_commands:
        assert command.callback is not None
        for line in (inspect.getdoc(command.callback) or "").split("\n\n", 1)[-1].splitlines():
            assert len(line) <= 78, f"{command.callback.__name__}: {line}"


@pytest.mark.parametrize(
    "line", ["nope", "plan", "plan --stack", "doctor --deadline soon", "--nope"]
)
def test_wrong_usage_is_2(line: str, earshot: Earshot) -> None:
    assert "Error" in earshot.refusal(line)


@pytest.mark.usefixtures("project")
def test_an_error_is_one_message_and_debug_shows_its_trace(earshot: Earshot) -> None:
    error = earshot.refusal("plan --stack prod")
    assert error.startswith("error: stack prod: stacks/Pulumi.prod.yaml does not exist")
    assert "allowed: stacks with a file: local" in error
    assert "Traceback" not in error
    for line in ("--debug plan -s prod", "plan -s prod --debug"):
        assert "Traceback" in earshot.refusal(line)


Raise = Callable[[Exception], None]


@pytest.fixture
def raise_in_plan(project: Project, monkeypatch: pytest.MonkeyPatch) -> Raise:
    """`earshot plan --stack local` raises this error."""

    def configure(fault: Exception) -> None:
        def broken(self: Project, stack: str) -> None:
            raise fault

        monkeypatch.setattr(Project, "read_cluster", broken)

    return configure


def test_a_fault_of_earshot_is_one_line(raise_in_plan: Raise, earshot: Earshot) -> None:
    raise_in_plan(RuntimeError("out of ideas"))
    code, _, error = earshot("plan --stack local")
    assert (code, len(error.splitlines())) == (70, 1)
    assert "RuntimeError: out of ideas; --debug shows where" in error


@pytest.mark.parametrize(
    ("module", "extra"), [("docker.errors", "docker"), ("pyspark", "spark"), ("boto3", "aws")]
)
def test_a_missing_extra_is_named(
    module: str, extra: str, raise_in_plan: Raise, earshot: Earshot
) -> None:
    raise_in_plan(ModuleNotFoundError(f"No module named {module!r}", name=module))
    assert earshot.refusal("plan --stack local") == (
        f"error: this command needs more packages; fix: pip install 'earshot[{extra}]'\n"
    )


@pytest.mark.usefixtures("project")
def test_a_message_cannot_steer_the_terminal(earshot: Earshot) -> None:
    assert "\\u001b[2J.json" in earshot.refusal("report", "\x1b[2J.json")


@pytest.mark.parametrize(
    ("number", "code", "message"),
    [(signal.SIGINT, 130, "interrupted\n"), (signal.SIGTERM, 143, "terminated\n")],
)
def test_a_signal_ends_it_after_its_clean_up(
    number: signal.Signals, code: int, message: str, tmp_path: Path
) -> None:
    mark = tmp_path / "cleaned"
    child = subprocess.Popen(
        [sys.executable, "-c", WAITING, "report", str(mark)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "waiting\n"
    child.send_signal(number)
    _, errors = child.communicate(timeout=120)
    assert (child.returncode, mark.read_text(), errors) == (code, "done", message)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("line", ["plan --stack local --render all", "lint ."])
def test_a_reader_that_goes_away_is_no_fault(line: str) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "earshot", *line.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert child.stdout is not None
    child.stdout.close()
    child.stdout = None
    _, errors = child.communicate(timeout=120)
    assert (child.returncode, errors) == (0, b"")


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("line", ["--help", "plan --stack local", "rules"])
def test_light_commands_load_nothing_heavy(line: str) -> None:
    command = [sys.executable, "-c", LOADING, *line.split()]
    assert subprocess.run(command, capture_output=True, check=False).stderr == b""


Examined = list[tuple[object, dict[str, object]]]


@pytest.fixture
def examined(project: Project, monkeypatch: pytest.MonkeyPatch) -> Examined:
    """The targets and options of a doctor whose double finds a drift."""
    calls: Examined = []

    def examine(target: object, *, draft: Draft, **options: object) -> Report:
        calls.append((target, options))
        return samples.drift()

    monkeypatch.setattr("earshot.cli.doctor.examine", examine)
    Path("c.json").write_text(docker_contract().to_json())
    return calls


def test_the_doctor_examines_addresses(examined: Examined, earshot: Earshot) -> None:
    code, output, _ = earshot("doctor --bootstrap", "a:1, b:2,a:1")
    addresses = (Address("a", 1), Address("b", 2))
    defaults = {"client": {}, "bootstrap": (), "deadline": 10.0, "produce": True}
    assert (code, examined) == (1, [(addresses, defaults)])
    assert "containers" not in output


def test_the_doctor_examines_a_contract_and_addresses(examined: Examined, earshot: Earshot) -> None:
    line = "doctor --contract c.json --bootstrap a:1 --deadline 3 --no-produce"
    code, output, _ = earshot(line)
    ((contract, options),) = examined
    assert (code, contract) == (1, docker_contract())
    assert (options["bootstrap"], options["deadline"]) == ((Address("a", 1),), 3.0)
    assert options["produce"] is False
    assert "listeners for clients in containers" in output


def test_the_doctor_examines_the_listeners_of_a_scope(examined: Examined, earshot: Earshot) -> None:
    code, output, _ = earshot("doctor --contract c.json --scope host")
    ((contract, _),) = examined
    assert (code, contract) == (1, docker_contract().for_scope(Scope.HOST))
    assert "listeners for clients in containers" not in output


def test_an_unknown_scope_is_refused(examined: Examined, earshot: Earshot) -> None:
    assert earshot.refusal("doctor --bootstrap a:1 --scope host").endswith(
        "--scope host: the purpose of a listener is not known outside its cluster\n"
        "  fix: name a --stack or a --contract\n"
    )
    contract = docker_contract().for_scope(Scope.INTERNAL)
    Path("c.json").write_text(contract.to_json())
    assert earshot.refusal("doctor --contract c.json --scope host").endswith(
        "--scope host: no listener of the contract is for it\n"
        f"  allowed: {', '.join(contract.scopes)}\n"
    )
    assert examined == []


@pytest.mark.parametrize("command", ["doctor", "validate"])
@pytest.mark.parametrize("output", ["c.json", "client.properties"])
def test_an_input_is_not_overwritten(
    command: str, output: str, examined: Examined, earshot: Earshot
) -> None:
    Path("client.properties").write_text("security.protocol=SSL\n")
    content = Path(output).read_text()
    line = f"{command} --contract c.json --client-config client.properties --format json"
    assert earshot.refusal(f"{line} -o {output}") == (
        f"error: output {output}: is a file that is read\n  allowed: another file\n"
    )
    assert (examined, Path(output).read_text()) == ([], content)


def test_doctor_of_a_closed_port(earshot: Earshot) -> None:
    with closed_port() as address:
        code, output, _ = earshot(f"doctor --bootstrap {address} --format json")
    report = read_report(output, "stdout")
    assert (code, [cell.cause.kind for cell in report.cells if cell.cause]) == (1, ["refused"])


def test_a_contract_that_cannot_be_read_is_one_error_of_the_plan(
    project: Project, earshot: Earshot
) -> None:
    file = project.contract_file("local")
    file.parent.mkdir(parents=True)
    file.write_bytes(b"\xff\xfe")
    assert earshot.refusal("plan -s local") == f"error: file {file}: is no UTF-8 text\n"
    file.unlink()
    file.mkdir()
    assert earshot.refusal("plan -s local") == (
        f"error: file {file}: cannot be read (Is a directory)\n"
    )


def test_an_unknown_key_of_an_address_in_a_contract_is_one_error(
    tmp_path: Path, earshot: Earshot
) -> None:
    document = json.loads(docker_contract().to_json())
    name = next(iter(document["brokers"][0]["advertised"]))
    document["brokers"][0]["advertised"][name]["tls"] = True
    (tmp_path / "new.json").write_text(json.dumps(document))
    error = earshot.refusal(f"doctor --contract {tmp_path / 'new.json'}")
    assert f"advertised.{name}.tls: is no key that earshot knows; allowed: host, port" in error


def shell(line: str, folder: Path, **variables: str) -> tuple[int, str]:
    """The exit code and the messages of a line of bash, in which `earshot` is the command."""
    start = f"{sys.executable} -P -c 'from earshot.cli import main; main()'"
    completed = subprocess.run(
        ["bash", "-c", line.replace("earshot", start)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return completed.returncode, completed.stderr


@pytest.mark.parametrize(
    ("stdin", "message"),
    [
        ("<&-", "error: stdin: "),
        ("< bytes", "error: stdin: is no UTF-8 text"),
        ("< /dev/zero", "error: stdin: cannot be read (it holds more than 64 MiB)"),
    ],
)
def test_an_unreadable_contract_on_stdin_is_one_error(
    tmp_path: Path, stdin: str, message: str
) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    line = f"earshot doctor --contract - {stdin}"
    code, errors = shell(line, tmp_path, PYTHONIOENCODING="utf-8:strict")
    assert (code, errors[: len(message)]) == (2, message)


FULL = (
    "error: stdout: cannot be written (No space left on device)\n"
    "  fix: free space on that disk, then run the same command again\n"
)
REMOVED = "error: the current folder: was removed\n  fix: change into the project's folder\n"


@pytest.mark.parametrize(("line", "code", "error"), [
    ("earshot rules >&-", 0, ""),  # a closed stdout is no fault
    *((f"earshot {words} > /dev/full", 2, FULL) for words in ("rules", "--version", "plan -h")),
    # a full stderr leaves the exit code
    *((f"earshot {words} 2> /dev/full", 2, "")
      for words in ("rules KL999", "plan --nothing", "nothing")),
    *((f"cd gone && rmdir ../gone && earshot {words}", 2, REMOVED)
      for words in ("doctor -s local", "lint .")),
    # the reader of a help text may go away
    *((f"earshot {words} --help 2>&1 | true; exit ${{PIPESTATUS[0]}}", 0, "")
      for words in ("", "plan", "lint")),
])  # fmt: skip
def test_a_stream_or_a_folder_that_is_lost(
    line: str, code: int, error: str, tmp_path: Path
) -> None:
    (tmp_path / "gone").mkdir()
    assert shell(line, tmp_path) == (code, error)
