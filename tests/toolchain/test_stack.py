"""What `make` does around Pulumi's commands: templates, salts."""

from __future__ import annotations

from pathlib import Path

import pytest

from earshot.project import Project
from toolchain import stack as stack_module
from toolchain.stack import Stack, _added_only_a_salt, main

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


def stack(name: str) -> Stack:
    return Stack(name)


def test_only_a_salt_was_added() -> None:
    assert _added_only_a_salt(TEMPLATE, SALTED)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (TEMPLATE, TEMPLATE),
        (TEMPLATE, SALTED.replace("local", "docker")),
        (SALTED, SALTED),
        (TEMPLATE, SALTED.replace("placement: local", "secret:\n      secure: v1:x")),
        ("", SALTED),
        (TEMPLATE, ""),
    ],
)
def test_anything_else_is_left_as_pulumi_wrote_it(before: str, after: str) -> None:
    assert not _added_only_a_salt(before, after)


def test_a_stack_is_made_from_the_template_that_its_name_begins_with(checkout: Path) -> None:
    (checkout / "stacks" / "Pulumi.local.yaml").write_text(TEMPLATE + "encryptionsalt: v1:x=\n")
    stack("local-of-mine")._from_template()
    made = Project(checkout).stack_file("local-of-mine")
    assert made.read_text() == TEMPLATE


def test_a_stack_that_has_a_file_keeps_it(checkout: Path) -> None:
    own = Project(checkout).stack_file("local-mine")
    own.write_text("mine")
    stack("local-mine")._from_template()
    assert own.read_text() == "mine"


def test_no_template_no_file(checkout: Path) -> None:
    stack("other")._from_template()
    assert not Project(checkout).stack_file("other").exists()


def test_a_bad_stack_name_is_one_error(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", "--stack", "a b"]) == 2
    assert capsys.readouterr().err.startswith("error: stack 'a b'")
