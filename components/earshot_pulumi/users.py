"""Users and permissions as a resource: made as soon as the brokers serve, changed with the file."""

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pulumi

from earshot import cache
from earshot.certificates.client import client_properties
from earshot.certificates.store import Store
from earshot.config.cluster import ClusterSpec
from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.properties import read_properties
from earshot.listeners.security import VALIDATOR
from earshot.listeners.terms import Mechanism, Protocol, read_mechanisms
from earshot.users.access import Login, grants
from earshot.users.order import UsersOrder
from earshot.validation.client import translate
from earshot_pulumi.certificates import Certificates, store_of
from earshot_pulumi.properties import write
from earshot_pulumi.provider.internal import InternalKind, InternalResource
from earshot_pulumi.provider.kind import Operation, Properties
from earshot_pulumi.writing import writing

MADE = "users.json"
"""In the stack's folder of keys: by name, prefixes of all users that its cluster may know."""
LOST = "users that brokers do not know any more get their passwords again"
NOT_RESTARTED = (
    "all brokers accept the users; no broker was restarted since, so this update does not prove "
    "that they accept them after a restart"
)
Known = Mapping[str, Sequence[str]]
Say = Callable[[str], None]
"""Shows one line while the users are made."""


class UsersKind(InternalKind):
    """What all placements do alike; each reaches the brokers in its own way."""

    ID = "users"
    DECISIVE = ("cluster_id", "users", "mechanism", "passwords", "logins")
    interrupted = (
        "interrupted while users and permissions were made: some may be missing; the next "
        "`pulumi up` makes them all"
    )

    def access(self, props: Properties) -> Mapping[str, str]:
        """Librdkafka's settings with which a node logs in."""
        raise NotImplementedError

    def carry_out(self, order: UsersOrder, props: Properties, say: Say) -> None:
        """Carries out ``order`` from where the brokers are reached. Raises EarshotError."""
        raise NotImplementedError

    def refused(self, props: Properties) -> list[str]:
        """The brokers, each with a listener, that lack users of the cluster.

        An unreachable broker is left out. Raises EarshotError if all of them are unreachable.
        """
        raise NotImplementedError

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        return super().differs(operation, olds, news) or bool(self._unknown(news))

    def _unknown(self, props: Properties) -> str:
        """What `refused` returns, in one text; empty where no broker can be asked."""
        with contextlib.suppress(EarshotError):
            return "; ".join(self.refused(props))
        return ""

    def made(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        if olds and not super().differs(operation, olds, news):
            operation.log(f"{LOST}: {self._unknown(news)}")
        store = store_of(news)
        known = merged(remembered(store), olds.get("users", {}))
        # an interrupted run may have made some of them, and a state may be lost
        remember(store, merged(known, news["users"]))
        self.carry_out(_order(known, olds, news, self.access(news)), news, operation.log)
        remember(store, news["users"])
        if olds and news["logins"]:
            operation.log(NOT_RESTARTED)
        return news


class Users(InternalResource):
    """The users of a cluster that serves, and what they may do."""

    def __init__(
        self,
        name: str,
        spec: ClusterSpec,
        root: Path,
        cluster_id: pulumi.Output[str],
        certificates: Certificates,
        reached: Mapping[str, Any],
        opts: pulumi.ResourceOptions,
    ) -> None:
        """``reached`` holds `brokers`, the address of each by its id, and `logins` (see `logins`),
        as they are reached from where its kind carries orders out; and what else that takes."""
        assert spec.security is not None  # else there are no certificates
        props = {
            "root": str(root),
            "cluster_id": cluster_id,
            "users": {item.name: list(item.prefixes) for item in spec.security.users},
            "mechanism": ",".join(spec.mechanisms(spec.security)),
            "passwords": certificates.passwords,
            **reached,
        }
        super().__init__(name, props, opts)


def remembered(store: Store) -> Known:
    """The users that the cluster may know; empty if that is unknown."""
    try:
        found = json.loads((store.folder / MADE).read_text())
        return {str(name): [str(it) for it in prefixes] for name, prefixes in found.items()}
    except (FileNotFoundError, ValueError, AttributeError, TypeError):
        return {}


def remember(store: Store, known: Known) -> None:
    """Keeps ``known`` for later runs."""
    with writing("users", store.folder):
        cache.write(store.folder / MADE, json.dumps(known, indent=2) + "\n", 0o600)


def merged(one: Known, other: Known) -> Known:
    """All users of both, each with the prefixes of both."""
    return {
        name: list(dict.fromkeys((*one.get(name, ()), *other.get(name, ()))))
        for name in (*one, *other)
    }


def logins(plan: ClusterPlan, reach: Callable[[Node, Listener], str]) -> list[Properties]:
    """All ways in by a password, as inputs of a resource.

    ``reach`` returns the `host:port` at which a listener of a broker is reached.
    """
    security = plan.security
    if security is None:
        return []
    return [
        write(Login(broker=node.id, listener=item.name, address=reach(node, item), mechanism=kind))
        for node in plan.brokers
        for item in node.listeners
        for kind in security.mechanisms(item)
    ]


def client_of(store: Store, mechanism: Mechanism) -> dict[str, Any]:
    """Librdkafka's settings to log in as the validator, whatever a listener asks for.

    They name no file: orders are carried out elsewhere, too. Raises EarshotError.
    """
    text = client_properties(
        store, VALIDATOR, mechanism, Protocol.SASL_SSL, certified=True, whole=True
    )
    return translate(read_properties(text).values)


def kept_passwords(store: Store) -> dict[str, str]:
    """The passwords of all users that the cluster may know, by name; not of one that leaves."""
    passwords = {}
    for user in (VALIDATOR, *remembered(store)):
        with contextlib.suppress(EarshotError):
            passwords[user] = store.password(user)
    return passwords


def changes(
    store: Store,
    wanted: Known,
    known: Known,
    mechanisms: Sequence[Mechanism],
    earlier: Sequence[Mechanism],
    logs_in: bool,
) -> dict[str, Any]:
    """The parts of a `UsersOrder` that lead to ``wanted``, whatever of ``known`` the cluster knows.

    ``earlier`` are mechanisms that it may know users by; ``logs_in`` says whether a listener asks
    for passwords. All passwords are given, whether they are new or not: the cluster may be.
    """
    old, new = grants(known), grants(wanted)
    permissions = {
        "forbidden": tuple(item for item in old if item not in new),
        "allowed": tuple(new),
        "mechanisms": tuple(mechanisms),
    }
    if not logs_in:
        return permissions
    passwords = {user: store.password(user) for user in (VALIDATOR, *wanted)}
    gone = tuple(
        (user, kind)
        for kind in dict.fromkeys((*earlier, *mechanisms))
        for user in dict.fromkeys((VALIDATOR, *known))
        if kind not in mechanisms or user not in passwords
    )
    return {**permissions, "passwords": passwords, "gone": gone}


def _order(
    known: Known, olds: Properties, news: Properties, access: Mapping[str, str]
) -> UsersOrder:
    """What leads to ``news`` from ``olds``, where the cluster may have the users ``known``."""
    store, mechanisms = store_of(news), read_mechanisms(news["mechanism"])
    earlier = read_mechanisms(olds.get("mechanism") or news["mechanism"])
    ways = tuple(map(Login.model_validate, news["logins"]))
    return UsersOrder(
        bootstrap=",".join(news["brokers"].values()),
        access=dict(access),
        **changes(store, news["users"], known, mechanisms, earlier, bool(ways)),
        logins=ways,
        client=client_of(store, mechanisms[0]) if ways else {},
    )
