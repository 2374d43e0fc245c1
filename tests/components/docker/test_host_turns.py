"""Whether a Docker host may be touched: only while the others and the brokers on them serve."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import NotFound
from earshot_pulumi import driver
from earshot_pulumi.docker import clusters, inner_listener, labels
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.host_turns import DockerHostTurnKind
from earshot_pulumi.provider.kind import UNKNOWN, OperationFailed

from earshot.errors import EarshotError
from earshot.validation.cluster_state import ClusterState, Partition, Quorum
from earshot.validation.wire import ExchangeError
from tests.components.called import Called

OWN_ID = "5L6g3nShT-eMCtK-X86swQ"
LISTENERS = "CONTROLLER://0.0.0.0:29092,EXTERNAL://0.0.0.0:39092,INTERNAL://0.0.0.0:19092"
PROTOCOLS = "CONTROLLER:PLAINTEXT,EXTERNAL:SSL,INTERNAL:PLAINTEXT"


def container(id: int, *, deployment: str = "d", protocols: str = PROTOCOLS) -> dict[str, Any]:
    """As an engine describes the container of node ``id``."""
    variables = {
        "CLUSTER_ID": OWN_ID,
        "KAFKA_LISTENERS": LISTENERS,
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": protocols,
        "KAFKA_INTER_BROKER_LISTENER_NAME": "INTERNAL",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    }
    own = {labels.STACK: "shop", labels.DEPLOYMENT: deployment, labels.NODE: str(id)}
    state = {
        "Status": "running", "Running": True, "Restarting": False, "Paused": False,
        "ExitCode": 0, "Error": "", "StartedAt": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    return {
        "Id": f"{deployment}-{id}",
        "Name": f"/kafka-{id}",
        "State": state,
        "RestartCount": 0,
        "Config": {
            "Labels": own | {labels.ROLES: "broker,controller"},
            "Env": [f"{name}={value}" for name, value in variables.items()],
        },
        "NetworkSettings": {"Networks": {"earshot-shop": {}}},
    }


class World:
    """Engines by host, with the containers of three brokers; tests take away what they need."""

    def __init__(self) -> None:
        self.engines = {f"tcp://{it}:2376": [container(id)] for id, it in enumerate("abc", 1)}
        self.silent: set[str] = set()
        self.behind: list[int] = []
        self.asked: list[str] = []

    def on(self, host: str) -> list[dict[str, Any]]:
        return self.engines[f"tcp://{host}:2376"]

    def kill(self, host: str) -> None:
        for it in self.on(host):
            it["State"] |= {"Running": False, "Status": "exited", "ExitCode": 143}

    @contextmanager
    def connected(self, where: Any) -> Iterator[SimpleNamespace]:
        if where.engine in self.silent:
            raise EarshotError(f"Docker engine at {where.engine}", observed="does not answer")
        self.asked.append(where.engine)
        held = self.engines[where.engine]

        def inspect(id: str) -> dict[str, Any]:
            found = next((it for it in held if id in (it["Id"], it["Name"].lstrip("/"))), None)
            if found is None:
                raise NotFound(f"no {id}")
            return found

        def listed(*, all: bool, filters: dict[str, str]) -> list[dict[str, Any]]:
            assert all and filters == {"label": labels.NODE}
            return [{"Id": it["Id"]} for it in held]

        def logs(*_: Any, **__: Any) -> bytes:
            return b"a line\n"

        yield SimpleNamespace(
            api=SimpleNamespace(inspect_container=inspect, containers=listed, logs=logs)
        )

    def state(self, _client: object, container: str, listener: Any) -> ClusterState:
        assert (listener.host, listener.port) == ("127.0.0.1", 19092)
        if self.behind and container.endswith(f"-{self.behind[0]}"):
            self.behind.pop(0)
            raise ExchangeError("refused", "not yet")
        return ClusterState((1, 2, 3), (Partition("t", 0, 1, (1, 2, 3), (1, 2, 3)),), OWN_ID)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(
        "earshot_pulumi.docker.container_address.connect", lambda it: made.connected(it)
    )
    monkeypatch.setattr(inner_listener, "state", made.state)
    known = Quorum(1, dict.fromkeys((1, 2, 3, 4), 5000))
    monkeypatch.setattr(inner_listener, "quorum", lambda *_: known)
    monkeypatch.setattr(driver, "POLL", 0)
    return made


@pytest.fixture(autouse=True)
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the certificates."""
    (tmp_path / "key.pem").touch()
    monkeypatch.setattr("earshot_pulumi.docker.host_turns.here", Path)
    return tmp_path


