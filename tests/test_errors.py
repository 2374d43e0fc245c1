import errno
import os
import pickle
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.errors import (
    AddressError,
    EarshotError,
    SpecError,
    machine_error,
    remedy_of,
    remedy_of_owner,
    without_users,
)
from earshot.rules.evaluate import RULES

FULL = EarshotError("port 0", observed="is not usable", allowed="1 to 65535", remedy="choose one")


@given(
    st.lists(
        st.sampled_from([*"a1_.-:@/, é\n", "//", "a" * 101, "1" * 100, "b" * 1000]), max_size=9
    ).map("".join)
)
def test_users_and_passwords_are_removed_before_a_host(text: str) -> None:
    user = re.compile(
        r"(?:(?<=//)[\w.-]{0,101}|[A-Za-z_][\w.-]{0,100}):[^\s/@,:;]{1,1000}@", re.ASCII
    )
    assert without_users(text) == user.sub("***@", text)


def test_text_of_others_does_not_steer_the_terminal() -> None:
    error = EarshotError("a\x1b[2J", observed="b\x07\n\tc <{%x%}>")
    assert str(error) == "a\\u001b[2J: b\\u0007\n\tc \\u003c{%x%}>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://me:secret@host/x", "https://***@host/x"),
        ("https://4711:secret@host/x", "https://***@host/x"),
        ("https://:secret@host/x", "https://***@host/x"),
        ("me:secret@host, you:other@host", "***@host, ***@host"),
        ("1@host:9093,2@host:9093", "1@host:9093,2@host:9093"),
        ("apache/kafka:4.1.1@sha256:ab", "apache/kafka:4.1.1@sha256:ab"),
    ],
)
def test_a_user_has_a_name_or_is_part_of_a_url(text: str, expected: str) -> None:
    assert without_users(text) == expected


def test_a_value_with_a_password_in_it_is_shown_without_it() -> None:
    """Two lines of a file become one value if a dash or a comma is missing."""
    joined = "port '9092 ssl.key.password=hun;ter2'; KAFKA_SECRET_KEY = \"hunter 2\";"
    shown = "port '9092 ssl.key.password=***'; KAFKA_SECRET_KEY = ***;"
    assert str(EarshotError(joined, observed="x")) == f"{shown}: x"
    assert RULES[0].finding(joined, joined, joined, listener=joined).line.count(shown) == 4


def test_a_huge_word_is_shown_by_its_beginning() -> None:
    error = EarshotError(f"listener entry 'X://{'a' * 5_000_000}'", observed="b" * 1_001)
    assert str(error) == f"listener entry 'X://{'a' * 195}...: {'b' * 200}..."
    assert str(EarshotError("a" * 999)) == "a" * 999


def test_a_message_names_object_finding_allowance_and_remedy() -> None:
    assert str(FULL) == "port 0: is not usable\n  allowed: 1 to 65535\n  fix: choose one"
    assert FULL.line == "port 0: is not usable; allowed: 1 to 65535; fix: choose one"
    assert str(EarshotError("port 0")) == "port 0"
    assert FULL.exit_code == 2


def test_an_error_survives_a_process_boundary() -> None:
    for error in (FULL, AddressError("host 'a_b'", observed="x"), SpecError.of("file", ["a", "b"])):
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy)) == (type(error), str(error))


def test_several_problems_are_one_message() -> None:
    assert str(SpecError.of("file", ["one: x"])) == "file: one: x"
    assert str(SpecError.of("file", ["one: x", "two: y"])) == "file:\n  - one: x\n  - two: y"


@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        (OSError(errno.ENOSPC, "x"), "free space on that disk"),
        (OSError(errno.EDQUOT, "x"), "free space within this user's quota"),
        (OSError(errno.EROFS, "x"), "mount that file system for writing, as no user can"),
        (OSError(errno.ENFILE, "x"), "sysctl fs.file-max"),
        (OSError(errno.ENOMEM, "x"), "more memory"),
        (BlockingIOError(errno.EAGAIN, "x"), "`ulimit -u`"),
        (RuntimeError("can't start new thread"), "`ulimit -u`"),
        (OSError(errno.ENOENT, "x"), ""),
        (OSError("without a number"), ""),
        (RuntimeError("another"), ""),
        (ValueError("can't start new thread"), ""),
    ],
)
def test_limits_of_the_machine_are_known_by_their_error(fault: Exception, remedy: str) -> None:
    assert remedy in remedy_of(fault) and bool(remedy) == bool(remedy_of(fault))
    assert (machine_error(fault) is not None) == bool(remedy)


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EACCES, "name a file in a folder that this user can read and write"),
        (errno.ELOOP, "name a file that is no link to itself"),
        (errno.ENAMETOOLONG, "choose a shorter name"),
    ],
)
def test_a_file_that_no_user_could_name_is_no_fault_of_earshot(number: int, remedy: str) -> None:
    fault = OSError(number, "No", "/some/file")
    assert str(machine_error(fault)) == f"/some/file: No\n  fix: {remedy}"
    assert machine_error(OSError(number, "No")) is None


@pytest.mark.parametrize(
    ("folder", "user", "names_the_user"),
    [(".earshot", 1, True), (".earshot", 0, False), ("other", 1, False)],
)
def test_denied_access_to_the_project_of_another_user_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, user: int, names_the_user: bool
) -> None:
    (tmp_path / folder).mkdir()
    uid = tmp_path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: uid + user)
    reason = PermissionError(errno.EACCES, "No", str(tmp_path / folder / "stacks/a.json"))
    expected = f"run the command as the user of {tmp_path / folder} (uid {uid}), or in a"
    assert (expected in str(machine_error(reason))) is names_the_user
    assert bool(remedy_of_owner(reason)) is names_the_user


def test_a_limit_is_found_below_the_error_that_it_caused() -> None:
    above = ValueError("odd")
    above.__cause__ = OSError(errno.ENOSPC, "No space left on device", "/some/file")
    assert str(machine_error(above)) == (
        "/some/file: No space left on device\n"
        "  fix: free space on that disk, then run the same command again"
    )


@pytest.mark.parametrize(("limits", "hard_limit"), [
    ((24, 4096), ""),
    ((24, 30), (", for which its hard limit, 30, has to be raised first "
                "(/etc/security/limits.conf; in a container `--ulimit nofile=1024`)")),
    ((24, resource.RLIM_INFINITY), ""),
])  # fmt: skip
def test_the_limit_on_open_files_is_named(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], hard_limit: str
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    remedy = "raise this process's limit on open files from 24: `ulimit -n 1024`"
    assert remedy_of(OSError(errno.EMFILE, os.strerror(errno.EMFILE))) == remedy + hard_limit


def test_a_command_that_may_open_too_few_files_names_the_limit() -> None:
    """A real process, which reaches its limit at an unexpected place."""
    program = """
import resource, sys, threading
from earshot import cli
from earshot.cli import commands
from earshot.report import render
def opens_much(*_, **__):
    resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))
    held = [open("/dev/null") for _ in range(30)]
commands.app = opens_much
sys.exit(cli.run(["rules"]))
"""
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert process.returncode == 2, process.stderr
    assert process.stderr.startswith("error: /dev/null: Too many open files\n  fix: raise this")
    assert "from 24: `ulimit -n 1024`, for which its hard limit, 24," in process.stderr
