"""Whether a Docker host may be touched: only while the others and the brokers on them serve."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi import driver
from earshot_pulumi.docker import inner_listener, labels
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker_hosts.clusters import nodes_on
from earshot_pulumi.docker_hosts.turns import DockerHostTurnKind
from earshot_pulumi.provider.kind import UNKNOWN

from earshot.config.docker_host import DockerHost
from earshot.errors import EarshotError
from earshot.validation.cluster_state import ClusterState, Partition, Quorum
from earshot.validation.wire import ExchangeError
from tests.components.called import Called
from tests.components.docker.container_engine import ContainerEngine
from tests.components.docker.stacks import OWN_ID
from tests.raised import raised

LISTENERS = "CONTROLLER://0.0.0.0:29092,EXTERNAL://0.0.0.0:39092,INTERNAL://0.0.0.0:19092"
PROTOCOLS = "CONTROLLER:PLAINTEXT,EXTERNAL:SSL,INTERNAL:PLAINTEXT"
TURN = Called(DockerHostTurnKind())


def variables(protocols: str = PROTOCOLS) -> list[str]:
    """The environment of a broker's container."""
    return [
        f"KAFKA_LISTENERS={LISTENERS}",
        f"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP={protocols}",
        "KAFKA_INTER_BROKER_LISTENER_NAME=INTERNAL",
        "KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER",
    ]


class Hosts:
    """Docker hosts with the containers of three brokers; tests remove what they need."""

    def __init__(self) -> None:
        self.engines = {name: ContainerEngine() for name in "abc"}
        for id, engine in enumerate(self.engines.values(), 1):
            engine.add(f"id-{id}", id, variables=variables())
        self.silent: set[str] = set()
        self.behind: list[int] = []
        self.asked: set[str] = set()

    def state_on(self, host: str) -> dict[str, Any]:
        """The state of the first container on ``host``."""
        state: dict[str, Any] = next(iter(self.engines[host].containers.values()))["State"]
        return state

    def connect(self, where: Any) -> nullcontext[ContainerEngine]:
        name = where.engine.removeprefix("tcp://").removesuffix(":2376")
        if name in self.silent:
            raise EarshotError(f"Docker engine at {where.engine}", observed="does not answer")
        self.asked.add(name)
        return nullcontext(self.engines[name])

    def cluster_state(self, _client: object, container: str, listener: Any) -> ClusterState:
        assert (listener.host, listener.port) == ("127.0.0.1", 19092)
        if self.behind and container.endswith(f"-{self.behind[0]}"):
            self.behind.pop(0)
            raise ExchangeError("refused", "not yet")
        return ClusterState((1, 2, 3), (Partition("t", 0, 1, (1, 2, 3), (1, 2, 3)),), OWN_ID)


@pytest.fixture
def docker_hosts(monkeypatch: pytest.MonkeyPatch) -> Hosts:
    docker_hosts = Hosts()
    monkeypatch.setattr("earshot_pulumi.docker.container_address.connect", docker_hosts.connect)
    monkeypatch.setattr(inner_listener, "state", docker_hosts.cluster_state)
    quorum = Quorum(1, dict.fromkeys((1, 2, 3, 4), 5000))
    monkeypatch.setattr(inner_listener, "quorum", lambda *_: quorum)
    monkeypatch.setattr(driver, "POLL", 0)
    return docker_hosts


