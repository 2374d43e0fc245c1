"""How users of a cluster of containers are made: by whom, from where, by which order."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.certificates import CertificatesKind
from earshot_pulumi.docker import inner_listener, users
from earshot_pulumi.docker.container_address import ContainerAddress, Engines
from earshot_pulumi.docker.inner_listener import InnerListener, NodeKeys
from earshot_pulumi.docker.users import DockerUsersKind

from earshot.certificates.store import Store
from earshot.errors import EarshotError
from earshot.listeners.terms import Mechanism, Scope
from earshot.placement.standpoint import CandidateEngine, Kind, Standpoint
from earshot.users.access import Login
from earshot.users.order import UsersOrder
from earshot.validation.wire import ExchangeError
from tests.components.called import Called

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


def props_of(root: Path) -> dict[str, Any]:
    """The inputs of the users of a cluster that has certificates."""
    issued = Called(CertificatesKind()).create(
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
    return {
        "root": str(root),
        "stack": "s",
        "standpoint": STANDPOINT.model_dump(mode="json"),
        "cluster_id": "id",
        "users": {"app": ["a-"]},
        "mechanism": "SCRAM-SHA-256",
        "passwords": issued.outs["passwords"],
        "brokers": {"1": "kafka-1:19092"},
        "logins": [LOGIN],
        "places": [place(1).to_props()],
    }


def test_a_node_makes_users_in_a_container_on_the_brokers_network(
    root: Path, orders: list[tuple[Standpoint, str, UsersOrder]]
) -> None:
    props = props_of(root)
    outs = Called(DockerUsersKind()).create(props).outs
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


def place(id: int) -> ContainerAddress:
    keys = NodeKeys("/state/kafka", f"node-{id}", "localhost")
    mechanisms = (Mechanism.SCRAM_SHA_256,)
    listener = InnerListener("127.0.0.1", 9092, False, keys, "HOST", mechanisms)
    inner, plain = (InnerListener("127.0.0.1", port, True) for port in (19092, 9093))
    name = f"kafka-{id}"
    clients = (listener, plain)
    return ContainerAddress(id, name, "earshot-s", "local", True, True, inner, clients=clients)


@pytest.mark.parametrize(
    ("answer", "differs"),
    [
        (ExchangeError("authentication", "invalid credentials"), True),
        (ExchangeError("refused", "it refused the connection"), False),
        (EarshotError("Docker engine", observed="does not answer"), False),
        (None, False),
    ],
)
def test_users_that_a_broker_does_not_know_are_made_again(
    root: Path,
    orders: list[tuple[Standpoint, str, UsersOrder]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: Exception | None,
    differs: bool,
) -> None:
    def log_in(_client: object, container: str, listener: InnerListener) -> None:
        assert (container, listener.name) == ("kafka-1", "HOST")
        if answer is not None:
            raise answer

    monkeypatch.setattr(inner_listener, "log_in", log_in)
    monkeypatch.setattr(Engines, "of", lambda *_: object())
    props = props_of(root)
    assert Called(DockerUsersKind()).differs(props, props) is differs
    if differs:
        Called(DockerUsersKind()).update(props, props)
        assert orders[0][2].passwords.keys() == {"validator", "app"}
        assert "kafka-1: HOST: invalid credentials" in capsys.readouterr().out


def test_a_broker_that_has_lost_its_users_is_waited_for_alone(
    root: Path, orders: list[tuple[Standpoint, str, UsersOrder]]
) -> None:
    props = props_of(root)
    Called(DockerUsersKind()).create(props)
    props["logins"] = [LOGIN, {**LOGIN, "broker": 2, "address": "kafka-2:9092"}]
    known = {it: props[it] for it in props if it != "users"}
    DockerUsersKind().reset_passwords(known, 2, print)
    order = orders[1][2]
    assert [it.address for it in order.logins] == ["kafka-2:9092"]
    assert order.passwords == orders[0][2].passwords and not order.gone
