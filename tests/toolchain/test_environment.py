"""The exports of `make env`, which keep a backend that the user chose."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from earshot.errors import EarshotError
from toolchain import environment, paths
from toolchain.pulumi_cli import installation
from toolchain.pulumi_cli.installation import Installation, Origin


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout elsewhere, with an odd name: every path has to survive a shell."""
    root = tmp_path / "it's $HOME here"
    root.mkdir()
    for name in ("STATE", "PULUMI_HOME", "VENV"):
        monkeypatch.setattr(environment, name, root / getattr(paths, name).relative_to(paths.ROOT))
    return root


def use(monkeypatch: pytest.MonkeyPatch, origin: Origin) -> Installation:
    cli = Installation(Path("/opt/pulumi/bin"), "3.259.0", origin)
    monkeypatch.setattr(installation, "recorded", lambda: cli)
    return cli


def test_built_cli_gets_files_and_asks_no_service(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Origin.BUILT)
    variables = environment.variables("local", {"PATH": "/usr/bin"})
    assert variables["PATH"] == f"/opt/pulumi/bin:{checkout}/.venv/bin:/usr/bin"
    assert variables["PULUMI_BACKEND_URL"] == (checkout / ".earshot" / "state").as_uri()
    assert (checkout / ".earshot" / "state").is_dir()
    assert variables["PULUMI_HOME"] == f"{checkout}/.earshot/pulumi"
    assert variables["PULUMI_CONFIG_PASSPHRASE"] == environment.DEFAULT_PASSPHRASE
    assert variables["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] == "true"
    assert variables["PULUMI_DISABLE_REGISTRY_RESOLVE"] == "true"
    assert variables["PYTHONDONTWRITEBYTECODE"] == ""


def test_other_users_cannot_read_states(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their default passphrase is public."""
    use(monkeypatch, Origin.BUILT)
    state = checkout / ".earshot" / "state"
    state.mkdir(parents=True, mode=0o755)
    environment.variables("local", {"PATH": "/usr/bin"})
    assert state.stat().st_mode & 0o777 == 0o700


def test_evaluating_twice_is_the_same_as_once(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Origin.BUILT)
    variables = environment.variables("local", {"PATH": "/usr/bin"})
    assert environment.variables("local", variables) == {
        name: value for name, value in variables.items() if name != "PULUMI_CONFIG_PASSPHRASE"
    }


@pytest.mark.parametrize(
    "base",
    [
        {"PULUMI_BACKEND_URL": "s3://bucket"},
        {"PULUMI_BACKEND_URL": "file:///home/somebody/state"},
        {"PULUMI_ACCESS_TOKEN": "pul-1"},
    ],
)
def test_chosen_backend_is_kept(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, base: dict[str, str]
) -> None:
    use(monkeypatch, Origin.INSTALLED)
    variables = environment.variables("local", {"PATH": "/usr/bin", **base})
    assert not variables.keys() & {"PULUMI_BACKEND_URL", "PULUMI_HOME", "PULUMI_CONFIG_PASSPHRASE"}
    assert "PULUMI_DISABLE_REGISTRY_RESOLVE" not in variables


@pytest.mark.parametrize(
    ("credentials", "is_kept"),
    [({"current": "https://example.org"}, True), ({"current": ""}, False), ([], False)],
)
def test_login_counts_as_a_choice(
    checkout: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    credentials: object,
    is_kept: bool,
) -> None:
    cli = use(monkeypatch, Origin.INSTALLED)
    (tmp_path / "credentials.json").write_text(json.dumps(credentials))
    assert environment.has_own_backend(cli, {"PULUMI_HOME": str(tmp_path)}) is is_kept


def test_own_passphrase_is_kept(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Origin.BUILT)
    variables = environment.variables("local", {"PULUMI_CONFIG_PASSPHRASE_FILE": "/secret"})
    assert "PULUMI_CONFIG_PASSPHRASE" not in variables


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("config:\n  earshot:cluster:\n    placement: docker\n", "docker"),
        ("config: {'earshot:cluster': {\"placement\": 'docker'}}", "docker"),
        ("    # placement: docker\n    placement: local # not docker\n", "local"),
        ("    # Where brokers run (placement: docker):\n    brokers: 3\n", "local"),
        ("", "local"),
    ],
)
def test_placement_of_a_stack(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "Pulumi.mine.yaml").write_text(text)
    assert environment.placement("mine", tmp_path) == expected
    assert environment.placement("mine-too", tmp_path) == expected, "it will be made from this one"
    assert environment.placement("other", tmp_path) == "local"


def test_placement_of_a_stack_that_extends_another(tmp_path: Path) -> None:
    for name, text in (
        ("base", "    placement: docker\n"),
        ("mine", "    # extends: other\n    extends: base\n"),
        ("lost", "    extends: missing\n"),
        ("round", "    extends: round\n"),
    ):
        (tmp_path / f"Pulumi.{name}.yaml").write_text(f"config:\n  earshot:cluster:\n{text}")
    assert environment.placement("mine", tmp_path) == "docker"
    assert environment.placement("lost", tmp_path) == "local"
    assert environment.placement("round", tmp_path) == "local"


@pytest.mark.parametrize(
    ("origin", "stack", "disabled"),
    [
        (Origin.INSTALLED, "docker", "false"),
        (Origin.DOWNLOADED, "docker-mine", "false"),
        (Origin.BUILT, "docker", "true"),
        (Origin.INSTALLED, "local", "true"),
    ],
)
def test_plugins_are_downloaded_for_placements_that_need_one(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, origin: Origin, stack: str, disabled: str
) -> None:
    use(monkeypatch, origin)
    variables = environment.variables(stack, {"PATH": "/usr/bin"})
    assert variables["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] == disabled


def test_shell_reads_back_what_was_meant(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Origin.BUILT)
    variables = environment.variables("local", {"PATH": "/usr/bin:/bin"})
    script = environment.exports("local", {"PATH": "/usr/bin:/bin"}) + "\nenv -0"
    result = subprocess.run(["/bin/sh", "-c", script], env={}, capture_output=True, text=True)
    exported = dict(line.split("=", 1) for line in result.stdout.split("\0") if line)
    assert {name: exported[name] for name in variables} == variables


def test_without_set_up_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "CLI_RECORD", tmp_path / "absent.json")
    with pytest.raises(EarshotError, match="make setup"):
        environment.variables("local")


def test_processes_of_pulumi_reach_each_other_past_a_proxy(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Origin.BUILT)
    variables = environment.variables(
        "local", {"PATH": "/usr/bin", "http_proxy": "http://127.0.0.1:9"}
    )
    code = """
from concurrent.futures import ThreadPoolExecutor
import grpc
server = grpc.server(ThreadPoolExecutor(1))
answer = grpc.unary_unary_rpc_method_handler(lambda message, context: b"answer")
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("a.B", {"C": answer}),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
    print(channel.unary_unary("/a.B/C")(b"", timeout=10))
server.stop(0)
"""
    proxy = {"http_proxy": "http://127.0.0.1:9"}
    process = subprocess.run(
        [sys.executable, "-c", code], env={**variables, **proxy}, capture_output=True, text=True
    )
    assert process.stdout == "b'answer'\n", process.stderr
