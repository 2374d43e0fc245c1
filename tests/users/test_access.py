"""ACLs: what each grant permits."""

from collections.abc import Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclOperation,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from earshot.errors import EarshotError
from earshot.listeners.terms import Mechanism
from earshot.users import access
from earshot.users.access import Login, UserAccess, bindings, grants
from earshot.validation.client import Failure
from tests.raised import raised


def test_the_validator_has_its_own_topics_and_users_have_their_prefixes() -> None:
    assert grants({"app": ["a-", "b-"], "idle": []}) == [
        ("validator", "topic", "__earshot-"),
        ("app", "topic", "a-"),
        ("app", "group", "a-"),
        ("app", "transactional_id", "a-"),
        ("app", "topic", "b-"),
        ("app", "group", "b-"),
        ("app", "transactional_id", "b-"),
    ]


def test_a_user_may_do_everything_with_its_own_by_password_and_by_certificate() -> None:
    acls = bindings(("app", "group", "a-"))
    assert [acl.principal for acl in acls] == ["User:app", "User:CN=app,OU=clients"]
    for acl in acls:
        assert (acl.restype, acl.name) == (ResourceType.GROUP, "a-")
        assert acl.resource_pattern_type is ResourcePatternType.PREFIXED
        assert acl.operation is AclOperation.ALL


def test_the_validator_may_do_no_more_than_a_validation_needs() -> None:
    operations = {binding.operation for binding in bindings(("validator", "topic", "x"))}
    needed = ("ALTER", "CREATE", "DELETE", "DESCRIBE", "READ", "WRITE")
    assert operations == {AclOperation[name] for name in needed}


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (None, "no answer after 0.01 s"),
        (KafkaException(KafkaError(KafkaError._TIMED_OUT, "no broker")), "no broker"),
    ],
)
def test_a_cluster_that_cannot_be_changed_is_one_error(
    error: Exception | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "SECONDS", 0.01)
    future: Future[None] = Future()
    if error is not None:
        future.set_exception(error)
    assert str(raised(EarshotError, access._wait, {"one": future}, "permissions")) == (
        f"the cluster's permissions: cannot be read or changed ({reason})\n"
        "  fix: see the brokers' logs, then run the same command again"
    )


LOGIN = Login(
    broker=1, listener="CLIENTS", address="localhost:9092", mechanism=Mechanism.SCRAM_SHA_256
)


class AdminDouble:
    """Keeps changes of credentials; knows `app` by SCRAM-SHA-256 alone."""

    def __init__(self, settings: Mapping[str, Any], **_: Any) -> None:
        self.changes: list[Any] = []
        admins.append(self)

    def alter_user_scram_credentials(self, changes: list[Any], **_: Any) -> dict[str, Any]:
        self.changes += changes
        return {"all": done(None)}

    def describe_user_scram_credentials(self, **_: Any) -> Any:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        return done({"app": SimpleNamespace(scram_credential_infos=[info])})


admins: list[AdminDouble] = []


def done(result: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(result)
    return future


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> UserAccess:
    admins.clear()
    monkeypatch.setattr(access, "AdminClient", AdminDouble)
    return UserAccess("localhost:1", {})


def test_who_leaves_is_overwritten_and_never_deleted(admin: UserAccess) -> None:
    admin.disable_logins(["old", "older"], "SCRAM-SHA-256")
    admin.disable_logins([], "SCRAM-SHA-256")
    changes = admins[0].changes
    assert [(type(change), change.user) for change in changes] == [
        (UserScramCredentialUpsertion, "old"),
        (UserScramCredentialUpsertion, "older"),
    ]
    passwords = {change.password for change in changes}
    assert len(passwords) == 2 and min(map(len, passwords)) >= 32
    assert changes[0].scram_credential_info.mechanism is ScramMechanism.SCRAM_SHA_256


def test_who_lacks_a_credential_of_a_mechanism(admin: UserAccess) -> None:
    assert admin.users_without_password(["app", "other"], "SCRAM-SHA-256") == ["other"]
    assert admin.users_without_password(["app"], "SCRAM-SHA-512") == ["app"]


def test_a_login_has_the_mechanism_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    logins: list[Mapping[str, Any]] = []
    monkeypatch.setattr(access, "login_failure", logins.append)
    client = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "app"}
    access.await_logins([LOGIN], client)
    login_settings = {"sasl.mechanism": "SCRAM-SHA-256", "bootstrap.servers": "localhost:9092"}
    assert logins == [client | login_settings]


def test_a_refused_login_names_broker_listener_and_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "LOGIN_SECONDS", 0)
    failure = Failure("authentication", "invalid credentials")
    monkeypatch.setattr(access, "login_failure", lambda _: failure)
    assert str(raised(EarshotError, access.await_logins, [LOGIN], {"sasl.username": "app"})) == (
        "broker 1: CLIENTS at localhost:9092, SCRAM-SHA-256: refuses the login of app 0 s after "
        "the cluster got its password (invalid credentials)\n"
        "  fix: see the log of that broker, then run the same command again"
    )


def test_the_reason_of_a_missing_answer_is_a_failure_of_its_own() -> None:
    failure = access.login_failure({"bootstrap.servers": "localhost:1"})
    assert failure is not None and failure.error == "refused"