@pytest.fixture(autouse=True)
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the certificates."""
    (tmp_path / "key.pem").touch()
    monkeypatch.setattr("earshot_pulumi.docker_hosts.clusters.here", Path)
    return tmp_path


def props(client: Path, wanted: Any, host: str = "a", **changes: Any) -> dict[str, Any]:
    hosts = [
        {"name": name, "engine": f"tcp://{name}:2376", "cert_path": str(client)} for name in "abc"
    ]
    inputs = {"host": host, "hosts": hosts, "wanted": wanted, "arch": "arm64", "answered": True}
    return {**inputs, "seconds": 5.0, "granted": None, **changes}


def refusal(olds: dict[str, Any], news: dict[str, Any]) -> str:
    return "".join(TURN.check(olds, news).failures)


def test_a_host_may_change_while_all_brokers_on_the_others_serve(
    docker_hosts: Hosts, client: Path
) -> None:
    old, new = props(client, ["old"]), props(client, ["new"])
    assert refusal(old, new) == ""
    first = TURN.update(old, new).outs["granted"]
    second = TURN.update(new, old).outs["granted"]
    assert first and second and first != second, "a change that is taken back is one, too"
    assert {"b", "c"} <= docker_hosts.asked


def test_a_host_that_does_not_change_asks_no_engine(docker_hosts: Hosts, client: Path) -> None:
    old = props(client, ["old"])
    docker_hosts.silent = {"b"}
    assert refusal(old, props(client, ["old"])) == ""
    assert refusal(old, props(client, UNKNOWN)) == "", "a preview may not know it"
    assert refusal({}, props(client, ["new"], hosts=[])) == "", "a new host"
    assert TURN.create(props(client, ["new"], hosts=[])).outs["granted"]
    assert not TURN.differs(old, props(client, ["old"], seconds=9.0))
    unknown = [{**host, "engine": UNKNOWN} for host in old["hosts"]]
    assert refusal(old, props(client, ["new"], hosts=unknown)) == ""
    (client / "key.pem").unlink()
    assert refusal(old, props(client, ["new"])) == "", "another checkout has no certificate yet"
    assert not docker_hosts.asked


def test_no_host_changes_while_another_one_is_down(docker_hosts: Hosts, client: Path) -> None:
    docker_hosts.silent = {"c"}
    text = refusal(props(client, ["old"]), props(client, ["new"]))
    assert "Docker host a would be restarted or replaced while c is down" in text
    assert "c: Docker engine at tcp://c:2376: does not answer" in text
    assert "`in_turn: false` changes all hosts at once" in text
    assert refusal({}, props(client, ["new"])) == text, "an earlier release remembered no turn"
    assert refusal(props(client, ["old"], "c"), props(client, ["new"], "c")) == ""


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"Running": False, "ExitCode": 143}, "it does not run (status 143)"),
        ({"Paused": True}, "it is paused"),
    ],
)
def test_no_host_changes_while_a_broker_on_another_is_down(
    state: dict[str, Any], reason: str, docker_hosts: Hosts, client: Path
) -> None:
    docker_hosts.state_on("b").update(state)
    text = refusal(props(client, ["old"]), props(client, ["new"]))
    assert f"while b is down:\n  - b: container kafka-2: {reason}" in text


def test_a_container_that_was_set_aside_does_not_count(docker_hosts: Hosts, client: Path) -> None:
    engine = docker_hosts.engines["b"]
    for ids in (["aside", "id-2"], ["id-2", "aside"]):
        engine.containers.clear()
        for id in ids:
            name = "kafka-2-failed" if id == "aside" else ""
            engine.add(id, 2, name=name, variables=variables())
        engine.kill("aside")
        assert refusal(props(client, ["old"]), props(client, ["new"])) == ""


def test_the_next_host_waits_until_brokers_are_in_sync(docker_hosts: Hosts, client: Path) -> None:
    docker_hosts.behind = [2, 2, 2]
    TURN.update(props(client, ["old"]), props(client, ["new"]))
    assert docker_hosts.behind == [], "broker 2 was asked until it answered"


def test_a_broker_that_stops_after_the_check_keeps_the_host(
    docker_hosts: Hosts, client: Path
) -> None:
    docker_hosts.engines["b"].kill("id-2")
    with pytest.raises(EarshotError, match="nothing was changed"):
        TURN.update(props(client, ["old"]), props(client, ["new"]))


def test_a_broker_that_does_not_come_back_keeps_the_host(docker_hosts: Hosts, client: Path) -> None:
    docker_hosts.behind = [2] * 100_000
    olds, news = props(client, ["old"]), props(client, ["new"], seconds=0.1)
    text = str(raised(EarshotError, TURN.update, olds, news))
    assert "Docker host a was not touched" in text and "kafka-2: not ready" in text
    assert "start these nodes, then run the same command again" in text


def test_without_a_quorum_nothing_is_waited_for(docker_hosts: Hosts, client: Path) -> None:
    """Two hosts with a voter each: the host that is down itself must be able to change."""
    del docker_hosts.engines["c"]
    docker_hosts.behind = [2] * 100_000
    hosts = props(client, ["new"])["hosts"][:2]
    old, new = props(client, ["old"], hosts=hosts), props(client, ["new"], hosts=hosts)
    docker_hosts.silent = {"a"}
    assert refusal(old, new) == ""
    docker_hosts.silent = set()
    docker_hosts.engines["a"].kill("id-1")
    assert TURN.update(old, new).outs["granted"]
    assert len(docker_hosts.behind) == 100_000


def test_brokers_of_other_stacks_on_the_same_hosts_count(docker_hosts: Hosts, client: Path) -> None:
    engine = docker_hosts.engines["c"]
    other = engine.add("other", 2, deployment="other", variables=variables())
    other["Config"]["Labels"][labels.STACK] = "billing"
    engine.kill("other", code=1)
    text = refusal(props(client, ["old"]), props(client, ["new"]))
    assert "c: container kafka-2: it does not run (status 1)" in text


def test_a_preview_says_what_is_lost_with_a_host_of_several_brokers(
    docker_hosts: Hosts, client: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three brokers on two hosts."""
    docker_hosts.engines["a"].add("id-3", 3, variables=variables())
    hosts = props(client, ["new"])["hosts"][:2]
    old, new = props(client, ["old"], hosts=hosts), props(client, ["new"], hosts=hosts)
    assert refusal(old, new) == ""
    text = capsys.readouterr().out
    assert "Docker host a holds nodes 1, 3 of s." in text
    assert "the cluster has no quorum and accepts no records for partitions with too few" in text
    assert refusal({**old, "host": "b"}, {**new, "host": "b"}) == ""
    assert capsys.readouterr().out == "", "the other two go on without broker 2"


def test_another_architecture_is_refused(docker_hosts: Hosts, client: Path) -> None:
    text = refusal(props(client, ["old"]), props(client, ["new"], arch="x86_64"))
    assert "Docker host a would change from arm64 to x86_64" in text
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
    protocols: str, port: int, plaintext: bool, docker_hosts: Hosts, client: Path
) -> None:
    docker_hosts.engines["a"].add("id-1", 1, variables=variables(protocols))
    host = DockerHost(name="a", engine="tcp://a:2376", cert_path=str(client))
    with Engines() as engines:
        (node,) = nodes_on(engines, host)
    endpoint = node.address.endpoint
    assert (endpoint.port, endpoint.plaintext) == (port, plaintext)
    assert node.address.broker and node.address.voter and node.cluster_id == OWN_ID
