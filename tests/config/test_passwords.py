"""Passwords from configuration secrets: whose they are, and what is told without showing one."""

import json
from typing import Any

import pytest

from earshot.config.cluster import ClusterSpec
from earshot.config.passwords import check_encrypted, check_passwords, read_passwords
from earshot.errors import SpecError
from tests.config.read import read_local
from tests.raised import raised

SOURCE = "s.yaml, earshot:passwords"
FIX = "set by `pulumi config set --secret --path earshot:passwords.USER`"
NO_PASSWORD = (
    f"is not a valid password; allowed: 8 to 128 printable ASCII characters without spaces, {FIX}"
)
PLAIN = (
    f"is in plain text; allowed: a secret, {FIX}, which asks for it; choose another one, as "
    "readers of the file know this one"
)
NO_USER = "found 'ap', which is not a user; allowed: validator, app"


def spec(**security: Any) -> ClusterSpec:
    return read_local({"placement": "local", "security": {"users": [{"name": "app"}], **security}})


def test_each_user_has_the_one_that_is_given() -> None:
    given = {"app": 'a"b\\c,d=e', "validator": "12345678"}
    text = json.dumps(given)
    check_passwords(text, spec(), SOURCE, secret=True)
    assert read_passwords(text) == read_passwords(given) == given
    assert read_passwords(None) == read_passwords("plain") == {}


@pytest.mark.parametrize(
    "value",
    [
        "",
        "7 chars",
        "with space",
        "short77",
        "ä" * 9,
        "tab\there!",
        12345678,
        None,
        "x" * 129,
        "passw0rd\n",
    ],
)
def test_what_is_no_password_is_not_shown(value: object) -> None:
    with pytest.raises(SpecError) as caught:
        check_passwords(json.dumps({"app": value}), spec(), SOURCE, secret=True)
    assert str(caught.value) == f"{SOURCE}: 'app': {NO_PASSWORD}"
    assert caught.value.exit_code == 2


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(SpecError) as caught:
        check_passwords('{"ap": "long enough", "app": "k"}', spec(), SOURCE, secret=False)
    assert str(caught.value) == (
        f"{SOURCE}:\n  - {NO_USER}\n  - USER: {PLAIN}\n  - 'ap': {NO_PASSWORD}\n"
        f"  - 'app': {NO_PASSWORD}"
    )


def test_a_secret_that_is_no_map_has_no_users() -> None:
    assert str(raised(SpecError, check_passwords, "long-enough", spec(), SOURCE, secret=True)) == (
        f"{SOURCE}: found no map; allowed: a password by user, each set by "
        "`pulumi config set --secret --path earshot:passwords.USER`"
    )


@pytest.mark.parametrize("written", [{"app": {"secure": "v1:abc"}}, {"secure": "v1:abc"}])
def test_a_stack_file_is_checked_without_decrypting_anything(written: object) -> None:
    check_encrypted(written, spec(), SOURCE)


@pytest.mark.parametrize(
    ("written", "reported"),
    [
        ({"ap": {"secure": "v1:abc"}}, NO_USER),
        ({"app": "hunter2hunter2"}, f"'app': {PLAIN}"),
        ({"app": {"secure": "v1:abc"}, "validator": 12345678}, f"'validator': {PLAIN}"),
        ("hunter2hunter2", f"USER: {PLAIN}"),
    ],
)
def test_a_stack_file_has_secrets_of_users_alone(written: object, reported: str) -> None:
    error = raised(SpecError, check_encrypted, written, spec(), SOURCE)
    assert str(error) == f"{SOURCE}: {reported}"


def test_a_password_that_is_given_has_no_number() -> None:
    with pytest.raises(SpecError) as caught:
        check_encrypted({"app": {"secure": "x"}}, spec(password_numbers={"app": 2}), SOURCE)
    assert str(caught.value) == (
        f"{SOURCE}: app: found with security.password_numbers.app; allowed: one of them, as a "
        "configured password has no number"
    )


def test_a_cluster_without_users_has_none() -> None:
    with pytest.raises(SpecError) as caught:
        check_encrypted({"app": {"secure": "x"}}, read_local({"placement": "local"}), SOURCE)
    assert str(caught.value) == (
        f"{SOURCE}: found for a cluster without `security`; allowed: where that has users"
    )
