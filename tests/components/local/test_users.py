"""Users and permissions of a cluster of this machine: what is asked of it, and when."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.certificates import CertificatesKind
from earshot_pulumi.local import users as local
from earshot_pulumi.local.cluster_memory import node_directory
from earshot_pulumi.local.users import LocalUsersKind

from earshot.certificates.store import Store
from earshot.errors import EarshotError
from earshot.users import order
from earshot.users.access import Grant, Login
from earshot.validation.client import Failure
from tests.components.called import Called
from tests.components.secured_inputs import certificate_inputs, cluster_folder


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return cluster_folder(tmp_path, monkeypatch)


@pytest.fixture
def props(root: Path) -> dict[str, Any]:
    """The inputs of the users of a cluster that has certificates."""
    issued = Called(CertificatesKind()).create(certificate_inputs(root))
    node_directory(root, 1).mkdir(parents=True)
    return {
        "root": str(root),
        "cluster_id": "id",
        "users": {"app": ["a-"]},
        "mechanism": "SCRAM-SHA-512",
        "passwords": dict(issued.outs["passwords"]),
        "brokers": {"1": "localhost:1"},
        "logins": [LOGIN],
    }


KIND = Called(LocalUsersKind())


def without_app(props: dict[str, Any]) -> dict[str, Any]:
    """``props`` without the user `app`."""
    return {**props, "users": {}, "passwords": {"validator": props["passwords"]["validator"]}}


class AccessDouble:
    """Records its calls."""

    def __init__(self, bootstrap: str, settings: Mapping[str, Any]) -> None:
        self.calls: list[Any] = [(bootstrap, dict(settings))]
        accesses.append(self)

    def allow(self, grants: Iterable[Grant]) -> None:
        self.calls.append(("allow", list(grants)))

    def forbid(self, grants: Iterable[Grant]) -> None:
        self.calls.append(("forbid", list(grants)))

    def set_passwords(self, passwords: Mapping[str, str], mechanism: str) -> None:
        self.calls.append(("set", sorted(passwords), mechanism))

    def disable_logins(self, names: Iterable[str], mechanism: str) -> None:
        self.calls.append(("disable", list(names), mechanism))


accesses: list[AccessDouble] = []
LOGIN = {"broker": 1, "listener": "CLIENTS", "address": "localhost:2", "mechanism": "SCRAM-SHA-512"}


@pytest.fixture
def logins(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The logins that were waited for."""
    awaited: list[Any] = []
    accesses.clear()
    monkeypatch.setattr(order, "UserAccess", AccessDouble)
    monkeypatch.setattr(order, "await_logins", lambda logins, client: awaited.extend(logins))
    return awaited


ALLOWED = [("validator", "topic", "__earshot-")]
ALLOWED += [("app", kind, "a-") for kind in ("topic", "group", "transactional_id")]


