"""Permissions: what each grant lets whom do."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation, ResourcePatternType, ResourceType

from earshot.errors import EarshotError
from earshot.users import access
from earshot.users.access import bindings, grants


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
    found = bindings(("app", "group", "a-"))
    assert [item.principal for item in found] == ["User:app", "User:CN=app,OU=clients"]
    for item in found:
        assert (item.restype, item.name) == (ResourceType.GROUP, "a-")
        assert item.resource_pattern_type is ResourcePatternType.PREFIXED
        assert item.operation is AclOperation.ALL


def test_the_validator_may_do_no_more_than_a_validation_needs() -> None:
    operations = {item.operation for item in bindings(("validator", "topic", "__earshot-"))}
    assert operations == {
        AclOperation.ALTER,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.DESCRIBE,
        AclOperation.READ,
        AclOperation.WRITE,
    }


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (None, "no answer after 0.01 s"),
        (KafkaException(KafkaError(KafkaError._TIMED_OUT, "no broker")), "no broker"),
    ],
)
def test_why_the_cluster_cannot_be_changed_is_said(
    error: Exception | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "SECONDS", 0.01)
    future: Future[None] = Future()
    if error is not None:
        future.set_exception(error)
    with pytest.raises(EarshotError) as caught:
        access._wait({"one": future}, "permissions")
    assert str(caught.value) == (
        f"the cluster's permissions: cannot be read or changed ({reason})\n"
        "  fix: see the brokers' logs, then run the same command again"
    )
