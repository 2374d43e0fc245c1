"""Users of a cluster of containers: the order to create them, and the container that runs it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from earshot_pulumi.certificates import CertificatesKind
from earshot_pulumi.docker import inner_listener, users
from earshot_pulumi.docker.container_address import ContainerAddress, Engines
from earshot_pulumi.docker.inner_listener import InnerListener, NodeKeys
from earshot_pulumi.docker.users import DockerUsersKind
from earshot_pulumi.properties import write

from earshot.certificates.store import Store
from earshot.errors import EarshotError
from earshot.listeners.terms import Mechanism, Scope
from earshot.placement.standpoint import CandidateEngine, Kind, Standpoint
from earshot.users.access import Login
from earshot.users.order import UsersOrder
from earshot.validation.deadline import Deadline
from earshot.validation.wire import ExchangeError
from tests.components.called import Called
from tests.components.secured_inputs import certificate_inputs
from tests.raised import raised

LOGIN = {
    "broker": 1,
    "listener": "HOST",
    "address": "kafka-1:9092",
    "mechanism": "SCRAM-SHA-256",
}
STANDPOINT = Standpoint(
    name="internal", scope=Scope.INTERNAL, kind=Kind.CONTAINER,
    engines=(CandidateEngine(engine="tcp://a:1"),), network="earshot-s",
)  # fmt: skip


Orders = list[tuple[Standpoint, str, UsersOrder]]
KIND = Called(DockerUsersKind())


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> Orders:
    """The orders that were carried out: the standpoint, the cluster and the order."""
    orders: Orders = []

    @contextmanager
    def session(standpoint: Standpoint, cluster: str, _say: Any) -> Iterator[Standpoint]:
        assert cluster == "s"
        yield standpoint

    def carry_out(where: Standpoint, cluster: str, order: UsersOrder, _end: Any, _say: Any) -> None:
        orders.append((where, cluster, order))

    monkeypatch.setattr(users, "docker_session", session)
    monkeypatch.setattr(users, "carry_out_on", carry_out)
    return orders


def props_of(root: Path) -> dict[str, Any]:
    """The inputs of the users of a cluster that has certificates."""
    hosts = {"node-1": ["kafka-1", "localhost"]}
    inputs = certificate_inputs(root, hosts=hosts, mechanism="SCRAM-SHA-256")
    issued = Called(CertificatesKind()).create(inputs)
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
        "places": [write(place(1))],
    }


def test_a_node_makes_users_in_a_container_on_the_brokers_network(
    root: Path, orders: Orders
) -> None:
    props = props_of(root)
    outs = KIND.create(props).outs
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
    orders: Orders,
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
    assert KIND.differs(props, props) is differs
    if differs:
        KIND.update(props, props)
        assert orders[0][2].passwords.keys() == {"validator", "app"}
        assert "kafka-1: HOST: invalid credentials" in capsys.readouterr().out


def test_a_broker_that_has_lost_its_users_is_waited_for_alone(root: Path, orders: Orders) -> None:
    props = props_of(root)
    KIND.create(props)
    props["logins"] = [LOGIN, {**LOGIN, "broker": 2, "address": "kafka-2:9092"}]
    kept = {key: props[key] for key in props if key != "users"}
    DockerUsersKind().reset_passwords(kept, 2, print)
    order = orders[1][2]
    assert [login.address for login in order.logins] == ["kafka-2:9092"]
    assert order.passwords == orders[0][2].passwords and not order.gone


SECRET = "not to be shown"
ORDER = UsersOrder(
    bootstrap="kafka-1:19092", access={"ssl.key.pem": SECRET}, mechanisms=(Mechanism.SCRAM_SHA_512,)
)
Run = tuple[list[str], Mapping[str, bytes], Sequence[str]]
"""A container's command, files and program."""


def run_of(monkeypatch: pytest.MonkeyPatch, code: int, output: list[str], fails: str = "") -> Run:
    """The run of the container, which prints ``output`` and ends with ``code``, or ``fails``."""
    runs: list[Run] = []

    @contextmanager
    def ended(
        session: object,
        cluster: str,
        command: list[str],
        files: Mapping[str, bytes],
        end: Deadline,
        say: object,
        program: Sequence[str],
    ) -> Iterator[tuple[Any, list[str]]]:
        assert (session, cluster) == ("session", "dev")
        runs.append((command, files, program))
        if fails:
            raise EarshotError("the container", observed=fails)
        yield SimpleNamespace(attrs={"State": {"ExitCode": code}}), output

    monkeypatch.setattr(users, "ended", ended)
    users.carry_out_on(cast(Any, "session"), "dev", ORDER, Deadline(1), print)
    return runs[0]


def test_the_order_is_a_file_and_no_part_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    command, files, program = run_of(monkeypatch, 0, [])
    assert command == ["/opt/earshot/run/order.json"]
    assert program == ("python", "-m", "earshot.users")
    assert {name: UsersOrder.model_validate_json(text) for name, text in files.items()} == {
        "order.json": ORDER
    }


@pytest.mark.parametrize(("code", "output", "fails", "reported"), [
    (2, ["kafka-1:19092: no answer"], "", "(status 2):\n    kafka-1:19092: no answer"),
    (0, [], "did not end within 180 s",
     ("(the container: did not end within 180 s)\n  fix: check that the engine runs, and read the "
      "brokers' logs, then run the same command again")),
])  # fmt: skip
def test_a_program_that_fails_is_reported_with_its_last_lines_or_a_remedy(
    monkeypatch: pytest.MonkeyPatch, code: int, output: list[str], fails: str, reported: str
) -> None:
    error = raised(EarshotError, run_of, monkeypatch, code, output, fails)
    assert str(error) == f"users and permissions: were not all created {reported}"
