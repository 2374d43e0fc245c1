"""Users and permissions as a resource: made as soon as the brokers serve, changed with the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, UpdateResult

from components.certificates import store_of
from components.checked import Props, on_lines_of_its_own
from components.owner import OwnedProvider
from earshot.certificates.client import client_properties
from earshot.config.security import SecuritySpec
from earshot.listeners.properties import read_properties
from earshot.listeners.security import VALIDATOR
from earshot.listeners.terms import Mechanism, Protocol
from earshot.users.access import grants
from earshot.users.order import Order
from earshot.validation.client import translate


class UsersProvider(OwnedProvider):
    """What all placements do alike; each has its own way to the brokers."""

    _DECIDES = ("cluster_id", "users", "mechanism", "passwords", "logins")

    def access(self, props: Props) -> Mapping[str, str]:
        """Librdkafka's settings with which a node comes in."""
        raise NotImplementedError

    def carry_out(self, order: Order, props: Props) -> None:
        """Carries out ``order`` from where the brokers are reached. Raises EarshotError."""
        raise NotImplementedError

    def diff(self, _id: str, olds: Props, news: Props) -> DiffResult:
        return DiffResult(changes=any(olds.get(key) != news.get(key) for key in self._DECIDES))

    def create(self, props: Props) -> CreateResult:
        self._settle({}, props)
        return CreateResult("users", props)

    def update(self, _id: str, olds: Props, news: Props) -> UpdateResult:
        self._settle(olds, news)
        return UpdateResult(news)

    def read(self, id_: str, props: Props) -> ReadResult:
        return ReadResult(id_, props)

    def _settle(self, olds: Props, news: Props) -> None:
        with on_lines_of_its_own():
            self.carry_out(_order(olds, news, self.access(news)), news)


class Users(Resource, module="earshot", name="Users"):
    """The users of a cluster that serves, and what they may do."""

    def __init__(
        self,
        provider: UsersProvider,
        name: str,
        spec: SecuritySpec,
        root: Path,
        cluster_id: pulumi.Output[str],
        passwords: pulumi.Output[Mapping[str, str]],
        reached: Mapping[str, Any],
        opts: pulumi.ResourceOptions,
    ) -> None:
        """``reached`` holds `brokers`, and `logins` where a listener asks for a password: each an
        address by broker id, as it is reached from where ``provider`` carries orders out; and what
        else that takes."""
        props = {
            "root": str(root),
            "cluster_id": cluster_id,
            "users": {item.name: list(item.prefixes) for item in spec.users},
            "mechanism": str(spec.mechanism),
            "passwords": passwords,
            **reached,
        }
        super().__init__(provider, name, props, opts)


def _order(olds: Props, news: Props, access: Mapping[str, str]) -> Order:
    """What leads from ``olds`` to ``news``."""
    store, mechanism = store_of(news), Mechanism(news["mechanism"])
    old, new = grants(olds.get("users", {})), grants(news["users"])
    before = olds.get("passwords", {})
    earlier = Mechanism(olds.get("mechanism") or mechanism)
    kept = earlier is mechanism
    logins = {int(id): at for id, at in news["logins"].items()}
    order = Order(
        bootstrap=",".join(news["brokers"].values()),
        access=dict(access),
        forbidden=tuple(item for item in old if item not in new),
        allowed=tuple(new),
        mechanism=mechanism,
        earlier=earlier,
    )
    if not logins:
        return order
    text = client_properties(store, VALIDATOR, mechanism, Protocol.SASL_SSL)
    changes = {
        "passwords": {
            user: store.password(user)
            for user, digest in news["passwords"].items()
            if not kept or before.get(user) != digest
        },
        "gone": tuple(user for user in before if not kept or user not in news["passwords"]),
        "logins": logins,
        "client": translate(read_properties(text).values),
    }
    return order.model_copy(update=changes)
