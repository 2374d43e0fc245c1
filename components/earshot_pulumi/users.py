"""Users and ACLs as a resource: created once the brokers serve, updated with the stack file."""

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pulumi

from earshot.certificates.client import client_properties
from earshot.certificates.store import Store
from earshot.config.cluster import ClusterSpec
from earshot.errors import EarshotError
from earshot.files import cache
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.properties import read_properties
from earshot.listeners.security import VALIDATOR
from earshot.listeners.terms import Mechanism, Protocol, read_mechanisms
from earshot.users.access import Login, grants
from earshot.users.order import UsersOrder
from earshot.validation.client import translate
from earshot_pulumi.certificates import Certificates, store_of
from earshot_pulumi.driver import Say
from earshot_pulumi.file_access import writing
from earshot_pulumi.properties import write
from earshot_pulumi.provider.kind import Inputs, Kind, Operation, Properties
from earshot_pulumi.provider.resource import InternalResource

MADE = "users.json"
"""File in the stack's folder of keys: the prefixes of each user that its cluster may have."""
LOST = "users that brokers have lost get their passwords again"
NOT_RESTARTED = (
    "all brokers accept the users; no broker was restarted since, so this update does not prove "
    "that they accept them after a restart"
)
UserPrefixes = Mapping[str, Sequence[str]]
"""The topic prefixes of users, by user name."""


class UsersKind(Kind):
    """Creates users and ACLs; each placement implements how the brokers are reached."""

    ID = "users"
    DECISIVE = ("cluster_id", "users", "mechanism", "passwords", "logins")
    interrupted = (
        "interrupted while users and permissions were created: some may be missing; the next "
        "`pulumi up` creates them all"
    )

    def access(self, props: Properties) -> Mapping[str, str]:
        """Librdkafka's settings to log in as a node."""
        raise NotImplementedError

    def carry_out(self, order: UsersOrder, props: Properties, say: Say) -> None:
        """Carries out ``order`` at a place that reaches the brokers. Raises EarshotError."""
        raise NotImplementedError

    def refused(self, props: Properties) -> list[str]:
        """The brokers, each with a listener, that refuse users of the cluster as unknown.

        Unreachable brokers are left out. Raises EarshotError if all of them are unreachable.
        """
        raise NotImplementedError

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        return super().differs(operation, olds, news) or bool(self._unknown(news))

    def _unknown(self, props: Properties) -> str:
        """The result of `refused` as one text; empty if no broker is reachable."""
        with contextlib.suppress(EarshotError):
            return "; ".join(self.refused(props))
        return ""

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        if olds and not super().differs(operation, olds, news):
            operation.log(f"{LOST}: {self._unknown(news)}")
        store = store_of(news)
        may_exist = merged(remembered(store), olds.get("users", {}))
        # recorded first, as an interrupted run may have created some, and a state may be lost
        remember(store, merged(may_exist, news["users"]))
        self.carry_out(_order(may_exist, olds, news, self.access(news)), news, operation.log)
        remember(store, news["users"])
        if olds and news["logins"]:
            operation.log(NOT_RESTARTED)
        return news


class Users(InternalResource):
    """The users of a running cluster, and their ACLs."""

    def __init__(
        self,
        name: str,
        spec: ClusterSpec,
        root: Path,
        cluster_id: pulumi.Output[str],
        certificates: Certificates,
        access_inputs: Inputs,
        opts: pulumi.ResourceOptions,
    ) -> None:
        """``access_inputs`` has `brokers` (addresses by id), `logins` (see `logins`) and further
        inputs of the placement's kind. The kind connects to these addresses."""
        assert spec.security is not None
        props = {
            "root": str(root),
            "cluster_id": cluster_id,
            "users": {user.name: list(user.prefixes) for user in spec.security.users},
            "mechanism": ",".join(spec.mechanisms(spec.security)),
            "passwords": certificates.passwords,
            **access_inputs,
        }
        super().__init__(name, props, opts)