def props(client: Path, wanted: Any, host: str = "a", **changed: Any) -> dict[str, Any]:
    hosts = [{"name": it, "engine": f"tcp://{it}:2376", "cert_path": str(client)} for it in "abc"]
    given = {"host": host, "hosts": hosts, "wanted": wanted, "arch": "arm64", "answered": True}
    return {**given, "seconds": 5.0, "granted": None, **changed}


def refusal(olds: dict[str, Any], news: dict[str, Any]) -> str:
    return "".join(Called(DockerHostTurnKind()).check(olds, news).failures)


def test_a_host_may_change_while_all_brokers_on_the_others_serve(
    world: World, client: Path
) -> None:
    old, new = props(client, ["old"]), props(client, ["new"])
    assert refusal(old, new) == ""
    called = Called(DockerHostTurnKind())
    first = called.update(old, new).outs["granted"]
    second = called.update(new, old).outs["granted"]
    assert first and second and first != second, "a change that is taken back is one, too"
    assert {"tcp://b:2376", "tcp://c:2376"} <= {*world.asked}


def test_a_host_that_does_not_change_asks_no_engine(world: World, client: Path) -> None:
    old = props(client, ["old"])
    world.silent = {"tcp://b:2376"}
    assert refusal(old, props(client, ["old"])) == ""
    assert refusal(old, props(client, UNKNOWN)) == "", "a preview may not know it"
    assert refusal({}, props(client, ["new"], hosts=[])) == "", "a new host"
    assert Called(DockerHostTurnKind()).create(props(client, ["new"], hosts=[])).outs["granted"]
    assert not Called(DockerHostTurnKind()).differs(old, props(client, ["old"], seconds=9.0))
    unknown = [{**it, "engine": UNKNOWN} for it in old["hosts"]]
    assert refusal(old, props(client, ["new"], hosts=unknown)) == ""
    (client / "key.pem").unlink()
    assert refusal(old, props(client, ["new"])) == "", "another checkout has no certificate yet"
    assert world.asked == []


def test_no_host_changes_while_another_one_is_down(world: World, client: Path) -> None:
    world.silent = {"tcp://c:2376"}
    said = refusal(props(client, ["old"]), props(client, ["new"]))
    assert "Docker host a would be restarted or replaced while c is down" in said
    assert "c: Docker engine at tcp://c:2376: does not answer" in said
    assert "`in_turn: false` changes all hosts at once" in said
    assert refusal({}, props(client, ["new"])) == said, "an earlier release remembered no turn"
    assert refusal(props(client, ["old"], "c"), props(client, ["new"], "c")) == ""


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"Running": False, "ExitCode": 143}, "it does not run (status 143)"),
        ({"Paused": True}, "it is paused"),
    ],
)
def test_no_host_changes_while_a_broker_on_another_is_down(
    state: dict[str, Any], reason: str, world: World, client: Path
) -> None:
    world.on("b")[0]["State"] |= state
    said = refusal(props(client, ["old"]), props(client, ["new"]))
    assert f"while b is down:\n  - b: container kafka-2: {reason}" in said


def test_a_container_that_was_set_aside_does_not_count(world: World, client: Path) -> None:
    aside = container(2)
    aside |= {"Id": "d-2-failed", "Name": "/kafka-2-failed"}
    aside["State"] = {**aside["State"], "Running": False}
    for held in ([aside, container(2)], [container(2), aside]):
        world.engines["tcp://b:2376"] = held
        assert refusal(props(client, ["old"]), props(client, ["new"])) == ""


def test_the_next_host_waits_until_brokers_are_in_sync(world: World, client: Path) -> None:
    world.behind = [2, 2, 2]
    Called(DockerHostTurnKind()).update(props(client, ["old"]), props(client, ["new"]))
    assert world.behind == [], "broker 2 was asked until it answered"


