"""The project on disk: found from any folder below it, read with one clear message per fault."""

import os
from pathlib import Path

import pytest

from earshot.errors import EarshotError
from earshot.files.stack_files import stack_name
from earshot.project import Project
from tests.raised import raised

GOOD = "config:\n  earshot:cluster:\n    placement: local\n    brokers: 1\n"
BOMB = b"a: &n0 [x, x]\n" + b"".join(
    b"a%d: &n%d [*n%d, *n%d]\n" % (i, i, i - 1, i - 1) for i in range(1, 60)
)
"""Sixty short lines that stand for 2**60 values."""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "Pulumi.yaml").write_text(
        "name: earshot\nruntime: python\nstackConfigDir: stacks\n"
    )
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "Pulumi.local.yaml").write_text(GOOD)
    return Project(tmp_path)


def test_is_found_from_a_folder_below(project: Project) -> None:
    below = project.root / "a" / "b"
    below.mkdir(parents=True)
    assert Project.find(below) == project
    assert Project.find(project.root) == project


@pytest.mark.parametrize(
    ("mode", "is_refused"),
    [
        (0o1777, True),  # as /tmp
        (0o777, False),  # as the folder of a CI job
        (0o755, False),
    ],
)
def test_a_project_of_another_user_in_a_shared_folder_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch, mode: int, is_refused: bool
) -> None:
    file, below = project.root / "Pulumi.yaml", project.root / "mine"
    below.mkdir()
    project.root.chmod(mode)
    assert Project.find(below) == project, "a user's own"
    if os.geteuid() == 0:
        os.chown(file, 65534, 65534)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    for folder in (below, project.root):
        if not is_refused:
            assert Project.find(folder) == project
            continue
        error = raised(EarshotError, Project.find, folder)
        assert error.object == str(file)
        assert error.observed.startswith(f"belongs to another user (uid {file.stat().st_uid})")