def remembered(store: Store) -> UserPrefixes:
    """The recorded users, which the cluster may have; empty without a record."""
    try:
        document = json.loads((store.folder / MADE).read_text())
        return {
            str(name): [str(prefix) for prefix in prefixes] for name, prefixes in document.items()
        }
    except (FileNotFoundError, ValueError, AttributeError, TypeError):
        return {}


def remember(store: Store, users: UserPrefixes) -> None:
    """Records ``users`` for later runs. Raises EarshotError."""
    with writing("users", store.folder):
        cache.write(store.folder / MADE, json.dumps(users, indent=2) + "\n", 0o600)


def merged(users: UserPrefixes, more_users: UserPrefixes) -> UserPrefixes:
    """The union of both maps, each user with all of its prefixes."""
    return {
        name: list(dict.fromkeys((*users.get(name, ()), *more_users.get(name, ()))))
        for name in (*users, *more_users)
    }


def logins(plan: ClusterPlan, reach: Callable[[Node, Listener], str]) -> list[Properties]:
    """One `Login` per broker, listener and mechanism with passwords, as inputs of a resource.

    ``reach`` returns the `host:port` to connect to for a listener of a broker.
    """
    security = plan.security
    if security is None:
        return []
    return [
        write(
            Login(
                broker=node.id,
                listener=listener.name,
                address=reach(node, listener),
                mechanism=mechanism,
            )
        )
        for node in plan.brokers
        for listener in node.listeners
        for mechanism in security.mechanisms(listener)
    ]


def client_of(store: Store, mechanism: Mechanism) -> Properties:
    """Librdkafka's settings to log in as the validator, with a certificate and a password.

    They contain the PEM texts rather than paths, as orders may run on other machines. Raises
    EarshotError.
    """
    text = client_properties(
        store, VALIDATOR, mechanism, Protocol.SASL_SSL, certified=True, whole=True
    )
    return translate(read_properties(text).values)


def kept_passwords(store: Store) -> dict[str, str]:
    """Passwords of the recorded users, by name; users without a stored password are left out."""
    passwords = {}
    for user in (VALIDATOR, *remembered(store)):
        with contextlib.suppress(EarshotError):
            passwords[user] = store.password(user)
    return passwords


def changes(
    store: Store,
    target: UserPrefixes,
    may_exist: UserPrefixes,
    mechanisms: Sequence[Mechanism],
    former_mechanisms: Sequence[Mechanism],
    logs_in: bool,
) -> Properties:
    """The parts of a `UsersOrder` that lead to ``target`` from any part of ``may_exist``.

    ``former_mechanisms`` are those of existing passwords. ``logs_in`` is true if a listener
    requires passwords. All passwords are set again, because the cluster may be new.
    """
    former_grants, target_grants = grants(may_exist), grants(target)
    permissions = {
        "forbidden": tuple(grant for grant in former_grants if grant not in target_grants),
        "allowed": tuple(target_grants),
        "mechanisms": tuple(mechanisms),
    }
    if not logs_in:
        return permissions
    passwords = {user: store.password(user) for user in (VALIDATOR, *target)}
    removed = tuple(
        (user, mechanism)
        for mechanism in dict.fromkeys((*former_mechanisms, *mechanisms))
        for user in dict.fromkeys((VALIDATOR, *may_exist))
        if mechanism not in mechanisms or user not in passwords
    )
    return {**permissions, "passwords": passwords, "gone": removed}


def _order(
    may_exist: UserPrefixes, olds: Properties, news: Properties, access: Mapping[str, str]
) -> UsersOrder:
    """The order that leads from ``olds`` to ``news``; the cluster may have ``may_exist`` users."""
    store, mechanisms = store_of(news), read_mechanisms(news["mechanism"])
    former_mechanisms = read_mechanisms(olds.get("mechanism") or news["mechanism"])
    node_logins = tuple(map(Login.model_validate, news["logins"]))
    return UsersOrder(
        bootstrap=",".join(news["brokers"].values()),
        access=dict(access),
        **changes(
            store, news["users"], may_exist, mechanisms, former_mechanisms, bool(node_logins)
        ),
        logins=node_logins,
        client=client_of(store, mechanisms[0]) if node_logins else {},
    )
