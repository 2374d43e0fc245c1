"""Passwords from configuration secrets: their users, and errors that show no password."""

import json
from typing import Any

import pytest

from earshot.config.cluster import ClusterSpec
from earshot.config.passwords import check_encrypted, check_names, check_passwords, read_passwords
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


def refusal(text: str, *, secret: bool) -> str:
    return str(raised(SpecError, check_passwords, text, spec(), SOURCE, secret=secret))


def test_each_user_has_the_configured_password() -> None:
    passwords = {"app": 'a"b\\c,d=e', "validator": "12345678"}
    text = json.dumps(passwords)
    check_passwords(text, spec(), SOURCE, secret=True)
    assert read_passwords(text) == read_passwords(passwords) == passwords
    assert read_passwords(None) == read_passwords("plain") == {}


@pytest.mark.parametrize(
    "value",
    ["", "7 chars", "with space", "short77", "ä" * 9, "tab\there!", 12345678, None, "x" * 129,
     "passw0rd\n"],
)  # fmt: skip
def test_an_invalid_password_is_not_shown(value: object) -> None:
    text = refusal(json.dumps({"app": value}), secret=True)
    assert text == f"{SOURCE}: 'app': {NO_PASSWORD}"


def test_all_mistakes_are_one_error() -> None:
    assert refusal('{"ap": "long enough", "app": "k"}', secret=False) == (
        f"{SOURCE}:\n  - {NO_USER}\n  - USER: {PLAIN}\n  - 'ap': {NO_PASSWORD}\n"
        f"  - 'app': {NO_PASSWORD}"
    )
    assert refusal("long-enough", secret=True) == (
        f"{SOURCE}: found no map; allowed: a password by user, each set by "
        "`pulumi config set --secret --path earshot:passwords.USER`"
    )


@pytest.mark.parametrize("value", [{"app": {"secure": "v1:abc"}}, {"secure": "v1:abc"}])
def test_a_stack_file_is_checked_without_decrypting_anything(value: object) -> None:
    check_encrypted(value, spec(), SOURCE)


def test_a_password_set_without_a_path_is_refused() -> None:
    names = ["earshot:cluster", "earshot:passwords", "earshot:passwords.app"]
    check_names(names[:2], "s.yaml")
    assert str(raised(SpecError, check_names, names, "s.yaml")) == (
        "s.yaml: found the key 'earshot:passwords.app', which nothing reads; allowed: the map "
        "earshot:passwords, set by `pulumi config set --secret --path earshot:passwords.USER`, "
        "after `pulumi config rm 'earshot:passwords.app'`"
    )


@pytest.mark.parametrize(("value", "cluster", "problem"), [
    ({"ap": {"secure": "v1:abc"}}, spec(), NO_USER),
    ({"app": "hunter2hunter2"}, spec(), f"'app': {PLAIN}"),
    ({"app": {"secure": "v1:abc"}, "validator": 12345678}, spec(), f"'validator': {PLAIN}"),
    ("hunter2hunter2", spec(), f"USER: {PLAIN}"),
    ({"app": {"secure": "x"}}, spec(password_numbers={"app": 2}),
     ("app: found with security.password_numbers.app; allowed: one of them, as a "
      "configured password has no number")),
    ({"app": {"secure": "x"}}, read_local({"placement": "local"}),
     "found for a cluster without `security`; allowed: where that has users"),
])  # fmt: skip
def test_a_stack_file_has_secrets_of_users_only(
    value: object, cluster: ClusterSpec, problem: str
) -> None:
    error = raised(SpecError, check_encrypted, value, cluster, SOURCE)
    assert (str(error), error.exit_code) == (f"{SOURCE}: {problem}", 2)
