"""`make` around Pulumi's commands: templates, salts, steps, signals."""

import errno
import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from earshot_pulumi.local import process

from earshot.errors import EarshotError
from earshot.placement import plan_stack
from earshot.project import Project
from earshot.transition import memory
from tests.raised import raised
from tests.skips import not_meant
from toolchain import stack as stack_module
from toolchain.paths import STACKS
from toolchain.stack import Stack, _without_salt, main

TEMPLATE = "# explained\nconfig:\n  earshot:cluster:\n    placement: local\n"
SALTED = "config:\n  earshot:cluster:\n    placement: local\nencryptionsalt: v1:abc=\n"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one template, and no tools."""
    (tmp_path / "Pulumi.yaml").write_text(
        "name: earshot\nruntime: python\nstackConfigDir: stacks\n"
    )
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "Pulumi.local.yaml").write_text(TEMPLATE)
    monkeypatch.setattr(stack_module, "ROOT", tmp_path)
    backend = {"PULUMI_BACKEND_URL": (tmp_path / "state").as_uri()}
    monkeypatch.setattr(stack_module, "variables", lambda _stack: backend)
    return tmp_path


BARE = TEMPLATE.replace("# explained\n", "")
COMMENTED = SALTED.replace("config:", "# a note\nconfig:")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (TEMPLATE, "# explained\n" + SALTED.replace("  ", "      "), TEMPLATE),
        (TEMPLATE, COMMENTED, COMMENTED.replace("encryptionsalt: v1:abc=\n", "")),
        (TEMPLATE, SALTED.replace("local", "docker"), BARE.replace("local", "docker")),
        ("", SALTED, BARE),
        (TEMPLATE, TEMPLATE, None),
        (SALTED, SALTED, None),
        (TEMPLATE, SALTED.replace("placement: local", "secret:\n      secure: v1:x"), None),
        (TEMPLATE, "", None),
    ],
)
def test_only_a_new_salt_without_a_secret_is_removed(
    before: str, after: str, expected: str | None
) -> None:
    """Pulumi reads the file, adds a salt and formats it; a user may save the file meanwhile."""
    assert _without_salt(before, after) == expected


def test_a_stack_without_a_file_gets_the_template_that_its_name_begins_with(
    checkout: Path,
) -> None:
    (checkout / "stacks" / "Pulumi.local.yaml").write_text(TEMPLATE + "encryptionsalt: v1:x=\n")
    file = Project(checkout).stack_file("local-of-mine")
    for expected, edited in ((TEMPLATE, "mine"), ("mine", "mine")):
        Stack("local-of-mine")._from_template()
        assert file.read_text() == expected
        file.write_text(edited)
    Stack("other")._from_template()
    assert not Project(checkout).stack_file("other").exists()


@pytest.mark.parametrize("name", ["a b", "-x", "../x", "", "-h", "--", "a'b", "$(x)", "a;b", "*"])
def test_a_bad_stack_name_is_one_error(
    checkout: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main(["up", f"--stack={name}"]) == 2
    lines = capsys.readouterr().err.splitlines()
    texts = ("", name) if name == "--" else (name,)  # argparse before Python 3.13 keeps no more
    assert lines[0] in [f"error: stack {text!r}: is no stack's name" for text in texts]
    assert len(lines) == 2


@pytest.mark.parametrize("target", ["up", "down", "clean", "env"])
@pytest.mark.parametrize("name", ["a b", "-x", "../x", "", "a'b", "a;b", "*", '"', "`x`"])
def test_make_passes_any_name_unchanged(tmp_path: Path, target: str, name: str) -> None:
    """No name is a part of a recipe, which a shell would interpret."""
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nfor it; do printf "%s\\n" "$it"; done\n')
    python.chmod(0o755)
    command = ["make", "-s", target, f"STACK={name}", f"PYTHON={python}", f"VENV_PYTHON={python}"]
    # without variables of an outer make, such as that of `make test`
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))
    }
    process = subprocess.run(
        command, cwd=STACKS.parent, env=environment, capture_output=True, text=True
    )
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout.splitlines()[-1] == f"--stack={name}"


def updates(monkeypatch: pytest.MonkeyPatch, steps: list[list[str]], codes: list[int]) -> list[str]:
    """The calls of `up`; ``steps`` has the steps that remain after each update."""
    calls: list[str] = []
    monkeypatch.setattr(stack_module, "say", calls.append)
    monkeypatch.setattr(Stack, "_check_needs", lambda _: None)
    monkeypatch.setattr(Stack, "_select", lambda _: None)

    def earshot(_: Stack, command: str) -> int:
        calls.append(command)
        return 0

    def update(_: Stack) -> int:
        calls.append("update")
        return codes.pop(0)

    monkeypatch.setattr(Stack, "_earshot", earshot)
    monkeypatch.setattr(Stack, "_update", update)
    monkeypatch.setattr(Stack, "_steps_left", lambda _: tuple(steps.pop(0)))
    return calls


CHECKING = ["Checking stacks/Pulumi.local.yaml ...", "plan", "Updating stack local ..."]


STEP_2, STEP_3 = (
    "Updating stack local, step 2 of 3: b ...",
    "Updating stack local, step 3 of 3: c ...",
)


NOTHING_CHANGED = "Nothing changed; validating what runs ..."


@pytest.mark.parametrize(("codes", "calls"), [
    ([0, 0, 0], ["update", STEP_2, "update", STEP_3, "update", NOTHING_CHANGED, "validate"]),
    ([0, 1], ["update", STEP_2, "update"]),
], ids=["until the plan runs", "until a step fails"])  # fmt: skip
def test_up_makes_step_after_step(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, codes: list[int], calls: list[str]
) -> None:
    steps = [["step 2 of 3: b", "step 3 of 3: c"], ["step 3 of 3: c"], []]
    status = codes[-1]
    recorded = updates(monkeypatch, steps, codes)
    assert Stack("local").up() == status
    assert recorded == [*CHECKING, *calls]


def test_up_ends_where_a_step_changes_nothing(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    updates(monkeypatch, [["step 2 of 2: b"], ["step 2 of 2: b"]], [0, 0])
    assert str(raised(EarshotError, Stack("local").up)) == (
        "stack local, step 2 of 2: b: was not made, although the update succeeded\n"
        "  fix: run the same command again"
    )


def test_the_remaining_steps_are_those_from_the_stored_plan(checkout: Path) -> None:
    stack = Stack("local")
    assert stack._steps_left() == ()
    state = stack.project.state_dir("local")
    spec = stack.project.read_cluster("local")
    runs = plan_stack(spec, "local", state).plan
    memory.complete(state, runs, 0)
    assert stack._steps_left() == ()
    Project(checkout).stack_file("local").write_text(
        TEMPLATE + "    listeners:\n"
        "      - {name: REPL, port: 19192, scopes: [internal]}\n"
        "      - {name: EXTERNAL, port: 9092, scopes: [host]}\n"
    )
    assert [line.partition(":")[0] for line in stack._steps_left()] == [
        "step 1 of 3",
        "step 2 of 3",
        "step 3 of 3",
    ]
    assert Stack("other")._steps_left() == (), "it has no file"


@pytest.mark.parametrize(("code", "stopped"), [(0, ["node-1"]), (255, [])])
def test_down_stops_leftover_brokers_only_after_pulumi_destroyed_the_stack(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, code: int, stopped: list[str]
) -> None:
    """A refused `destroy` may say that another command is at work, with these brokers."""
    (checkout / ".earshot/stacks/other/kafka/node-1").mkdir(parents=True)
    folders: list[str] = []
    monkeypatch.setattr(Stack, "_exists", lambda _: True)
    monkeypatch.setattr(Stack, "_pulumi", lambda *_, **__: code)
    monkeypatch.setattr(process, "stop", lambda folder, grace: folders.append(folder.name))
    assert main(["down", "--stack", "other"]) == code
    assert folders == stopped


def salted(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Pulumi that adds a salt to a stack's file, in place, or makes one."""

    def run(command: list[str], *_: object) -> int:
        file = Project(checkout).stack_file(command[-1])
        file.write_text((file.read_text() if file.exists() else "") + "encryptionsalt: v1:abc=\n")
        return 0

    monkeypatch.setattr(stack_module, "_run", run)