def test_a_folder_without_a_project_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        EarshotError, match=r"neither it nor a folder above.*Pulumi\.yaml"
    ) as caught:
        Project.find(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_paths(project: Project, tmp_path: Path) -> None:
    assert project.stack_file("dev") == project.root / "stacks" / "Pulumi.dev.yaml"
    assert project.state_dir("dev") == project.root / ".earshot" / "stacks" / "dev"
    assert project.contract_file("dev").parent == project.state_dir("dev")
    assert project.report_file("dev").parent == project.state_dir("dev")
    (tmp_path / "Pulumi.yaml").write_text("name: earshot\n")
    assert Project(tmp_path).stack_file("dev") == tmp_path / "Pulumi.dev.yaml", "the default"


@pytest.mark.parametrize(
    ("text", "observed"),
    [
        ("", "the file holds no settings"),
        ("- a\n", "the file holds no settings"),
        ("stackConfigDir: 3\n", "found 3"),
    ],
)
def test_a_broken_project_file_is_an_error(tmp_path: Path, text: str, observed: str) -> None:
    (tmp_path / "Pulumi.yaml").write_text(text)
    assert str(raised(EarshotError, Project(tmp_path).stack_file, "dev")) == (
        f"Pulumi.yaml: stackConfigDir: {observed}\n  allowed: a folder, as text"
    )


def test_reads_the_cluster(project: Project) -> None:
    assert project.read_cluster("local").brokers == 1
    assert project.read_cluster("organization/earshot/local").brokers == 1


@pytest.mark.parametrize(
    "name",
    ["", "..", "../x", "/etc/x", "a/../x", "a/b/c/x", ".hidden", "a b", "organization/", "x" * 101],
)
def test_a_stack_name_never_leaves_its_folder(name: str) -> None:
    with pytest.raises(EarshotError, match="is no stack's name"):
        stack_name(name)


def test_a_missing_stack_lists_those_that_exist(project: Project) -> None:
    (project.root / "stacks" / "Pulumi.dev.yaml").write_text(GOOD)
    assert str(raised(EarshotError, project.read_cluster, "prod")) == (
        "stack prod: stacks/Pulumi.prod.yaml does not exist\n"
        "  allowed: stacks with a file: dev, local\n"
        "  fix: copy one of them to stacks/Pulumi.prod.yaml, or name another --stack"
    )


def test_a_missing_stack_of_another_folder_and_without_others(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text(f"stackConfigDir: {tmp_path / 'there'}\n")
    error = raised(EarshotError, Project(folder).read_cluster, "prod")
    assert error.observed == f"{tmp_path}/there/Pulumi.prod.yaml does not exist"
    assert error.allowed == "stacks with a file: none yet"


@pytest.mark.parametrize(
    ("content", "observed"),
    [
        (b"", "is empty"),
        (b"# only a comment\n", "is empty"),
        (b"\x00\x01\x02\xff\xfe", r"is no UTF-8 text \(byte 0xff at 3\)"),
        (b"abc\x00def", r"is no YAML \(unacceptable character #x0000"),
        (b"- a\n- b\n", r"holds \['a', 'b'\] instead of a map"),
        (b"just text\n", "holds 'just text' instead of a map"),
        (b"a" * 38, f"holds '{'a' * 38}' instead of a map"),
        (b"a" * 39, rf"holds '{'a' * 36}\.\.\. instead of a map"),
        (b"secretsprovider: passphrase\n", "has no `config:`"),
        (b"config:\n", "`config:` holds nothing instead of a map"),
        (b"config: [1]\n", r"`config:` holds \[1\] instead of a map"),
        (b"config:\n  aws:region: eu-west-1\n", "`config:` holds aws:region, and no"),
        (b"config: {a: 1\n", "is no YAML; line 2, column 1"),
        (b"config:\n\tearshot:cluster: 1\n", "is no YAML; line 2, column 1"),
        (b"config:\n  a:b: 1\n  a:b: 2\n", "line 3, column 3: the key 'a:b' occurs twice"),
        (b"config: !!python/object:os.x {}\n", "is no YAML; line 1"),
        (b"when: 2024-99-99\n", r"is no YAML \(month must be"),
        (b"[" * 20_000, "line 1, column 65: is nested more than 64 levels deep"),
        (b"config: {a: " + b"9" * 5000 + b"}\n", "a value of 5,000 characters is no text"),
        (BOMB, r"its aliases \(\*name\) repeat more than 100,000 values"),
    ],
)
def test_each_broken_file_gets_one_clear_message(
    project: Project, content: bytes, observed: str
) -> None:
    project.stack_file("bad").write_bytes(content)
    with pytest.raises(EarshotError, match=observed) as caught:
        project.read_cluster("bad")
    assert str(caught.value).startswith("stacks/Pulumi.bad.yaml: ")


def test_a_missing_cluster_points_to_an_example(project: Project) -> None:
    project.stack_file("bad").write_text("config: {}\n")
    assert str(raised(EarshotError, project.read_cluster, "bad")) == (
        "stacks/Pulumi.bad.yaml: `config:` holds nothing, and no `earshot:cluster`\n"
        "  allowed: a map with `config:`, and in it `earshot:cluster:`\n"
        "  fix: see stacks/Pulumi.local.yaml for an example"
    )
    project.stack_file("local").unlink()
    assert raised(EarshotError, project.read_cluster, "bad").remedy == ""


@pytest.mark.parametrize(
    ("name", "shown"),
    [(f"-{'x' * 119}", f"'-{'x' * 119}'"), (f"-{'x' * 120}", f"'-{'x' * 99}'...")],
)
def test_a_name_of_a_hundred_letters_is_valid_and_the_beginning_of_a_longer_one_shown(
    name: str, shown: str
) -> None:
    assert stack_name("x" * 100) == "x" * 100
    assert stack_name("organization/project/x") == stack_name("project/x") == "x"
    assert raised(EarshotError, stack_name, name).object == f"stack {shown}"


def test_problems_of_the_cluster_name_file_and_key(project: Project) -> None:
    project.stack_file("bad").write_text(GOOD + "    brokerz: 3\n")
    with pytest.raises(EarshotError, match=r"stacks/Pulumi\.bad\.yaml, earshot:cluster: brokerz"):
        project.read_cluster("bad")
    project.stack_file("folder").mkdir()
    with pytest.raises(EarshotError, match="cannot be read"):
        project.read_cluster("folder")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/p/.earshot/stacks/local/kafka", "/p/.earshot/stacks/local/kafka"),
        ("/p/elsewhere/kafka", "/p/elsewhere/kafka"),
        ("/before/.earshot/stacks/local/kafka", "/p/.earshot/stacks/local/kafka"),
        ("/x/.earshot/y/.earshot/stacks/local/kafka", "/p/.earshot/stacks/local/kafka"),
        ("/elsewhere/kafka", "/elsewhere/kafka"),
    ],
)
def test_a_path_of_the_checkout_this_one_came_from_is_found_here(path: str, expected: str) -> None:
    assert Project(Path("/p")).here(Path(path)) == Path(expected)


def test_passwords_are_checked_with_the_cluster_and_without_decrypting_them(
    project: Project,
) -> None:
    project.stack_file("local").write_text(GOOD + "  earshot:passwords: {app: {secure: v1:x}}\n")
    assert str(raised(EarshotError, project.read_cluster, "local")) == (
        "stacks/Pulumi.local.yaml, earshot:passwords: found for a cluster without `security`; "
        "allowed: where that has users"
    )
