"""Creates users and ACLs of a secured cluster through Kafka's admin protocol.

The client connects to the inter-broker listener as a node, once the brokers serve. So no command
line and no setting contains a password, and users can be added later.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from earshot.errors import EarshotError
from earshot.listeners.model import Frozen
from earshot.listeners.security import CLIENTS, VALIDATOR, principal
from earshot.listeners.terms import Mechanism
from earshot.validation.client import ClientSettings, Errors, Failure, failure_of
from earshot.validation.topic import PREFIX

SECONDS = 30.0
"""Time limit for each request."""
LOGIN_SECONDS = 30.0
"""Time limit until all brokers have all users."""
ITERATIONS = 4096
"""Iterations of SCRAM: Kafka's default. More only help short passwords, and these are random."""
_MECHANISMS = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
_SILENT = logging.getLogger("earshot.access")  # librdkafka logs each failed login, which is retried
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False

Grant = tuple[str, str, str]
"""A user, the kind of a resource (`topic`, `group`, `transactional_id`), and the prefix of its
name."""
_KINDS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
}
_OF_VALIDATOR = tuple(
    AclOperation[operation]
    for operation in ("CREATE", "DELETE", "DESCRIBE", "ALTER", "READ", "WRITE")
)


def grants(users: Mapping[str, Sequence[str]]) -> list[Grant]:
    """The grants of all users. ``users`` has prefixes by name; the validator gets its topics."""
    user_prefixes = [(user, prefix) for user, prefixes in users.items() for prefix in prefixes]
    of_users = [(user, kind, prefix) for user, prefix in user_prefixes for kind in _KINDS]
    return [(VALIDATOR, "topic", PREFIX), *of_users]


def operations(user: str) -> tuple[AclOperation, ...]:
    """The operations that ``user`` may do on granted resources."""
    return _OF_VALIDATOR if user == VALIDATOR else (AclOperation.ALL,)


def bindings(grant: Grant) -> list[AclBinding]:
    """The ACL bindings of a grant, for the principals by password and by certificate."""
    return [AclBinding(*permission) for permission in _permissions(grant)]


def _permissions(grant: Grant) -> Iterator[tuple[Any, ...]]:
    """The arguments of an ACL binding, or of a filter for it."""
    user, kind, prefix = grant
    resource = (_KINDS[kind], prefix, ResourcePatternType.PREFIXED)
    for principal_name in (user, principal(user, CLIENTS)):
        for operation in operations(user):
            yield *resource, f"User:{principal_name}", "*", operation, AclPermissionType.ALLOW


class UserAccess:
    """Changes a secured cluster's users and ACLs through one of its brokers."""

    def __init__(self, bootstrap: str, settings: Mapping[str, str] | ClientSettings) -> None:
        """``settings`` are librdkafka's, for a client that may change both."""
        admin_settings = {**settings, "bootstrap.servers": bootstrap}
        self._admin = AdminClient(admin_settings, logger=_SILENT)

    def allow(self, new_grants: Iterable[Grant]) -> None:
        """Adds the ACLs of ``new_grants``; existing ACLs are kept. Raises EarshotError."""
        acl_bindings = [binding for grant in new_grants for binding in bindings(grant)]
        if acl_bindings:
            _wait(self._admin.create_acls(acl_bindings, request_timeout=SECONDS), "permissions")

    def forbid(self, unwanted: Iterable[Grant]) -> None:
        """Removes the ACLs of ``unwanted``. Raises EarshotError."""
        filters = [
            AclBindingFilter(*permission)
            for grant in unwanted
            for permission in _permissions(grant)
        ]
        if filters:
            _wait(self._admin.delete_acls(filters, request_timeout=SECONDS), "permissions")

    def disable_logins(self, names: Iterable[str], mechanism: str) -> None:
        """Gives users a random password that is not stored. Raises EarshotError.

        Their credentials are overwritten and never deleted: until its first metadata snapshot, a
        broker that restarts replays a deletion and loses all users of that mechanism
        (KAFKA-20774).
        """
        self.set_passwords({name: secrets.token_urlsafe(24) for name in names}, mechanism)

    def set_passwords(self, passwords: Mapping[str, str], mechanism: str) -> None:
        """Creates users or changes their passwords. Raises EarshotError."""
        info = ScramCredentialInfo(_MECHANISMS[mechanism], ITERATIONS)
        changes = [
            UserScramCredentialUpsertion(user, info, password.encode())
            for user, password in passwords.items()
        ]
        if changes:
            alter: Any = self._admin.alter_user_scram_credentials
            _wait(alter(changes, request_timeout=SECONDS), "users")

    def users_without_password(self, names: Iterable[str], mechanism: str) -> list[str]:
        """The users in ``names`` without a credential of that mechanism. Raises EarshotError."""
        answer: Any = self._admin.describe_user_scram_credentials(request_timeout=SECONDS)
        kind = _MECHANISMS[mechanism]
        known_users = {
            user
            for user, described in _result(answer, "users").items()
            if kind in [info.mechanism for info in described.scram_credential_infos]
        }
        return [name for name in names if name not in known_users]


class Login(Frozen):
    """A listener of a broker and the mechanism with which users log in on it."""

    broker: int
    listener: str
    address: str
    """`host:port` of a broker, reachable from the machine that creates the users."""
    mechanism: Mechanism

    def __str__(self) -> str:
        return f"broker {self.broker}: {self.listener} at {self.address}, {self.mechanism}"


def await_logins(logins: Iterable[Login], client: ClientSettings) -> None:
    """Returns when each of ``logins`` accepts the user of ``client``.

    Brokers apply changes in order, so each then has all earlier changes. Raises EarshotError after
    `LOGIN_SECONDS`.
    """
    end = time.monotonic() + LOGIN_SECONDS
    for login in logins:
        while problem := refusal(login, client):
            if time.monotonic() > end:
                user = client.get("sasl.username", "the user")
                raise EarshotError(
                    str(login),
                    observed=f"refuses the login of {user} {LOGIN_SECONDS:g} s after the cluster "
                    f"got its password ({problem.text})",
                    remedy="see the log of that broker, then run the same command again",
                )
            time.sleep(0.1)


def refusal(login: Login, client: ClientSettings) -> Failure | None:
    """Why ``login`` does not accept the user of ``client``; None if it does."""
    settings = {
        **client,
        "bootstrap.servers": login.address,
        "sasl.mechanism": str(login.mechanism),
    }
    return login_failure(settings)


def login_failure(settings: ClientSettings) -> Failure | None:
    """Why a client with these settings of librdkafka gets no metadata; None if it does."""
    errors = Errors()
    client_settings: ClientSettings = {**settings, "error_cb": errors, "log_level": 0}
    admin = AdminClient(client_settings, logger=_SILENT)
    try:
        admin.list_topics(timeout=2)
    except KafkaException as error:
        admin.poll(0)
        return errors.explain(error)
    return None


def _wait(futures: Mapping[Any, Future[Any]], kind: str) -> None:
    for future in futures.values():
        _result(future, kind)


def _result(future: Future[Any], kind: str) -> Any:
    try:
        return future.result(SECONDS)
    except TimeoutError:
        reason = f"no answer after {SECONDS:g} s"
    except KafkaException as error:
        reason = failure_of(error).text
    observed = f"cannot be read or changed ({reason})"
    remedy = "see the brokers' logs, then run the same command again"
    raise EarshotError(f"the cluster's {kind}", observed=observed, remedy=remedy)
