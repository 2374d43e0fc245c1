"""Users and permissions of a cluster of this machine: what is asked of it, and when."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.certificates import CertificatesKind
from earshot_pulumi.local import users as local
from earshot_pulumi.local.quorum import node_directory
from earshot_pulumi.local.users import LocalUsersKind

from earshot.certificates.store import Store
from earshot.errors import EarshotError
from earshot.users import order
from earshot.users.access import Grant, Login
from earshot.validation.client import Failure
from tests.components.called import Called


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: earshot\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".earshot" / "stacks" / "s" / "kafka"


def made(root: Path) -> dict[str, Any]:
    """The outputs of the certificates that users have."""
    wanted = {
        "stack": "s",
        "root": str(root),
        "hosts": {"node-1": ["localhost"]},
        "users": ["validator", "app"],
        "mechanism": "SCRAM-SHA-512",
        "days": 90.0,
        "renew_days": 30.0,
    }
    outs = Called(CertificatesKind()).create(wanted).outs
    assert outs is not None
    return outs


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

    def disable_logins(self, names: Iterable[str], mechanism: str) -> None:
        self.asked.append(("disable", list(names), mechanism))


asked: list[AccessDouble] = []
LOGIN = {"broker": 1, "listener": "CLIENTS", "address": "localhost:2", "mechanism": "SCRAM-SHA-512"}


@pytest.fixture
def logins(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The brokers that were waited for."""
    found: list[Any] = []
    asked.clear()
    monkeypatch.setattr(order, "UserAccess", AccessDouble)
    monkeypatch.setattr(order, "await_logins", lambda logins, client: found.extend(logins))
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
        "logins": [LOGIN],
        **changes,
    }


ALLOWED = [("validator", "topic", "__earshot-")]
ALLOWED += [("app", kind, "a-") for kind in ("topic", "group", "transactional_id")]