def test_a_salt_is_removed_and_the_file_keeps_its_mode_and_link(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    salted(checkout, monkeypatch)
    target, link = checkout / "target.yaml", Project(checkout).stack_file("mine")
    target.write_text(TEMPLATE)
    target.chmod(0o600)
    link.symlink_to(target)
    assert Stack("mine")._pulumi("up") == 0
    assert (link.is_symlink(), link.read_text()) == (True, TEMPLATE)
    assert target.stat().st_mode & 0o777 == 0o600
    assert Stack("gone")._pulumi("destroy") == 0
    assert not Project(checkout).stack_file("gone").exists(), "a stack without a file gets none"


def test_a_comment_that_is_written_meanwhile_stays(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Project(checkout).stack_file("local")
    text = "# explained\n" + SALTED + "# a thought\n"
    monkeypatch.setattr(stack_module, "_run", lambda *_: file.write_text(text) * 0)
    assert Stack("local")._pulumi("up") == 0
    assert file.read_text() == TEMPLATE + "# a thought\n"


def test_stacks_of_any_name_may_be_beside_it(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = '[{"name": "_scratch"}, {"name": "organization/earshot/local"}]'
    (checkout / "pulumi").write_text(f"#!/bin/sh\necho '{names}'\n")
    (checkout / "pulumi").chmod(0o755)
    monkeypatch.setenv("PATH", str(checkout), prepend=":")
    assert Stack("local")._exists()
    assert not Stack("other")._exists()


def test_no_committed_stack_file_has_a_salt() -> None:
    """With one of another passphrase than the user's, Pulumi makes no stack."""
    command = ["git", "grep", "--cached", "--files-with-matches", "^encryptionsalt:", "--", "."]
    process = subprocess.run(command, cwd=STACKS, capture_output=True, text=True)
    if process.returncode > 1:
        not_meant("this checkout is none of git's")
    assert process.stdout == ""


@pytest.mark.parametrize("status", [0, 255, -9])
def test_make_up_ends_plugins_at_once_where_their_cli_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    ended: list[object] = []
    monkeypatch.setattr(stack_module, "variables", lambda _stack: {})
    monkeypatch.setattr(stack_module, "recover", lambda *_: None)
    monkeypatch.setattr(stack_module, "_run", lambda *_: status)
    monkeypatch.setattr(stack_module, "end_orphans", lambda *_: ended.append(1))
    stack = Stack("nobodys")
    assert stack._pulumi("up") == status
    assert len(ended) == (1 if status < 0 else 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_child_and_is_an_interruption(
    number: signal.Signals, tmp_path: Path
) -> None:
    child = "import pathlib, sys, time\npathlib.Path(sys.argv[1]).touch()\ntime.sleep(60)"
    started = tmp_path / "started"

    def terminate() -> None:
        while not started.exists():
            time.sleep(0.02)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=terminate)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        stack_module._run([sys.executable, "-c", child, started], dict(os.environ), quiet=True)
    thread.join()


CLOSED = """
import os, sys
from toolchain import stack
child = '''
import os, signal, sys, time
def end(number, frame):
    with open(sys.argv[1], "w") as file:
        file.write(signal.Signals(number).name)
    sys.exit(1)
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, end)
print("begun", flush=True)
time.sleep(60)
'''
try:
    stack._run([sys.executable, "-c", child, sys.argv[1]], dict(os.environ))
except KeyboardInterrupt:
    os._exit(130)
"""


def test_a_terminal_that_is_closed_reaches_pulumi_as_an_interrupt(tmp_path: Path) -> None:
    """A shell sends the hangup to the whole group, and it would end Pulumi in mid-update."""
    file = tmp_path / "signal"
    command = [sys.executable, "-c", CLOSED, str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None and process.stdout.readline() == b"begun\n"
        os.killpg(process.pid, signal.SIGHUP)
        assert process.wait(30) == 130
    assert file.read_text() == "SIGINT"


@pytest.mark.parametrize(
    ("number", "text"),
    [(errno.ENOSPC, "free space on that disk"), (errno.EROFS, "mount that file")],
)
def test_a_state_for_which_there_is_no_room_is_named_before_pulumi_tries(
    number: int, text: str, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack_module, "STATE", checkout / "state")
    monkeypatch.setattr(Stack, "_pulumi", lambda *_, **__: pytest.fail("Pulumi was run"))

    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda dir: Full())
    error = raised(EarshotError, Stack("local")._select)
    assert str(error).startswith(f"Pulumi's state in {checkout}/state: cannot be written (")
    assert text in str(error)
