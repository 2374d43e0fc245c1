"""Users and permissions as a resource: made as soon as the brokers serve, changed with the file."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pulumi
from pulumi.dynamic import Resource

from components.certificates import Certificates, store_of
from components.dynamic import Props, Provider
from components.writing import writing
from earshot import cache
from earshot.certificates.client import client_properties
from earshot.certificates.store import Store
from earshot.config.cluster import ClusterSpec
from earshot.listeners.properties import read_properties
from earshot.listeners.security import VALIDATOR
from earshot.listeners.terms import Protocol, read_mechanisms
from earshot.users.access import grants
from earshot.users.order import UsersOrder
from earshot.validation.client import translate

MADE = "users.json"
"""In the stack's folder of keys: by name, prefixes of all users that its cluster may know."""
Known = Mapping[str, Sequence[str]]


class UsersProvider(Provider):
    """What all placements do alike; each reaches the brokers in its own way."""

    ID = "users"
    DECISIVE = ("cluster_id", "users", "mechanism", "passwords", "logins")

    def access(self, props: Props) -> Mapping[str, str]:
        """Librdkafka's settings with which a node logs in."""
        raise NotImplementedError

    def carry_out(self, order: UsersOrder, props: Props) -> None:
        """Carries out ``order`` from where the brokers are reached. Raises EarshotError."""
        raise NotImplementedError

    def made(self, olds: Props, news: Props) -> Props:
        store = store_of(news)
        known = merged(remembered(store), olds.get("users", {}))
        # an interrupted run may have made some of them, and a state may be lost
        remember(store, merged(known, news["users"]))
        self.carry_out(_order(known, olds, news, self.access(news)), news)
        remember(store, news["users"])
        return news


class Users(Resource, module="earshot", name="Users"):
    """The users of a cluster that serves, and what they may do."""

    def __init__(
        self,
        provider: UsersProvider,
        name: str,
        spec: ClusterSpec,
        root: Path,
        cluster_id: pulumi.Output[str],
        certificates: Certificates,
        reached: Mapping[str, Any],
        opts: pulumi.ResourceOptions,
    ) -> None:
        """``reached`` holds `brokers`, and `logins` where a listener asks for a password: each an
        address by broker id, as it is reached from where ``provider`` carries orders out; and what
        else that takes."""
        assert spec.security is not None  # else there are no certificates
        props = {
            "root": str(root),
            "cluster_id": cluster_id,
            "users": {item.name: list(item.prefixes) for item in spec.security.users},
            "mechanism": ",".join(spec.mechanisms(spec.security)),
            "passwords": certificates.passwords,
            **reached,
        }
        super().__init__(provider, name, props, opts)


def remembered(store: Store) -> Known:
    """Whom the cluster may know; nobody where that is not known."""
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


def _order(known: Known, olds: Props, news: Props, access: Mapping[str, str]) -> UsersOrder:
    """What leads to ``news`` from ``olds``, where the cluster may have the users ``known``.

    All passwords are given, whether they are new or not: the cluster may be.
    """
    store, mechanisms = store_of(news), read_mechanisms(news["mechanism"])
    old, new = grants(known), grants(news["users"])
    earlier = read_mechanisms(olds.get("mechanism") or news["mechanism"])
    logins = {int(id): at for id, at in news["logins"].items()}
    order = UsersOrder(
        bootstrap=",".join(news["brokers"].values()),
        access=dict(access),
        forbidden=tuple(item for item in old if item not in new),
        allowed=tuple(new),
        mechanisms=mechanisms,
    )
    if not logins:
        return order
    # whatever the listener asks for, and without a file: orders are carried out elsewhere, too
    text = client_properties(
        store, VALIDATOR, mechanisms[0], Protocol.SASL_SSL, certified=True, whole=True
    )
    before = dict.fromkeys((VALIDATOR, *known))
    changes = {
        "passwords": {user: store.password(user) for user in news["passwords"]},
        "gone": tuple(
            (user, kind)
            for kind in dict.fromkeys((*earlier, *mechanisms))
            for user in before
            if kind not in mechanisms or user not in news["passwords"]
        ),
        "logins": logins,
        "client": translate(read_properties(text).values),
    }
    return order.model_copy(update=changes)
