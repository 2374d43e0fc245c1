"""What is fixed, what is waited for, how a wait ends; engines here are made of dictionaries."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError, NotFound
from earshot_pulumi import driver
from earshot_pulumi.docker import inner_listener, kinds, labels, readiness
from earshot_pulumi.docker.container_address import ContainerAddress, Engines, incarnation
from earshot_pulumi.docker.inner_listener import InnerListener, NodeKeys
from earshot_pulumi.docker.kinds import DockerReadinessKind
from earshot_pulumi.docker.readiness import ContainerDriver
from earshot_pulumi.docker.users import DockerUsersKind

from earshot.errors import EarshotError
from earshot.listeners.terms import Mechanism
from earshot.validation.cluster_state import ClusterState, Partition, Quorum
from earshot.validation.wire import ExchangeError
from tests.components.called import Called
from tests.doubles.naps import Naps
from tests.raised import raised

NETWORK = "earshot-s"


OWN_ID = "5L6g3nShT-eMCtK-X86swQ"


def place(
    id: int, broker: bool = True, voter: bool = True, plaintext: bool = True
) -> ContainerAddress:
    endpoint = InnerListener("127.0.0.1", 19092, plaintext)
    return ContainerAddress(id, f"kafka-{id}", NETWORK, "local", broker, voter, endpoint)


class FakeEngine:
    """An engine with the containers of three brokers, as far as it is asked about them."""

    def __init__(self) -> None:
        self.containers = {f"id-{id}": self._container(id) for id in (1, 2, 3)}
        self.log = b"one\n\tat a.b.C(D.java)\ntwo\n"
        self.log_since_start = b""
        self.done: list[str] = []
        self.refuses_to_start = False
        self.clock = "2026-01-01T01:00:00.123456789Z"
        self.api = SimpleNamespace(
            info=lambda: {"SystemTime": self.clock},
            inspect_container=self._inspect,
            start=self._start,
            stop=lambda id, timeout: self.done.append(f"stop {id} {timeout}"),
            unpause=lambda id: self._set(id, "unpause", Paused=False),
            connect_container_to_network=self._connect,
            logs=self._logs,
        )

    def _container(self, id: int) -> dict[str, Any]:
        state = {
            "Status": "running", "Running": True, "Restarting": False, "Paused": False,
            "ExitCode": 0, "Error": "",
            "StartedAt": "2026-01-01T00:00:00Z", "FinishedAt": "2025-12-31T23:59:59.123456789Z",
        }  # fmt: skip
        return {
            "Id": f"id-{id}",
            "Name": f"/kafka-{id}",
            "State": state,
            "RestartCount": 0,
            "Config": {"Labels": {labels.NODE: str(id)}},
            "NetworkSettings": {"Networks": {NETWORK: {}}},
        }

    def _logs(
        self, id: str, tail: int, since: float | None = None, until: float | None = None
    ) -> bytes:
        return self.log + (self.log_since_start if until is None else b"")

    def kill(self, id: str, code: int = 137) -> None:
        self.containers[id]["State"] |= {"Status": "exited", "Running": False, "ExitCode": code}

    def _inspect(self, id: str) -> dict[str, Any]:
        for found in self.containers.values():
            if id in (found["Id"], found["Name"].lstrip("/")):
                return found
        raise NotFound(f"no {id}")

    def _start(self, id: str) -> None:
        if self.refuses_to_start:
            raise APIError("500", explanation="port is already allocated")
        self._set(id, "start", Running=True, StartedAt="2026-01-01T00:01:00Z")

    def _connect(self, id: str, network: str, aliases: list[str]) -> None:
        self.done.append(f"connect {id} {network} {aliases}")
        self._inspect(id)["NetworkSettings"]["Networks"][network] = {}

    def _set(self, id: str, what: str, **state: Any) -> None:
        self.done.append(f"{what} {id}")
        self._inspect(id)["State"] |= state


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def engines(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> Engines:
    """Every address leads to the one engine."""

    @contextmanager
    def connected(_where: object) -> Iterator[FakeEngine]:
        yield engine

    monkeypatch.setattr("earshot_pulumi.docker.container_address.connect", connected)
    monkeypatch.setattr(driver, "POLL", 0)
    return Engines()


def all_well(*ids: int) -> ClusterState:
    return ClusterState((1, 2, 3), (Partition("t", 0, 1, (1, 2, 3), ids),))


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets what brokers answer, one answer after the other, the last one for good."""

    def set_answers(*answers: ClusterState | ExchangeError, quorum: Quorum | None = None) -> None:
        left = list(answers)

        def state(*_: object) -> ClusterState:
            answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(answer, ExchangeError):
                raise answer
            return answer

        known = quorum or Quorum(1, {1: 5000, 2: 5000, 3: 5000})
        monkeypatch.setattr(inner_listener, "state", state)
        monkeypatch.setattr(inner_listener, "quorum", lambda *_: known)

    return set_answers