def test_a_broker_that_stops_after_the_check_keeps_the_host(world: World, client: Path) -> None:
    world.kill("b")
    with pytest.raises((EarshotError, OperationFailed), match="nothing was changed"):
        Called(DockerHostTurnKind()).update(props(client, ["old"]), props(client, ["new"]))


def test_a_broker_that_does_not_come_back_keeps_the_host(world: World, client: Path) -> None:
    world.behind = [2] * 100_000
    with pytest.raises((EarshotError, OperationFailed)) as caught:
        Called(DockerHostTurnKind()).update(
            props(client, ["old"]), props(client, ["new"], seconds=0.1)
        )
    said = str(caught.value)
    assert "Docker host a was not touched" in said and "kafka-2: not ready" in said
    assert "bring these nodes back" in said


def test_without_a_quorum_nothing_is_waited_for(world: World, client: Path) -> None:
    """Two hosts with a voter each: the host that is down itself must be able to change."""
    world.engines = {f"tcp://{it}:2376": [container(id)] for id, it in enumerate("ab", 1)}
    world.behind = [2] * 100_000
    hosts = props(client, ["new"])["hosts"][:2]
    old, new = props(client, ["old"], hosts=hosts), props(client, ["new"], hosts=hosts)
    world.silent = {"tcp://a:2376"}
    assert refusal(old, new) == ""
    world.silent = set()
    world.kill("a")
    assert Called(DockerHostTurnKind()).update(old, new).outs["granted"]
    assert len(world.behind) == 100_000


def test_brokers_of_other_stacks_on_the_same_hosts_count(world: World, client: Path) -> None:
    world.on("c").append(container(2, deployment="other"))
    world.on("c")[1]["Config"]["Labels"][labels.STACK] = "billing"
    world.on("c")[1]["State"] |= {"Running": False, "ExitCode": 1}
    said = refusal(props(client, ["old"]), props(client, ["new"]))
    assert "c: container kafka-2: it does not run (status 1)" in said


def test_a_preview_says_what_is_lost_with_a_host_of_several_brokers(
    world: World, client: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three brokers on two hosts."""
    world.on("a").append(container(3))
    hosts = props(client, ["new"])["hosts"][:2]
    old, new = props(client, ["old"], hosts=hosts), props(client, ["new"], hosts=hosts)
    assert refusal(old, new) == ""
    said = capsys.readouterr().out
    assert "Docker host a holds nodes 1, 3 of shop." in said
    assert "the cluster has no quorum and takes no records for partitions with too few" in said
    assert refusal({**old, "host": "b"}, {**new, "host": "b"}) == ""
    assert capsys.readouterr().out == "", "the other two go on without broker 2"


def test_another_architecture_is_refused(world: World, client: Path) -> None:
    said = refusal(props(client, ["old"]), props(client, ["new"], arch="x86_64"))
    assert "Docker host a would change from arm64 to x86_64" in said
    blank: dict[str, Any] = {"hosts": [], "answered": False}
    assert refusal(props(client, ["old"]), props(client, ["new"], arch="x86_64", **blank)) == ""


@pytest.mark.parametrize(
    ("protocols", "port", "plaintext"),
    [
        (PROTOCOLS, 19092, True),
        ("CONTROLLER:PLAINTEXT,EXTERNAL:PLAINTEXT,INTERNAL:SSL", 39092, True),
        ("CONTROLLER:PLAINTEXT,EXTERNAL:SSL,INTERNAL:SSL", 19092, False),
    ],
)
def test_a_broker_is_asked_at_a_listener_that_answers(
    protocols: str, port: int, plaintext: bool, world: World, client: Path
) -> None:
    world.engines["tcp://a:2376"] = [container(1, protocols=protocols)]
    host = clusters.HostEngine("a", "tcp://a:2376", str(client))
    with Engines() as engines:
        (node,) = clusters.nodes_on(engines, host)
    endpoint = node.address.endpoint
    assert (endpoint.port, endpoint.plaintext) == (port, plaintext)
    assert node.address.broker and node.address.voter and node.cluster_id == OWN_ID
