"""Certificates and users as resources: what a state holds, and when they change."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from components.local import security
from components.local.access import Grant
from components.local.quorum import node_directory
from components.local.security import CertificatesProvider, UsersProvider
from earshot.certificates.store import Store
from earshot.listeners.properties import read_properties


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: earshot\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".earshot" / "stacks" / "s" / "kafka"


def wanted(root: Path, **changes: Any) -> dict[str, Any]:
    """Inputs of the certificates, as Pulumi hands them over: all numbers are floats."""
    return {
        "stack": "s",
        "root": str(root),
        "hosts": {"node-1": ["localhost"]},
        "users": ["validator", "app"],
        "mechanism": "SCRAM-SHA-512",
        "days": 90.0,
        "renew_days": 30.0,
        **changes,
    }


def made(root: Path) -> dict[str, Any]:
    outs = CertificatesProvider().create(wanted(root)).outs
    assert outs is not None
    return outs


def test_a_state_holds_what_may_be_seen(root: Path) -> None:
    outs = made(root)
    assert outs["certificates"].keys() == {"node-1", "validator", "app"}
    assert outs["passwords"].keys() == {"validator", "app"}
    store = Store(root / "security")
    state = json.dumps(outs)
    assert "PRIVATE" not in state and store.password("app") not in state
    file = root / "security" / "validator.properties"
    assert file.stat().st_mode & 0o777 == 0o600
    assert read_properties(file.read_text()).values["sasl.mechanism"] == "SCRAM-SHA-512"


def test_nothing_changes_by_itself(root: Path) -> None:
    outs = made(root)
    assert CertificatesProvider().diff("", outs, wanted(root)).changes is False
    assert CertificatesProvider().update("", outs, wanted(root)).outs == outs


@pytest.mark.parametrize(
    "changes",
    [
        {"hosts": {"node-1": ["b1.example.com"]}},
        {"users": ["validator"]},
        {"mechanism": "SCRAM-SHA-256"},
        {"renew_days": 89.99},
    ],
)
def test_a_change_of_what_is_wanted_is_a_change(root: Path, changes: dict[str, Any]) -> None:
    assert CertificatesProvider().diff("", made(root), wanted(root, **changes)).changes


@pytest.mark.parametrize("name", ["node-1.pem", "app.password", "validator.properties", "ca.pem"])
def test_a_file_that_is_lost_is_a_change(root: Path, name: str) -> None:
    outs = made(root)
    (root / "security" / name).unlink()
    assert CertificatesProvider().diff("", outs, wanted(root)).changes


class AccessDouble:
    """Keeps what it is asked for."""

    def __init__(self, bootstrap: str, settings: Mapping[str, Any]) -> None:
        self.asked: list[Any] = [(bootstrap, dict(settings))]
        asked.append(self)

    def allow(self, grants: Iterable[Grant]) -> None:
        self.asked.append(("allow", list(grants)))

    def forbid(self, grants: Iterable[Grant]) -> None:
        self.asked.append(("forbid", list(grants)))

    def set_passwords(self, passwords: Mapping[str, str], mechanism: str) -> None:
        self.asked.append(("set", sorted(passwords), mechanism))

    def remove_users(self, names: Iterable[str], mechanism: str) -> None:
        self.asked.append(("remove", list(names), mechanism))


asked: list[AccessDouble] = []


@pytest.fixture
def logins(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The brokers that were waited for."""
    found: list[Any] = []
    asked.clear()
    monkeypatch.setattr(security, "Access", AccessDouble)
    monkeypatch.setattr(security, "await_logins", lambda brokers, client: found.append(brokers))
    return found


def users(root: Path, outs: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    directory = node_directory(root, 1)
    directory.mkdir(parents=True, exist_ok=True)
    return {
        "root": str(root),
        "cluster_id": "id",
        "users": {"app": ["a-"]},
        "mechanism": "SCRAM-SHA-512",
        "passwords": dict(outs["passwords"]),
        "brokers": {"1": "localhost:1"},
        "logins": {"1": "localhost:2"},
        **changes,
    }


ALLOWED = [("validator", "topic", "__earshot-")]
ALLOWED += [("app", kind, "a-") for kind in ("topic", "group", "transactional_id")]


def test_users_are_made_after_their_permissions(root: Path, logins: list[Any]) -> None:
    UsersProvider().create(users(root, made(root)))
    assert asked[0].asked == [
        ("localhost:1", {}),
        ("forbid", []),
        ("allow", ALLOWED),
        ("set", ["app", "validator"], "SCRAM-SHA-512"),
        ("remove", [], "SCRAM-SHA-512"),
    ]
    assert logins == [{1: "localhost:2"}]


def test_who_leaves_loses_everything_and_others_keep_their_passwords(
    root: Path, logins: list[Any]
) -> None:
    outs = made(root)
    old = users(root, outs)
    new = users(root, outs, users={}, passwords={"validator": outs["passwords"]["validator"]})
    assert UsersProvider().diff("", old, new).changes
    assert not UsersProvider().diff("", old, users(root, outs)).changes
    UsersProvider().update("", old, new)
    assert asked[0].asked[1:] == [
        ("forbid", ALLOWED[1:]),
        ("allow", ALLOWED[:1]),
        ("set", [], "SCRAM-SHA-512"),
        ("remove", ["app"], "SCRAM-SHA-512"),
    ]


def test_another_mechanism_gives_everybody_a_password_of_it(root: Path, logins: list[Any]) -> None:
    outs = made(root)
    old = users(root, outs)
    UsersProvider().update("", old, {**old, "mechanism": "SCRAM-SHA-256"})
    assert asked[0].asked[-2:] == [
        ("set", ["app", "validator"], "SCRAM-SHA-256"),
        ("remove", ["validator", "app"], "SCRAM-SHA-512"),
    ]


def test_a_cluster_without_passwords_has_permissions_alone(root: Path, logins: list[Any]) -> None:
    UsersProvider().create(users(root, made(root), logins={}))
    assert [item[0] for item in asked[0].asked] == ["localhost:1", "forbid", "allow"]
    assert logins == []
