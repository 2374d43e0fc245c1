"""The command `earshot adopt`: exit codes, files, the `.env` of a compose file."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from earshot.cli import run

FILES = Path(__file__).parent / "files"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(FILES, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OUTSIDE", raising=False)
    return tmp_path


def test_all_well_is_0_and_shows_the_stack_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["adopt", "three_listeners.yml"]) == 0
    assert "    placement: docker\n" in capsys.readouterr().out


def test_a_mistake_is_1_and_the_file_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["adopt", "two_listeners.yml", "-o", "Pulumi.adopted.yaml"]) == 1
    out = capsys.readouterr().out
    assert "[KL017]" in out and "written: Pulumi.adopted.yaml" in out and "placement:" not in out
    stack_document = yaml.safe_load(Path("Pulumi.adopted.yaml").read_text())
    assert stack_document["config"]["earshot:cluster"]["placement"] == "docker"


def test_a_question_is_1_and_nothing_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["adopt", "undecided.yml", "-o", "out.yaml"]) == 1
    assert "--scope PARTNER=internal|host|external" in capsys.readouterr().out
    assert not Path("out.yaml").exists()
    run(["adopt", "undecided.yml", "--scope", "PARTNER=host+external", "-o", "out.yaml"])
    assert Path("out.yaml").exists()


def test_json_is_one_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["adopt", "two_listeners.yml", "-f", "json", "-o", "out.yaml"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["mistakes"][0]["container"] == "kafka0"
    assert document["cluster"]["broker_ids"] == [0]


def test_a_mounted_properties_file_counts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("server.properties").write_text(
        "node.id=1\nprocess.roles=broker,controller\nlisteners=A://:1,C://:2\n"
        "advertised.listeners=A://other:1\nlistener.security.protocol.map=A:PLAINTEXT,C:PLAINTEXT\n"
        "inter.broker.listener.name=A\ncontroller.listener.names=C\n"
        "controller.quorum.voters=1@kafka:9\n"
    )
    Path("mounts.yml").write_text(
        "services:\n  kafka:\n    image: apache/kafka:4.1.1\n"
        "    volumes: ['./server.properties:/mnt/shared/config/server.properties']\n"
    )
    assert run(["adopt", "mounts.yml"]) == 1
    assert "[KL016]" in capsys.readouterr().out


@pytest.mark.parametrize(
    "file", sorted(path.name for path in FILES.iterdir() if path.suffix != ".env")
)
def test_adopt_and_lint_name_the_same_mistakes(
    file: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUTSIDE", "kafka.example.com")
    run(["adopt", file, "-f", "json"])
    adopted = json.loads(capsys.readouterr().out)["mistakes"]
    run(["lint", file, "--format", "json"])
    (linted,) = json.loads(capsys.readouterr().out)["files"]
    assert [(mistake["severity"], texts(mistake)) for mistake in adopted] == [
        (mistake["level"], texts(mistake)) for mistake in linted["mistakes"]
    ]


def texts(mistake: dict[str, str]) -> tuple[str, ...]:
    return tuple(mistake[key] for key in ("rule", "subject", "observed", "expected", "remedy"))


@pytest.mark.parametrize(("option", "variable", "host"), [
    ([], None, "one.example.com"),
    (["--env-file", "our.env"], None, "two.example.com"),
    ([], "mine.example.com", "mine.example.com"),
], ids=["of .env", "of an option", "of the environment"])  # fmt: skip
def test_variables_of_an_env_file_and_of_the_environment(
    option: list[str],
    variable: str | None,
    host: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path(".env").write_text("OUTSIDE=one.example.com\n")
    Path("our.env").write_text("OUTSIDE=two.example.com\n")
    if variable:
        monkeypatch.setenv("OUTSIDE", variable)
    assert run(["adopt", "three_brokers.yml", "--service", "kafka3", *option]) == 0
    assert f"3: {host}:9194" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone.yml"], "file gone.yml: cannot be read (No such file"),
        (["", "-o", "x.yaml"], "file .: its suffix is neither of compose files nor of properties"),
        (["base.txt"], "its suffix is neither of compose files nor of properties"),
        (["three_brokers.yml"], "the variable OUTSIDE is required, and not set (the host's name)"),
        (["two_listeners.yml", "--env-file", "no.env"], "file no.env: cannot be read"),
        (["two_listeners.yml", "--service", "x"], "--service x: the file has no such service"),
        (["two_listeners.yml", "--scope", "X"], "--scope X: names no scope"),
        (["two_listeners.yml", "--scope", "X=controller"], "names no scope"),
        (["two_listeners.yml", "--scope", "X=host", "--scope", "X=host"], "X is given twice"),
        (["two_listeners.yml", "--scope", "X=host"], "--scope X: two_listeners.yml has no such"),
        (["two_listeners.yml", "-o", "."], "--output .: is a folder"),
        (["aws.properties", "--service", "x"], "--service: aws.properties is not a compose file"),
        (["common.env"], "allowed: .yml, .yaml, .properties"),
    ],
)
def test_wrong_input_is_2_and_one_message(
    arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["adopt", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and message in captured.err and "Traceback" not in captured.err


def test_help_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["adopt", "--help"]) == 0
    assert "earshot adopt docker-compose.yml" in capsys.readouterr().out


def test_a_real_file_is_read_where_it_lies(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    monkeypatch.setenv("OUTSIDE", "h.example.com")
    assert run(["adopt", str(folder / "three_brokers.yml")]) == 0
    assert "3 brokers" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("reference", "place"),
    [("env_file: /dev/zero", "env_file[0]"), ("extends: {file: /dev/zero}", "extends")],
)
def test_a_device_is_not_read(
    reference: str, place: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("device.yml").write_text(f"services: {{k: {{image: apache/kafka, {reference}}}}}")
    assert run(["adopt", "device.yml"]) == 2
    assert capsys.readouterr().err == (
        f"error: device.yml: services.k.{place}: /dev/zero cannot be read (it is no regular file)\n"
    )


@pytest.mark.parametrize(("comment", "code", "note"), [
    ("", 1, ""),
    ("# earshot: ignore=KL017 a proxy", 0, "ignored: a proxy"),
    ("# earshot: ignore=KL017 until=2020-01-01 a proxy", 1,
     "was ignored until 2020-01-01: a proxy"),
])  # fmt: skip
def test_a_comment_ignores_a_mistake_as_for_lint(
    comment: str, code: int, note: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.yml").write_text(f"""