def test_users_are_made_after_their_permissions(
    props: dict[str, Any], logins: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    KIND.create(props)
    assert accesses[0].calls == [
        ("localhost:1", {}),
        ("forbid", []),
        ("allow", ALLOWED),
        ("set", ["app", "validator"], "SCRAM-SHA-512"),
    ]
    assert logins == [Login.model_validate(LOGIN)]
    assert capsys.readouterr().out == ""


def test_a_removed_user_loses_everything_and_others_keep_theirs(
    props: dict[str, Any], logins: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    news = without_app(props)
    assert KIND.differs(props, news)
    assert not KIND.differs(props, props)
    KIND.update(props, news)
    assert "no broker was restarted since" in capsys.readouterr().out
    assert accesses[0].calls[1:] == [
        ("forbid", ALLOWED[1:]),
        ("allow", ALLOWED[:1]),
        ("set", ["validator"], "SCRAM-SHA-512"),
        ("disable", ["app"], "SCRAM-SHA-512"),
    ]


def test_a_user_that_is_removed_while_the_stack_is_down_loses_everything(
    props: dict[str, Any], logins: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a stack that is down nor a run that failed has told a state who is known."""
    fail = ["broker 1 does not answer"]

    def wait(brokers: Any, client: Any) -> None:
        if fail:
            raise EarshotError(fail.pop())

    monkeypatch.setattr(order, "await_logins", wait)
    with pytest.raises(EarshotError):
        KIND.create(props)
    for _ in range(2):
        KIND.create(without_app(props))
    assert accesses[1].calls[1] == ("forbid", ALLOWED[1:])
    assert accesses[1].calls[-1] == ("disable", ["app"], "SCRAM-SHA-512")
    assert accesses[2].calls[1] == ("forbid", [])
    assert accesses[2].calls[-1] == ("set", ["validator"], "SCRAM-SHA-512")
    assert (Path(props["root"]) / "security" / "users.json").stat().st_mode & 0o777 == 0o600


def test_a_first_listener_with_passwords_gives_them_to_all_users(
    props: dict[str, Any], logins: list[Any]
) -> None:
    olds = {**props, "logins": []}
    KIND.create(olds)
    assert KIND.differs(olds, props)
    KIND.update(olds, props)
    assert accesses[1].calls[-1] == ("set", ["app", "validator"], "SCRAM-SHA-512")


def test_another_cluster_gets_all_passwords(props: dict[str, Any], logins: list[Any]) -> None:
    KIND.create(props)
    KIND.update(props, {**props, "cluster_id": "new"})
    assert accesses[1].calls[-1] == ("set", ["app", "validator"], "SCRAM-SHA-512")


def test_another_mechanism_gives_all_users_a_password_of_it(
    props: dict[str, Any], logins: list[Any]
) -> None:
    KIND.update(props, {**props, "mechanism": "SCRAM-SHA-256"})
    assert accesses[0].calls[-2:] == [
        ("set", ["app", "validator"], "SCRAM-SHA-256"),
        ("disable", ["validator", "app"], "SCRAM-SHA-512"),
    ]


def test_a_listener_with_a_mechanism_of_its_own_gives_all_users_a_password_of_both(
    props: dict[str, Any], logins: list[Any]
) -> None:
    both = {**props, "mechanism": "SCRAM-SHA-512,SCRAM-SHA-256"}
    KIND.update(props, both)
    assert accesses[0].calls[-2:] == [
        ("set", ["app", "validator"], "SCRAM-SHA-512"),
        ("set", ["app", "validator"], "SCRAM-SHA-256"),
    ]
    KIND.update(both, without_app(props))
    assert accesses[1].calls[-2:] == [
        ("disable", ["app"], "SCRAM-SHA-512"),
        ("disable", ["validator", "app"], "SCRAM-SHA-256"),
    ]


def test_a_cluster_without_passwords_has_permissions_alone(
    props: dict[str, Any], logins: list[Any]
) -> None:
    KIND.create({**props, "logins": []})
    assert [call[0] for call in accesses[0].calls] == ["localhost:1", "forbid", "allow"]
    assert logins == []


def test_users_that_a_broker_does_not_know_are_made_again(
    props: dict[str, Any],
    logins: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    answers: dict[str, Any] = {"login": None, "lacking": []}
    monkeypatch.setattr(local, "accepts_connections", lambda _: True)
    monkeypatch.setattr(local, "refusal", lambda *_: answers["login"])
    monkeypatch.setattr(local, "UserAccess", AccessDouble)
    monkeypatch.setattr(
        AccessDouble, "users_without_password", lambda *_: answers["lacking"], raising=False
    )
    assert not KIND.differs(props, props)
    answers["login"] = Failure("timeout", "no answer")
    assert not KIND.differs(props, props), "an unknown answer is no loss"
    answers["login"] = Failure("authentication", "invalid credentials")
    assert KIND.differs(props, props)
    KIND.update(props, props)
    assert accesses[-1].calls[-1] == ("set", ["app", "validator"], "SCRAM-SHA-512")
    lost = "broker 1: CLIENTS at localhost:2, SCRAM-SHA-512"
    assert f"get their passwords again: {lost}" in capsys.readouterr().out
    answers |= {"login": None, "lacking": ["app"]}
    assert KIND.differs(props, props), "a user that was deleted by hand is missed"


def test_brokers_that_do_not_listen_are_not_asked(props: dict[str, Any], logins: list[Any]) -> None:
    props["logins"] = [{**LOGIN, "address": "localhost:1"}]
    assert not KIND.differs(props, props)


def test_all_users_get_their_passwords_again_for_each_mechanism_of_a_broker(
    props: dict[str, Any], logins: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    KIND.create(props)
    store = Store(Path(props["root"]) / "security")
    monkeypatch.setattr(local, "UserAccess", AccessDouble)
    settings = {
        "listener.name.a.sasl.enabled.mechanisms": "SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.b.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    }
    local.reset_passwords(store, "localhost:1", settings)
    assert accesses[-1].calls[1:] == [
        ("set", ["app", "validator"], "SCRAM-SHA-256"),
        ("set", ["app", "validator"], "SCRAM-SHA-512"),
    ]
    (store.folder / "app.password").unlink()
    local.reset_passwords(store, "localhost:1", settings)
    assert accesses[-1].calls[-1] == ("set", ["validator"], "SCRAM-SHA-512"), (
        "a removed user gets none"
    )