def wait(engines: Engines, *places: ContainerAddress, **options: Any) -> None:
    nodes = [(item, f"id-{item.node_id}") for item in places]
    readiness.wait_for(engines, nodes, [place(1)], OWN_ID, **options)


def test_what_is_well_is_left_alone(engines: Engines, engine: FakeEngine) -> None:
    readiness.repair(engines, place(1), "id-1")
    assert engine.done == []


def test_a_killed_container_is_started(engines: Engines, engine: FakeEngine) -> None:
    engine.kill("id-1")
    before = incarnation(engine.containers["id-1"])
    assert incarnation(readiness.repair(engines, place(1), "id-1")) != before
    assert engine.done == ["start id-1"]


def test_a_disconnected_and_paused_one_is_brought_back(
    engines: Engines, engine: FakeEngine
) -> None:
    engine.containers["id-2"]["NetworkSettings"]["Networks"] = {"bridge": {}}
    engine.containers["id-2"]["State"]["Paused"] = True
    readiness.repair(engines, place(2), "id-2")
    assert engine.done == ["connect id-2 earshot-s ['kafka-2']", "unpause id-2"]


def test_a_removed_one_is_named_with_what_to_do(engines: Engines, engine: FakeEngine) -> None:
    del engine.containers["id-1"]
    with pytest.raises(EarshotError, match="container kafka-1 on Docker host local: is gone") as it:
        readiness.repair(engines, place(1), "id-1")
    assert "pulumi up --refresh" in str(it.value)


def test_an_engine_that_is_gone_is_named_with_its_address(
    engines: Engines, engine: FakeEngine
) -> None:
    def refuse(_id: str) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    engine.api.inspect_container = refuse
    there = replace(place(1), engine="unix:///run/other.sock")
    with pytest.raises(EarshotError, match="kafka-1 on Docker host local: its engine at") as it:
        readiness.repair(engines, there, "id-1")
    assert "at unix:///run/other.sock fails (Connection refused)" in str(it.value)
    assert "see that the engine runs" in str(it.value)


def test_why_a_container_cannot_be_started_is_the_engines_word(
    engines: Engines, engine: FakeEngine
) -> None:
    engine.kill("id-1")
    engine.refuses_to_start = True
    with pytest.raises(EarshotError, match="cannot be started: port is already allocated"):
        readiness.repair(engines, place(1), "id-1")


