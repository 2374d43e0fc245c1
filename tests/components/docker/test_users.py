"""How users of a cluster of containers are made: by whom, from where, by which order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from components.certificates import CertificatesProvider
from components.docker import users
from components.docker.users import DockerUsersProvider
from earshot.certificates.store import Store
from earshot.listeners.terms import Scope
from earshot.placement.standpoint import CandidateEngine, Kind, Standpoint
from earshot.users.access import Login
from earshot.users.order import UsersOrder

LOGIN = {
    "broker": 1,
    "listener": "HOST",
    "address": "kafka-1:9092",
    "mechanism": "SCRAM-SHA-256",
}
STANDPOINT = Standpoint(
    name="internal",
    scope=Scope.INTERNAL,
    kind=Kind.CONTAINER,
    engines=(CandidateEngine(engine="tcp://a:1"),),
    network="earshot-s",
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: earshot\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".earshot" / "stacks" / "s" / "kafka"


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Standpoint, str, UsersOrder]]:
    """What was carried out, where and for which cluster."""
    found: list[tuple[Standpoint, str, UsersOrder]] = []

    @contextmanager
    def session(standpoint: Standpoint, cluster: str, _say: Any) -> Iterator[Standpoint]:
        assert cluster == "s"
        yield standpoint

    def carry_out(where: Standpoint, cluster: str, order: UsersOrder, _end: Any, _say: Any) -> None:
        found.append((where, cluster, order))

    monkeypatch.setattr(users, "docker_session", session)
    monkeypatch.setattr(users, "carry_out_on", carry_out)
    return found


def test_a_node_makes_users_in_a_container_on_the_brokers_network(
    root: Path, orders: list[tuple[Standpoint, str, UsersOrder]]
) -> None:
    issued = CertificatesProvider().create(
        {
            "stack": "s",
            "root": str(root),
            "hosts": {"node-1": ["kafka-1", "localhost"]},
            "users": ["validator", "app"],
            "mechanism": "SCRAM-SHA-256",
            "days": 90.0,
            "renew_days": 30.0,
        }
    )
    assert issued.outs is not None
    props = {
        "root": str(root),
        "stack": "s",
        "standpoint": STANDPOINT.model_dump(mode="json"),
        "cluster_id": "id",
        "users": {"app": ["a-"]},
        "mechanism": "SCRAM-SHA-256",
        "passwords": issued.outs["passwords"],
        "brokers": {"1": "kafka-1:19092"},
        "logins": [LOGIN],
    }
    outs = DockerUsersProvider().create(props).outs
    ((where, cluster, order),) = orders
    assert (where, cluster) == (STANDPOINT, "s")
    store = Store(root / "security")
    pem = store.key_store("node-1").read_text()
    assert order.access == {
        "security.protocol": "SSL",
        "ssl.ca.pem": store.authority(),
        "ssl.certificate.pem": pem,
        "ssl.key.pem": pem,
    }
    assert order.bootstrap == "kafka-1:19092" and order.logins == (Login.model_validate(LOGIN),)
    assert order.passwords == {user: store.password(user) for user in ("validator", "app")}
    assert order.client["sasl.password"] == store.password("validator")
    assert order.client["ssl.key.pem"] in store.key_store("validator").read_text()
    assert not any(key.endswith(".location") for key in order.client)
    assert outs == props, "and none of it is in the state"