def test_users_are_made_after_their_permissions(
    root: Path, logins: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    Called(LocalUsersKind()).create(users(root, made(root)))
    assert asked[0].asked == [
        ("localhost:1", {}),
        ("forbid", []),
        ("allow", ALLOWED),
        ("set", ["app", "validator"], "SCRAM-SHA-512"),
    ]
    assert logins == [Login.model_validate(LOGIN)]
    assert capsys.readouterr().out == ""


def test_who_leaves_loses_everything_and_others_keep_theirs(
    root: Path, logins: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    outs = made(root)
    old = users(root, outs)
    new = users(root, outs, users={}, passwords={"validator": outs["passwords"]["validator"]})
    assert Called(LocalUsersKind()).differs(old, new)
    assert not Called(LocalUsersKind()).differs(old, users(root, outs))
    Called(LocalUsersKind()).update(old, new)
    assert "no broker was restarted since" in capsys.readouterr().out
    assert asked[0].asked[1:] == [
        ("forbid", ALLOWED[1:]),
        ("allow", ALLOWED[:1]),
        ("set", ["validator"], "SCRAM-SHA-512"),
        ("disable", ["app"], "SCRAM-SHA-512"),
    ]


def test_who_leaves_while_the_stack_is_down_loses_everything(
    root: Path, logins: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a stack that is down nor a run that failed has told a state who is known."""
    outs = made(root)
    fail = ["broker 1 does not answer"]

    def wait(brokers: Any, client: Any) -> None:
        if fail:
            raise EarshotError(fail.pop())

    monkeypatch.setattr(order, "await_logins", wait)
    with pytest.raises(EarshotError):
        Called(LocalUsersKind()).create(users(root, outs))
    new = users(root, outs, users={}, passwords={"validator": outs["passwords"]["validator"]})
    for _ in range(2):
        Called(LocalUsersKind()).create(new)
    assert asked[1].asked[1] == ("forbid", ALLOWED[1:])
    assert asked[1].asked[-1] == ("disable", ["app"], "SCRAM-SHA-512")
    assert asked[2].asked[1] == ("forbid", [])
    assert asked[2].asked[-1] == ("set", ["validator"], "SCRAM-SHA-512")
    assert (root / "security" / "users.json").stat().st_mode & 0o777 == 0o600


def test_a_first_listener_with_passwords_gives_them_to_all_users(
    root: Path, logins: list[Any]
) -> None:
    outs = made(root)
    Called(LocalUsersKind()).create(users(root, outs, logins=[]))
    old, new = users(root, outs, logins=[]), users(root, outs)
    assert Called(LocalUsersKind()).differs(old, new)
    Called(LocalUsersKind()).update(old, new)
    assert asked[1].asked[-1] == ("set", ["app", "validator"], "SCRAM-SHA-512")


def test_another_cluster_gets_all_passwords(root: Path, logins: list[Any]) -> None:
    old = users(root, made(root))
    Called(LocalUsersKind()).create(old)
    Called(LocalUsersKind()).update(old, {**old, "cluster_id": "new"})
    assert asked[1].asked[-1] == ("set", ["app", "validator"], "SCRAM-SHA-512")


def test_another_mechanism_gives_all_users_a_password_of_it(root: Path, logins: list[Any]) -> None:
    outs = made(root)
    old = users(root, outs)
    Called(LocalUsersKind()).update(old, {**old, "mechanism": "SCRAM-SHA-256"})
    assert asked[0].asked[-2:] == [
        ("set", ["app", "validator"], "SCRAM-SHA-256"),
        ("disable", ["validator", "app"], "SCRAM-SHA-512"),
    ]


def test_a_listener_with_a_mechanism_of_its_own_gives_all_users_a_password_of_both(
    root: Path, logins: list[Any]
) -> None:
    old = users(root, made(root))
    both = {**old, "mechanism": "SCRAM-SHA-512,SCRAM-SHA-256"}
    Called(LocalUsersKind()).update(old, both)
    assert asked[0].asked[-2:] == [
        ("set", ["app", "validator"], "SCRAM-SHA-512"),
        ("set", ["app", "validator"], "SCRAM-SHA-256"),
    ]
    Called(LocalUsersKind()).update(both, {**old, "users": {}, "passwords": {"validator": "x"}})
    assert asked[1].asked[-2:] == [
        ("disable", ["app"], "SCRAM-SHA-512"),
        ("disable", ["validator", "app"], "SCRAM-SHA-256"),
    ]


def test_a_cluster_without_passwords_has_permissions_alone(root: Path, logins: list[Any]) -> None:
    Called(LocalUsersKind()).create(users(root, made(root), logins=[]))
    assert [item[0] for item in asked[0].asked] == ["localhost:1", "forbid", "allow"]
    assert logins == []


def test_users_that_a_broker_does_not_know_are_made_again(
    root: Path,
    logins: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    props = users(root, made(root))
    answers: dict[str, Any] = {"login": None, "lacking": []}
    monkeypatch.setattr(local, "accepts_connections", lambda _: True)
    monkeypatch.setattr(local, "refusal", lambda *_: answers["login"])
    monkeypatch.setattr(local, "UserAccess", AccessDouble)
    monkeypatch.setattr(
        AccessDouble, "users_without_password", lambda *_: answers["lacking"], raising=False
    )
    provider = Called(LocalUsersKind())
    assert not provider.differs(props, props)
    answers["login"] = Failure("timeout", "no answer")
    assert not provider.differs(props, props), "what is not known is no loss"
    answers["login"] = Failure("authentication", "invalid credentials")
    assert provider.differs(props, props)
    provider.update(props, props)
    assert asked[-1].asked[-1] == ("set", ["app", "validator"], "SCRAM-SHA-512")
    lost = "broker 1: CLIENTS at localhost:2, SCRAM-SHA-512"
    assert f"get their passwords again: {lost}" in capsys.readouterr().out
    answers |= {"login": None, "lacking": ["app"]}
    assert provider.differs(props, props), "who was deleted by hand is missed"


def test_brokers_that_do_not_listen_are_not_asked(root: Path, logins: list[Any]) -> None:
    props = users(root, made(root), logins=[{**LOGIN, "address": "localhost:1"}])
    assert not Called(LocalUsersKind()).differs(props, props)


def test_all_users_get_their_passwords_again_for_each_mechanism_of_a_broker(
    root: Path, logins: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    Called(LocalUsersKind()).create(users(root, made(root)))
    store = Store(root / "security")
    monkeypatch.setattr(local, "UserAccess", AccessDouble)
    settings = {
        "listener.name.a.sasl.enabled.mechanisms": "SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.b.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    }
    local.reset_passwords(store, "localhost:1", settings)
    assert asked[-1].asked[1:] == [
        ("set", ["app", "validator"], "SCRAM-SHA-256"),
        ("set", ["app", "validator"], "SCRAM-SHA-512"),
    ]
    (store.folder / "app.password").unlink()
    local.reset_passwords(store, "localhost:1", settings)
    assert asked[-1].asked[-1] == ("set", ["validator"], "SCRAM-SHA-512"), "who leaves gets none"