def test_a_broker_is_ready_when_it_is_in_sync(
    engines: Engines, say: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[str] = []
    monkeypatch.setattr(driver, "SAY_SECONDS", -1.0)
    say(ExchangeError("refused", "it refused the connection"), all_well(1, 3), all_well(1, 2, 3))
    wait(engines, place(2), progress=reported.append)
    assert [text.rpartition(",")[0] for text in reported] == [
        "waiting for kafka-2 (not listening yet)",
        "waiting for kafka-2 (1 partition(s) not in sync)",
    ]


def test_while_one_is_not_ready_the_others_are_not_asked_again(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def hindrance(driver: ContainerDriver) -> str:
        asked.append(int(driver.name.removeprefix("kafka-")))
        return "not listening yet" if len(asked) < 6 else ""

    monkeypatch.setattr(ContainerDriver, "_hindrance", hindrance)
    wait(engines, place(1), place(2))
    assert asked == [1, 2, 1, 1, 1, 1, 2]


def test_a_broker_that_does_not_know_itself_is_not_ready(
    engines: Engines, say: Callable[..., None]
) -> None:
    say(ClusterState((1, 3), ()))
    with pytest.raises(EarshotError, match="does not count itself among the brokers"):
        wait(engines, place(2), deadline=-1)


def test_only_the_whole_waits_for_partitions_without_a_leader(
    engines: Engines, say: Callable[..., None]
) -> None:
    say(ClusterState((1, 2), (Partition("t", 0, -1, (2, 3), (3,)),)))
    wait(engines, place(2))
    with pytest.raises(EarshotError, match="not in sync"):
        wait(engines, place(2), whole=True, deadline=-1)


@pytest.mark.parametrize("caught_up", [{1: 9000, 2: 5999}, {1: 9000}, {2: 9000}])
def test_a_voter_has_caught_up_with_its_leader(
    engines: Engines, say: Callable[..., None], caught_up: dict[int, int]
) -> None:
    say(all_well(1, 2, 3), quorum=Quorum(1, caught_up))
    with pytest.raises(EarshotError, match="behind the quorum's leader"):
        wait(engines, place(2), deadline=-1)
    wait(engines, place(2, voter=False))


def test_a_late_broker_is_named_with_its_last_words(
    engines: Engines, say: Callable[..., None]
) -> None:
    say(ExchangeError("disconnected", "nothing came back"))
    error = raised(EarshotError, wait, engines, place(1), place(3), deadline=-1)
    text = str(error)
    assert "kafka-1, kafka-3: not ready after -1 s" in text
    assert "container kafka-3 on Docker host local: nothing came back" in text
    assert "    one\n    two" in text and "D.java" not in text


@pytest.mark.parametrize(
    ("happens", "words"),
    [
        (lambda it: it["State"].update(Running=False, ExitCode=1), "ended with status 1"),
        (lambda it: it.update(RestartCount=3), "restarts in a loop"),
        (lambda it: it["State"].update(Paused=True), "was paused"),
        (lambda it: it["NetworkSettings"].update(Networks={}), "was taken off its network"),
    ],
)
def test_what_befalls_a_container_ends_the_wait(
    engines: Engines,
    engine: FakeEngine,
    say: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    happens: Callable[[dict[str, Any]], None],
    words: str,
) -> None:
    say(ExchangeError("disconnected", "nothing came back"))
    monkeypatch.setattr("time.sleep", Naps(lambda: happens(engine.containers["id-2"])))
    with pytest.raises(EarshotError, match=words) as caught:
        wait(engines, place(2))
    assert "the last lines of its log:\n    one\n    two" in str(caught.value)


def test_the_cause_that_kafka_gives_comes_first(engines: Engines, engine: FakeEngine) -> None:
    engine.log = (
        b"[2026-01-01 00:00:00,000] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)\n"
        b"org.apache.kafka.common.config.ConfigException: Invalid value abc\n\tat a.b.C(D.java)\n"
        + b"[2026-01-01 00:00:01,000] INFO shutting down (kafka.server.BrokerServer)\n"
        * 40
    )
    engine.kill("id-2", code=1)
    assert str(raised(EarshotError, wait, engines, place(2))) == (
        "container kafka-2 on Docker host local: ended with status 1: ConfigException: Invalid "
        "value abc\n  (`docker logs id-2` has the whole)\n  fix: take the change back in "
        "the stack's file, or change what the log names, then run the same command again"
    )


def test_a_container_that_is_killed_to_be_removed_is_said_to_be_gone(
    engines: Engines, engine: FakeEngine, say: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    say(ExchangeError("disconnected", "nothing came back"))
    states = iter(("running", "removing"))

    def meanwhile() -> None:
        if (status := next(states, None)) is None:
            engine.containers.pop("id-2", None)
        else:
            found = engine.containers["id-2"]["State"]
            found.update(Status=status, Running=status == "running", ExitCode=137)

    monkeypatch.setattr("time.sleep", Naps(meanwhile))
    with pytest.raises(EarshotError, match="is gone; it was removed by hand"):
        wait(engines, place(2))


@pytest.mark.parametrize("restarting", [True, False])
def test_a_loop_is_told_by_how_it_ended_and_not_by_how_it_begins_anew(
    engines: Engines,
    engine: FakeEngine,
    say: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    restarting: bool,
) -> None:
    say(ExchangeError("disconnected", "nothing came back"))
    engine.log_since_start = b"three\n"
    found = engine.containers["id-2"]
    state = {"Restarting": restarting, "Running": not restarting, "ExitCode": 3 * restarting}
    monkeypatch.setattr("time.sleep", Naps(lambda: found.update(RestartCount=3)))
    found["State"] |= state
    with pytest.raises(EarshotError, match="restarts in a loop") as caught:
        wait(engines, place(2))
    ended = ["the last time with status 3"] if restarting else []
    assert re.findall(r"the last time.*status \d", str(caught.value)) == ended
    assert "two" in str(caught.value) and "three" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        (b"java.io.IOException: No space left on device\n", "make room there"),
        (b"InternalError: a fault occurred in an unsafe memory access operation\n", "make room"),
        (b"ERROR Exiting Kafka due to fatal exception\n", "change what the log names"),
    ],
)
def test_a_full_disk_is_told_by_its_signs(
    engines: Engines, engine: FakeEngine, line: bytes, remedy: str
) -> None:
    engine.log += line
    engine.kill("id-2", code=1)
    with pytest.raises(EarshotError, match="ended with status 1") as caught:
        wait(engines, place(2))
    assert remedy in str(caught.value)


def test_an_engine_that_is_about_to_stop_is_blamed_for_what_it_ends(
    engines: Engines, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines.of(place(2))

    def refuse(_where: object) -> None:
        raise EarshotError("Docker engine at x", observed="does not answer")

    engine.kill("id-2", code=143)
    monkeypatch.setattr("earshot_pulumi.docker.container_address.connect", refuse)
    with pytest.raises(EarshotError, match="Docker engine at x: does not answer"):
        wait(engines, place(2))


def test_restarts_before_the_wait_do_not_count(
    engines: Engines, engine: FakeEngine, say: Callable[..., None]
) -> None:
    engine.containers["id-2"]["RestartCount"] = 9
    say(all_well(1, 2, 3))
    wait(engines, place(2))


@pytest.mark.parametrize(("alive", "runs"), [(3, True), (2, True), (1, False), (0, False)])
def test_a_majority_of_the_voters(
    engines: Engines, engine: FakeEngine, alive: int, runs: bool
) -> None:
    for id in range(alive + 1, 4):
        engine.kill(f"id-{id}")
    assert readiness.majority_runs(engines, [place(id) for id in (1, 2, 3)]) is runs


def props(whole: bool = False, **changes: Any) -> dict[str, Any]:
    everybody = [place(id).to_props() for id in (1, 2, 3)]
    nodes = [{"place": it, "container": f"id-{it['node_id']}"} for it in everybody]
    return {
        "nodes": nodes if whole else nodes[:1],
        "voters": everybody,
        "tellers": everybody,
        "incarnations": {},
        "cluster_id": OWN_ID,
        "whole": whole,
        "incarnation": None,
        "state_dir": ".earshot/stacks/s",
        **changes,
    }


@pytest.fixture
def waits(engines: Engines, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many nodes each wait of the provider was for."""
    found: list[int] = []
    monkeypatch.setattr(kinds, "wait_for", lambda _, nodes, *__, **___: found.append(len(nodes)))
    return found


def test_a_first_start_waits_for_the_whole_only(waits: list[int]) -> None:
    provider = Called(DockerReadinessKind())
    first = provider.create(props())
    assert first.outs is not None
    assert first.outs["incarnation"] == "id-1@2026-01-01T00:00:00Z"
    assert waits == []
    provider.create(props(whole=True))
    assert waits == [3]


def test_a_change_waits_where_there_is_a_quorum(waits: list[int], engine: FakeEngine) -> None:
    provider = Called(DockerReadinessKind())
    provider.update(props(), props())
    assert waits == [1]
    engine.kill("id-2")
    engine.kill("id-3")
    provider.update(props(), props())
    assert waits == [1], "a lone voter of three never answers"


def test_lost_users_are_given_again_with_what_is_known_of_users(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[Any, int]] = []
    monkeypatch.setattr(kinds, "wait_for", lambda *_, reset_passwords, **__: reset_passwords(1))
    monkeypatch.setattr(
        DockerUsersKind,
        "reset_passwords",
        lambda _, users, broker, __: given.append((users, broker)),
    )
    users = {"root": "kafka", "logins": [], "mechanism": "SCRAM-SHA-256"}
    Called(DockerReadinessKind()).update(props(), props(users=users))
    assert given == [(users, 1)]


def test_an_update_is_due_when_a_container_is_not_as_it_was(
    waits: list[int], engine: FakeEngine
) -> None:
    provider = Called(DockerReadinessKind())
    olds = provider.create(props()).outs
    assert olds is not None
    assert provider.differs(olds, props()) is False
    assert provider.differs(olds, props(tellers=[])) is True
    engine.kill("id-1")
    assert provider.differs(olds, props()) is True
    olds = provider.update(olds, props()).outs
    assert olds is not None
    assert provider.differs(olds, props()) is False
    engine.containers["id-1"]["State"]["StartedAt"] = "2026-01-02T00:00:00Z"
    assert provider.differs(olds, props()) is True, "the engine has restarted it"
    del engine.containers["id-1"]
    assert provider.differs(olds, props()) is True


def test_a_broker_takes_leave_of_a_cluster_that_is_there(
    waits: list[int], engine: FakeEngine
) -> None:
    provider = Called(DockerReadinessKind())
    provider.delete(props(whole=True))
    provider.delete(props())
    engine.kill("id-2")
    engine.kill("id-3")
    provider.delete(props())
    assert engine.done == ["stop id-1 60", "stop id-1 3"]


def test_a_broker_of_another_cluster_is_not_ready(
    engines: Engines, say: Callable[..., None]
) -> None:
    known = all_well(1, 2, 3)
    say(replace(known, cluster_id="other"))
    assert f"local: answers as a broker of cluster other, not of {OWN_ID}; the last" in str(
        raised(EarshotError, wait, engines, place(2), deadline=-1)
    )
    for id in ("", OWN_ID):
        say(replace(known, cluster_id=id))
        wait(engines, place(2), deadline=-1)


def test_what_ended_is_told_with_the_engine_s_own_word(
    engines: Engines, engine: FakeEngine
) -> None:
    engine.log = b"\n\t... 3 more\n\tat x.Y\n"
    engine.kill("id-2", code=127)
    engine.containers["id-2"]["State"]["Error"] = "no such program"
    assert str(raised(EarshotError, wait, engines, place(2))) == (
        "container kafka-2 on Docker host local: ended with status 127 (no such program); the "
        "last lines of its log:\n    (it wrote none)\n  fix: take the change back in the "
        "stack's file, or change what the log names, then run the same command again"
    )


def test_two_restarts_are_no_loop(
    engines: Engines, engine: FakeEngine, say: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    say(ExchangeError("disconnected", "nothing came back"), all_well(1, 2, 3))
    found = engine.containers["id-2"]
    monkeypatch.setattr("time.sleep", Naps(lambda: found.update(RestartCount=2)))
    wait(engines, place(2))
    assert found["RestartCount"] == 2


def test_a_paused_container_is_not_asked_why_it_ended(engines: Engines, engine: FakeEngine) -> None:
    engine.log = b"org.apache.kafka.common.KafkaException: of an earlier start\n"
    engine.containers["id-2"]["State"]["Paused"] = True
    assert raised(EarshotError, wait, engines, place(2)).observed == (
        "was paused by hand; the last lines of its log:\n"
        "    org.apache.kafka.common.KafkaException: of an earlier start"
    )


def test_where_no_listener_is_plaintext_the_health_check_tells(
    engines: Engines, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[Any] = [
        OSError("stopped"),
        (1, b"bash: connect: Connection refused"),
        (2, b"x" * 81),
        (124, b""),
        (0, b""),
    ]

    def exec_run(_command: list[str]) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    found = SimpleNamespace(exec_run=exec_run)
    monkeypatch.setattr(engine, "containers", SimpleNamespace(get=lambda _: found), raising=False)
    monkeypatch.setattr(readiness, "inspected", lambda *_: {"RestartCount": 0})
    closed = place(2, voter=False, plaintext=False)
    known: Any = (SimpleNamespace(), OWN_ID, True, print, None)
    node = ContainerDriver(engines, closed, "id-2", *known)
    assert [node.lacks() for _ in range(5)] == [
        "stopped",
        "not listening yet",
        f"{'x' * 77}...",
        "its health check ends with status 124",
        "",
    ]


def test_a_quorum_is_asked_of_another_broker_where_one_does_not_answer(
    engines: Engines, say: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    say(all_well(1, 2, 3))
    asked: list[str] = []
    failures: list[Exception] = [
        ExchangeError("disconnected", "not yet"),
        EarshotError("engine", observed="gone"),
    ]

    def quorum(_client: object, container: str, _endpoint: InnerListener) -> Quorum:
        asked.append(container)
        if failures:
            raise failures.pop(0)
        return Quorum(1, {1: 9000, 2: 6000})

    monkeypatch.setattr(inner_listener, "quorum", quorum)
    tellers = [place(1), place(2), place(3)]
    readiness.wait_for(engines, [(place(2), "id-2")], tellers, OWN_ID, deadline=-1)
    assert asked == ["kafka-2", "kafka-1", "kafka-3"], "itself first"
    failures += [ExchangeError("disconnected", "not yet")] * 3
    with pytest.raises(EarshotError, match="local: not yet; the last lines"):
        readiness.wait_for(engines, [(place(2), "id-2")], tellers, OWN_ID, deadline=-1)


def test_one_answer_about_the_quorum_is_for_all_nodes(
    engines: Engines, say: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    say(all_well(1, 2, 3))
    asked: list[str] = []

    def quorum(_client: object, container: str, _endpoint: InnerListener) -> Quorum:
        asked.append(container)
        return Quorum(1, {1: 9000, 2: 9000, 3: 9000 if len(asked) > 1 else 0})

    monkeypatch.setattr(inner_listener, "quorum", quorum)
    wait(engines, place(1), place(2), place(3))
    assert asked == ["kafka-1", "kafka-1"], "once in each round"


def test_a_voter_is_ready_where_no_broker_can_be_asked_about_the_quorum(
    engines: Engines, say: Callable[..., None]
) -> None:
    say(all_well(1, 2, 3))
    readiness.wait_for(engines, [(place(2), "id-2")], [], OWN_ID, deadline=-1)


def test_a_container_that_is_gone_is_no_part_of_a_majority(
    engines: Engines, engine: FakeEngine
) -> None:
    del engine.containers["id-2"], engine.containers["id-3"]
    assert readiness.majority_runs(engines, [place(id) for id in (1, 2, 3)]) is False
    assert readiness.majority_runs(engines, [place(1), place(2)]) is False, "half is no majority"
    assert readiness.majority_runs(engines, [place(1)]) is True


def serving(id: int, *clients: InnerListener) -> ContainerAddress:
    return replace(place(id), clients=clients)


PLAIN = InnerListener("127.0.0.1", 9092, True, name="HOST")
LOGINS = InnerListener(
    "127.0.0.1",
    9094,
    False,
    NodeKeys("/state/kafka", "node-1", "localhost"),
    "EXTERNAL",
    (Mechanism.SCRAM_SHA_512,),
)
UNKNOWN = ExchangeError("authentication", "invalid credentials")


@pytest.fixture
def accepting(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[ExchangeError | None]]:
    """What a login meets, by container, in turn, the last one for good."""
    found: dict[str, list[ExchangeError | None]] = {}

    def log_in(_client: object, container: str, listener: InnerListener) -> None:
        assert listener is LOGINS
        left = found.setdefault(container, [None])
        answer = left.pop(0) if len(left) > 1 else left[0]
        if answer is not None:
            raise answer

    monkeypatch.setattr(inner_listener, "log_in", log_in)
    return found


def waited(engines: Engines, *places: ContainerAddress, **options: Any) -> None:
    nodes = [(places[0], f"id-{places[0].node_id}")]
    readiness.wait_for(engines, nodes, places, OWN_ID, **options)


def test_a_broker_is_ready_when_it_serves_clients(
    engines: Engines,
    accepting: dict[str, list[ExchangeError | None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers: dict[int, list[ClusterState | ExchangeError]] = {
        19092: [all_well(1, 2, 3)],
        9092: [ExchangeError("refused", "it refused the connection"), all_well(1)],
    }

    def state(_client: object, _container: str, at: InnerListener) -> ClusterState:
        left = answers[at.port]
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, ExchangeError):
            raise answer
        return answer

    monkeypatch.setattr(inner_listener, "state", state)
    monkeypatch.setattr(inner_listener, "quorum", lambda *_: Quorum(1, {1: 5000}))
    monkeypatch.setattr(driver, "SAY_SECONDS", -1.0)
    accepting["id-1"] = [ExchangeError("disconnected", "the broker closed the connection"), None]
    reported: list[str] = []
    waited(engines, serving(1, PLAIN, LOGINS), progress=reported.append)
    assert [text.rpartition(",")[0] for text in reported] == [
        "waiting for kafka-1 (HOST: not listening yet)",
        "waiting for kafka-1 (EXTERNAL: the broker closed the connection)",
    ]


def test_users_that_one_broker_has_lost_get_their_passwords_again_once(
    engines: Engines, say: Callable[..., None], accepting: dict[str, list[ExchangeError | None]]
) -> None:
    say(all_well(1, 2, 3))
    accepting["id-1"] = [UNKNOWN, UNKNOWN, None]
    given: list[int] = []
    reported: list[str] = []
    both = serving(1, LOGINS), serving(2, LOGINS)
    waited(engines, *both, progress=reported.append, reset_passwords=given.append)
    assert given == [1]
    assert reported == ["kafka-1 has lost its users: earshot sets their passwords again"]


def test_a_broker_that_gives_no_answer_does_not_say_that_users_are_unknown(
    engines: Engines,
    engine: FakeEngine,
    say: Callable[..., None],
    accepting: dict[str, list[ExchangeError | None]],
) -> None:
    say(all_well(1, 2, 3))
    both = serving(1, LOGINS), serving(2, LOGINS)
    accepting |= {
        "id-1": [UNKNOWN],
        "kafka-2": [ExchangeError("disconnected", "nothing came back")],
    }
    with pytest.raises(EarshotError, match="refuses a user, and another broker gives no answer"):
        waited(engines, *both, deadline=-1)
    engine.kill("id-2")
    waited(engines, *both, deadline=-1)  # users may be made by the end of the update