services:
  kafka:
    image: apache/kafka:4.1.1
    ports: ["9094:9092"]
    environment:
      KAFKA_NODE_ID: 1
      KAFKA_PROCESS_ROLES: broker,controller
      KAFKA_CONTROLLER_LISTENER_NAMES: CONTROLLER
      KAFKA_CONTROLLER_QUORUM_VOTERS: 1@localhost:9093
      KAFKA_LISTENERS: PLAINTEXT://:9092,CONTROLLER://:9093
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://localhost:9092  {comment}
""")
    assert run(["adopt", "a.yml", "-f", "json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert [finding["rule"] for finding in document["mistakes"]] == ["KL017"] * code
    finding_subject = "KL017, container kafka, listener PLAINTEXT: "
    assert [finding for finding in document["notes"] if "KL017" in finding] == (
        [finding_subject + note] if note else []
    )


@pytest.mark.parametrize("text", [
    "broker.id=0\nzookeeper.connect=localhost:2181\n",
    ("node.id=1\nprocess.roles=broker,controller\ncontroller.quorum.voters=1@localhost:9093\n"
     "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER\n"),
])  # fmt: skip
def test_a_listener_that_advertises_the_machine_s_own_name_is_a_question(
    folder: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("stock.properties").write_text(text)
    assert run(["adopt", "stock.properties", "-o", "out.yaml"]) == 1
    output = " ".join(capsys.readouterr().out.split())
    assert "advertises the machine's own name, which the source does not show" in output
    assert "set advertised.listeners in the source, and adopt that" in output
    assert "no client uses it" not in output
    assert not Path("out.yaml").exists()


@pytest.mark.parametrize("output", ["two_listeners.yml", "link.yml", "used.env", ".env"])
def test_a_file_that_is_read_is_not_overwritten(
    folder: Path, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("used.env").write_text("A=1\n")
    Path(".env").write_text("A=1\n")
    Path("link.yml").symlink_to("two_listeners.yml")
    content = Path(output).read_text()
    option = [] if output == ".env" else ["--env-file", "used.env"]
    assert run(["adopt", "two_listeners.yml", *option, "-o", output]) == 2
    assert capsys.readouterr() == (
        "",
        f"error: output {output}: is a file that is read\n  allowed: another file\n",
    )
    assert Path(output).read_text() == content


def test_what_docker_compose_lays_over_a_file_counts(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy("two_listeners.yml", "docker-compose.yml")
    service = next(iter(yaml.safe_load(Path("docker-compose.yml").read_text())["services"]))
    override = {"services": {service: {"environment": {"KAFKA_NUM_IO_THREADS": "7"}}}}
    Path("docker-compose.override.yml").write_text(yaml.safe_dump(override))
    run(["adopt", "docker-compose.yml", "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    over = "docker-compose.override.yml is merged into it, as `docker compose` does"
    assert over in document["notes"]
    Path("docker-compose.override.yml").write_text("volumes: {}\n")  # no service: nothing to lay
    run(["adopt", "docker-compose.yml", "--format", "json"])
    assert over not in json.loads(capsys.readouterr().out)["notes"]


@pytest.mark.parametrize(("comment", "mistakes"), [("", ["KL002"]), ("ignore=KL002 old", [])])
def test_a_comment_in_properties_ignores_a_mistake_too(
    comment: str, mistakes: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.properties").write_text(
        "node.id=1\nprocess.roles=broker,controller\nlisteners=A://:1,C://:2\n"
        "listener.security.protocol.map=A:PLAINTEXT,C:PLAINTEXT\n"
        "inter.broker.listener.name=A\ncontroller.listener.names=C\n"
        "controller.quorum.voters=1@localhost:2\n"
        f"# earshot: {comment}\nadvertised.listeners=A://0.0.0.0:1\n"
    )
    run(["adopt", "a.properties", "-f", "json"])
    document = json.loads(capsys.readouterr().out)
    assert [finding["rule"] for finding in document["mistakes"]] == mistakes
    ignored = [finding for finding in document["notes"] if finding.endswith(": ignored: old")]
    assert len(ignored) == 1 - len(mistakes)


def test_a_stack_file_is_replaced_by_force_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["adopt", "three_listeners.yml", "-o", "Pulumi.own.yaml"]
    assert run(command) == 0
    Path("Pulumi.own.yaml").write_text("# edited\n")
    capsys.readouterr()
    assert run(command) == 2
    out, error = capsys.readouterr()
    assert (out, error.splitlines()) == (
        "",
        [
            "error: output Pulumi.own.yaml: exists, and is not an empty file",
            "  allowed: a new file, or an empty file",
            "  fix: name another file, or add --force to replace this one",
        ],
    )
    assert Path("Pulumi.own.yaml").read_text() == "# edited\n"
    assert run([*command, "--force"]) == 0
    assert "placement: docker" in Path("Pulumi.own.yaml").read_text()


@pytest.mark.parametrize("format", ["text", "json"])
def test_a_dash_is_stdout_for_the_stack_file_alone(
    format: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["adopt", "three_listeners.yml", "-o", "-", "--format", format]) == 0
    out, error = capsys.readouterr()
    assert yaml.safe_load(out)["config"]["earshot:cluster"]["placement"] == "docker"
    assert "three_listeners.yml" in error
    assert not Path("-").exists()
