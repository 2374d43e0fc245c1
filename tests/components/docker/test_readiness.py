"""What is repaired, what is waited for, and how a wait ends; engine and brokers are doubles."""

import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from earshot_pulumi import driver
from earshot_pulumi.docker import inner_listener, readiness
from earshot_pulumi.docker.container_address import ContainerAddress, Engines, incarnation
from earshot_pulumi.docker.inner_listener import InnerListener, NodeKeys
from earshot_pulumi.docker.kinds import DockerReadinessKind
from earshot_pulumi.docker.readiness import ContainerDriver, RunningCluster
from earshot_pulumi.docker.users import DockerUsersKind
from earshot_pulumi.properties import write

from earshot.errors import EarshotError
from earshot.listeners.terms import Mechanism
from earshot.validation.cluster_state import ClusterState, Partition, Quorum
from earshot.validation.wire import ExchangeError
from tests.components.called import Called
from tests.components.docker.container_engine import NETWORK, ContainerEngine
from tests.components.docker.stacks import OWN_ID
from tests.doubles.naps import Naps
from tests.raised import raised

Answer = ClusterState | ExchangeError
NO_ANSWER = ExchangeError("disconnected", "no answer arrived")
NOT_LISTENING = ExchangeError("refused", "it refused the connection")


def address(
    id: int,
    *clients: InnerListener,
    broker: bool = True,
    voter: bool = True,
    plaintext: bool = True,
) -> ContainerAddress:
    endpoint = InnerListener("127.0.0.1", 19092, plaintext)
    name = f"kafka-{id}"
    return ContainerAddress(id, name, NETWORK, "local", broker, voter, endpoint, clients=clients)


ALL = [address(id) for id in (1, 2, 3)]


def in_sync(*ids: int) -> ClusterState:
    """A cluster of three brokers, with one partition whose replicas on ``ids`` are in sync."""
    return ClusterState((1, 2, 3), (Partition("t", 0, 1, (1, 2, 3), ids),))


class Brokers:
    """The answers of brokers by port, one after the other, the last one for good."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: dict[int, list[Answer]] = {19092: [in_sync(1, 2, 3)]}
        self.quorum = Quorum(1, {1: 5000, 2: 5000, 3: 5000})
        monkeypatch.setattr(inner_listener, "state", self._state)
        monkeypatch.setattr(inner_listener, "quorum", lambda *_: self.quorum)

    def answer(self, *answers: Answer) -> None:
        self.answers[19092] = list(answers)

    def _state(self, _client: object, _container: str, listener: InnerListener) -> ClusterState:
        answers = self.answers[listener.port]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, ExchangeError):
            raise answer
        return answer


@pytest.fixture
def engines(engine: ContainerEngine) -> Engines:
    return Engines()


@pytest.fixture
def brokers(engine: ContainerEngine, monkeypatch: pytest.MonkeyPatch) -> Brokers:
    return Brokers(monkeypatch)


def wait(*places: ContainerAddress, **options: Any) -> None:
    """Waits for the nodes at ``places``; broker 1 is asked about the quorum."""
    nodes = [(place, f"id-{place.node_id}") for place in places]
    RunningCluster(Engines(), options.pop("asked", ALL[:1]), OWN_ID, **options).wait_for(nodes)


@pytest.mark.parametrize(("change", "calls"), [
    (lambda container: None, []),
    (lambda container: container["State"].update(Status="exited", Running=False), ["start id-1"]),
    (lambda container: (container["NetworkSettings"].update(Networks={"bridge": {}}),
                        container["State"].update(Paused=True)),
     ["connect id-1 earshot-s ['kafka-1']", "unpause id-1"]),
], ids=["intact", "killed", "disconnected and paused"])  # fmt: skip
def test_a_container_gets_the_repairs_that_it_needs(
    engines: Engines,
    engine: ContainerEngine,
    change: Callable[[dict[str, Any]], object],
    calls: list[str],
) -> None:
    before = incarnation(engine.containers["id-1"])
    change(engine.containers["id-1"])
    after = incarnation(readiness.repair(engines, ALL[0], "id-1"))
    assert engine.calls == calls
    assert (after != before) is ("start id-1" in calls)


def test_a_container_that_cannot_be_repaired_is_named_with_the_cause_and_what_to_do(
    engines: Engines, engine: ContainerEngine
) -> None:
    engine.kill("id-1")
    engine.refuses_to_start = True
    error = raised(EarshotError, readiness.repair, engines, ALL[0], "id-1")
    assert "cannot be started: port is already allocated" in str(error)
    del engine.containers["id-1"]
    error = raised(EarshotError, readiness.repair, engines, ALL[0], "id-1")
    assert "container kafka-1 on Docker host local: was removed by hand" in str(error)
    assert "pulumi up --refresh" in str(error)

    def refuse(_id: str) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    engine.api.inspect_container = refuse
    elsewhere = replace(ALL[0], engine="unix:///run/other.sock")
    error = raised(EarshotError, readiness.repair, engines, elsewhere, "id-1")
    assert error.object == "container kafka-1 on Docker host local"
    assert error.observed == "its engine at unix:///run/other.sock fails (Connection refused)"
    assert "check that the engine runs" in error.remedy


def test_a_broker_is_ready_when_it_is_in_sync(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(driver, "SAY_SECONDS", -1.0)
    brokers.answer(NOT_LISTENING, in_sync(1, 3), in_sync(1, 2, 3))
    wait(ALL[1], say=lines.append)
    assert [line.rpartition(",")[0] for line in lines] == [
        "waiting for kafka-2 (not listening yet)",
        "waiting for kafka-2 (1 partition(s) not in sync)",
    ]


def test_a_broker_that_does_not_know_itself_is_not_ready(brokers: Brokers) -> None:
    brokers.answer(ClusterState((1, 3), ()))
    with pytest.raises(EarshotError, match="does not list itself among the brokers"):
        wait(ALL[1], deadline=-1)


def test_a_broker_of_another_cluster_is_not_ready(brokers: Brokers) -> None:
    brokers.answer(replace(in_sync(1, 2, 3), cluster_id="other"))
    assert f"local: answers as a broker of cluster other, not of {OWN_ID}; the last" in str(
        raised(EarshotError, wait, ALL[1], deadline=-1)
    )
    for id in ("", OWN_ID):
        brokers.answer(replace(in_sync(1, 2, 3), cluster_id=id))
        wait(ALL[1], deadline=-1)


def test_only_the_whole_waits_for_partitions_without_a_leader(brokers: Brokers) -> None:
    brokers.answer(ClusterState((1, 2), (Partition("t", 0, -1, (2, 3), (3,)),)))
    wait(ALL[1])
    with pytest.raises(EarshotError, match="not in sync"):
        wait(ALL[1], whole=True, deadline=-1)


@pytest.mark.parametrize("caught_up", [{1: 9000, 2: 5999}, {1: 9000}, {2: 9000}])
def test_a_voter_has_caught_up_with_its_leader(brokers: Brokers, caught_up: dict[int, int]) -> None:
    brokers.quorum = Quorum(1, caught_up)
    with pytest.raises(EarshotError, match="behind the quorum's leader"):
        wait(ALL[1], deadline=-1)
    wait(address(2, voter=False))
    wait(ALL[1], asked=[], deadline=-1)  # no broker can be asked about the quorum


def test_a_late_broker_is_named_with_its_last_words(brokers: Brokers) -> None:
    brokers.answer(NO_ANSWER)
    text = str(raised(EarshotError, wait, ALL[0], ALL[2], deadline=-1))
    assert "kafka-1, kafka-3: not ready after -1 s" in text
    assert "container kafka-3 on Docker host local: no answer arrived" in text
    assert "    one\n    two" in text and "D.java" not in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda it: it["State"].update(Running=False, ExitCode=1), "ended with status 1"),
        (lambda it: it.update(RestartCount=3), "restarts in a loop"),
        (lambda it: it["State"].update(Paused=True), "was paused"),
        (lambda it: it["NetworkSettings"].update(Networks={}), "was disconnected from its network"),
    ],
)
def test_a_change_of_the_container_ends_the_wait(
    engine: ContainerEngine,
    brokers: Brokers,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[dict[str, Any]], None],
    words: str,
) -> None:
    brokers.answer(NO_ANSWER)
    monkeypatch.setattr("time.sleep", Naps(lambda: change(engine.containers["id-2"])))
    with pytest.raises(EarshotError, match=words) as caught:
        wait(ALL[1])
    assert "the last lines of its log:\n    one\n    two" in str(caught.value)


def test_the_cause_that_kafka_gives_comes_first(engine: ContainerEngine) -> None:
    engine.log = (
        b"[2026-01-01 00:00:00,000] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)\n"
        b"org.apache.kafka.common.config.ConfigException: Invalid value abc\n\tat a.b.C(D.java)\n"
        + b"[2026-01-01 00:00:01,000] INFO shutting down (kafka.server.BrokerServer)\n"
        * 40
    )
    engine.kill("id-2", code=1)
    assert str(raised(EarshotError, wait, ALL[1])) == (
        "container kafka-2 on Docker host local: ended with status 1: ConfigException: Invalid "
        "value abc\n  (`docker logs id-2` has the whole log)\n  fix: revert the change in "
        "the stack's file, or fix the cause in the log, then run the same command again"
    )


def test_a_container_that_is_killed_to_be_removed_is_reported_as_gone(
    engine: ContainerEngine, brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers.answer(NO_ANSWER)
    statuses = iter(("running", "removing"))

    def meanwhile() -> None:
        if (status := next(statuses, None)) is None:
            engine.containers.pop("id-2", None)
        else:
            state = {"Status": status, "Running": status == "running", "ExitCode": 137}
            engine.containers["id-2"]["State"] |= state

    monkeypatch.setattr("time.sleep", Naps(meanwhile))
    with pytest.raises(EarshotError, match="was removed by hand"):
        wait(ALL[1])


@pytest.mark.parametrize("restarting", [True, False])
def test_a_loop_is_reported_with_how_the_container_ended_and_not_how_it_starts_again(
    engine: ContainerEngine,
    brokers: Brokers,
    monkeypatch: pytest.MonkeyPatch,
    restarting: bool,
) -> None:
    brokers.answer(NO_ANSWER)
    engine.log_since_start = b"three\n"
    container = engine.containers["id-2"]
    monkeypatch.setattr("time.sleep", Naps(lambda: container.update(RestartCount=3)))
    container["State"] |= {
        "Restarting": restarting, "Running": not restarting, "ExitCode": 3 * restarting
    }  # fmt: skip
    with pytest.raises(EarshotError, match="restarts in a loop") as caught:
        wait(ALL[1])
    ended = ["the last time with status 3"] if restarting else []
    assert re.findall(r"the last time.*status \d", str(caught.value)) == ended
    assert "two" in str(caught.value) and "three" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        (b"java.io.IOException: No space left on device\n", "free space there"),
        (b"InternalError: a fault occurred in an unsafe memory access operation\n", "free space"),
        (b"ERROR Exiting Kafka due to fatal exception\n", "fix the cause in the log"),
    ],
)
def test_a_full_disk_is_known_by_its_signs(
    engine: ContainerEngine, line: bytes, remedy: str
) -> None:
    engine.log += line
    engine.kill("id-2", code=1)
    with pytest.raises(EarshotError, match="ended with status 1") as caught:
        wait(ALL[1])
    assert remedy in str(caught.value)


def test_an_engine_that_is_about_to_stop_is_blamed_for_what_it_ends(
    engines: Engines, engine: ContainerEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines.of(ALL[1])

    def refuse(_where: object) -> None:
        raise EarshotError("Docker engine at x", observed="does not answer")

    engine.kill("id-2", code=143)
    monkeypatch.setattr("earshot_pulumi.docker.container_address.connect", refuse)
    with pytest.raises(EarshotError, match="Docker engine at x: does not answer"):
        RunningCluster(engines, ALL[:1], OWN_ID).wait_for([(ALL[1], "id-2")])


def test_restarts_before_the_wait_and_two_during_it_are_no_loop(
    engine: ContainerEngine, brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    container = engine.containers["id-2"]
    container["RestartCount"] = 9
    brokers.answer(NO_ANSWER, in_sync(1, 2, 3))
    monkeypatch.setattr("time.sleep", Naps(lambda: container.update(RestartCount=11)))
    wait(ALL[1])
    assert container["RestartCount"] == 11


def test_the_end_of_a_container_is_reported_with_the_engine_s_own_word(
    engine: ContainerEngine,
) -> None:
    engine.log = b"\n\t... 3 more\n\tat x.Y\n"
    engine.kill("id-2", code=127)
    engine.containers["id-2"]["State"]["Error"] = "no such program"
    assert str(raised(EarshotError, wait, ALL[1])) == (
        "container kafka-2 on Docker host local: ended with status 127 (no such program); the "
        "last lines of its log:\n    (it wrote none)\n  fix: revert the change in the "
        "stack's file, or fix the cause in the log, then run the same command again"
    )


def test_a_paused_container_is_not_asked_why_it_ended(engine: ContainerEngine) -> None:
    engine.log = b"org.apache.kafka.common.KafkaException: of an earlier start\n"
    engine.containers["id-2"]["State"]["Paused"] = True
    assert raised(EarshotError, wait, ALL[1]).observed == (
        "was paused by hand; the last lines of its log:\n"
        "    org.apache.kafka.common.KafkaException: of an earlier start"
    )


@pytest.mark.parametrize(
    ("voters", "dead", "gone", "runs"),
    [
        (3, [], [], True),
        (3, [3], [], True),
        (3, [2, 3], [], False),
        (3, [1, 2, 3], [], False),
        (3, [], [2, 3], False),
        (2, [], [2], False),
        (1, [], [2, 3], True),
    ],
)
def test_a_majority_of_the_voters(
    engine: ContainerEngine, voters: int, dead: list[int], gone: list[int], runs: bool
) -> None:
    for id in dead:
        engine.kill(f"id-{id}")
    for id in gone:
        del engine.containers[f"id-{id}"]
    assert readiness.majority_runs(Engines(), ALL[:voters]) is runs


def props(whole: bool = False, **changes: Any) -> dict[str, Any]:
    places = [write(place) for place in ALL]
    nodes = [{"place": place, "container": f"id-{place['node_id']}"} for place in places]
    return {
        "nodes": nodes if whole else nodes[:1],
        "voters": places,
        "tellers": places,
        "incarnations": {},
        "cluster_id": OWN_ID,
        "whole": whole,
        "incarnation": None,
        "state_dir": ".earshot/stacks/s",
        **changes,
    }


@pytest.fixture
def waits(engine: ContainerEngine, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of nodes of each wait of the kind."""
    counts: list[int] = []
    monkeypatch.setattr(RunningCluster, "wait_for", lambda _, nodes: counts.append(len(nodes)))
    return counts


KIND = Called(DockerReadinessKind())


def test_a_first_start_waits_for_the_whole_only(waits: list[int]) -> None:
    assert KIND.create(props()).outs["incarnation"] == "id-1@2026-01-01T00:00:00Z"
    assert waits == []
    KIND.create(props(whole=True))
    assert waits == [3]


def test_a_change_waits_if_there_is_a_quorum(waits: list[int], engine: ContainerEngine) -> None:
    KIND.update(props(), props())
    assert waits == [1]
    engine.kill("id-2")
    engine.kill("id-3")
    KIND.update(props(), props())
    assert waits == [1], "a lone voter of three never answers"


@pytest.mark.parametrize("ignores_filters", [False, True])
def test_on_another_network_a_new_container_reaches_the_others(
    waits: list[int], engine: ContainerEngine, ignores_filters: bool
) -> None:
    """Those that run and have the former network are connected to the new one, too."""
    engine.ignores_filters = ignores_filters
    engine.containers["id-1"]["NetworkSettings"]["Networks"] = {"other": {}}
    engine.add("theirs", 3, name="theirs", deployment="another")
    engine.add("ended", 4)
    engine.kill("ended")
    place = {**write(ALL[0]), "network": "other"}
    KIND.update(props(), props(nodes=[{"place": place, "container": "id-1"}]))
    assert engine.calls == [f"connect id-{id} other ['kafka-{id}']" for id in (2, 3)]
    assert waits == [1]


@pytest.mark.usefixtures("engine")
def test_lost_passwords_are_set_again_with_the_inputs_about_users(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resets: list[tuple[Any, int]] = []

    def reset(_kind: object, users: Any, broker: int, _say: object) -> None:
        resets.append((users, broker))

    monkeypatch.setattr(RunningCluster, "wait_for", lambda cluster, _: cluster.reset_passwords(1))
    monkeypatch.setattr(DockerUsersKind, "reset_passwords", reset)
    users = {"root": "kafka", "logins": [], "mechanism": "SCRAM-SHA-256"}
    KIND.update(props(), props(users=users))
    assert resets == [(users, 1)]


@pytest.mark.usefixtures("waits")
def test_an_update_is_due_when_the_container_has_changed(engine: ContainerEngine) -> None:
    olds = KIND.create(props()).outs
    assert KIND.differs(olds, props()) is False
    assert KIND.differs(olds, props(tellers=[])) is True
    engine.kill("id-1")
    assert KIND.differs(olds, props()) is True
    olds = KIND.update(olds, props()).outs
    assert KIND.differs(olds, props()) is False
    engine.containers["id-1"]["State"]["StartedAt"] = "2026-01-02T00:00:00Z"
    assert KIND.differs(olds, props()) is True, "the engine has restarted it"
    del engine.containers["id-1"]
    assert KIND.differs(olds, props()) is True


@pytest.mark.usefixtures("waits")
def test_a_broker_takes_leave_of_a_cluster_that_is_there(engine: ContainerEngine) -> None:
    KIND.delete(props(whole=True))
    KIND.delete(props())
    engine.kill("id-2")
    engine.kill("id-3")
    KIND.delete(props())
    assert engine.calls == ["stop id-1 60", "stop id-1 3"]
    engine.api.inspect_container = lambda id: None
    KIND.delete(props())  # Pulumi reports what such an engine does not do


def test_if_no_listener_is_plaintext_the_health_check_decides(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    results: list[Any] = [
        OSError("stopped"),
        (1, b"bash: connect: Connection refused"),
        (2, b"x" * 81),
        (124, b""),
        (0, b""),
    ]

    def exec_run(_command: list[str]) -> Any:
        result = results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    container = SimpleNamespace(exec_run=exec_run)
    client = SimpleNamespace(containers=SimpleNamespace(get=lambda _: container))
    monkeypatch.setattr(Engines, "of", lambda *_: client)
    monkeypatch.setattr(readiness, "inspected", lambda *_: {"RestartCount": 0})
    closed = address(2, voter=False, plaintext=False)
    node = ContainerDriver(RunningCluster(engines, [], OWN_ID, True), closed, "id-2")
    assert [node.lacks() for _ in range(5)] == [
        "stopped",
        "not listening yet",
        f"{'x' * 77}...",
        "its health check ends with status 124",
        "",
    ]


def test_another_broker_is_asked_about_the_quorum_if_one_does_not_answer(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    wait(ALL[1], asked=ALL, deadline=-1)
    assert asked == ["kafka-2", "kafka-1", "kafka-3"], "itself first"
    failures += [ExchangeError("disconnected", "not yet")] * 3
    with pytest.raises(EarshotError, match="local: not yet; the last lines"):
        wait(ALL[1], asked=ALL, deadline=-1)


def test_one_answer_about_the_quorum_is_for_all_nodes(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def quorum(_client: object, container: str, _endpoint: InnerListener) -> Quorum:
        asked.append(container)
        return Quorum(1, {1: 9000, 2: 9000, 3: 9000 if len(asked) > 1 else 0})

    monkeypatch.setattr(inner_listener, "quorum", quorum)
    wait(*ALL)
    assert asked == ["kafka-1", "kafka-1"], "once in each round"


KEYS = NodeKeys("/state/kafka", "node-1", "localhost")
PLAIN = InnerListener("127.0.0.1", 9092, True, name="HOST")
LOGINS = InnerListener("127.0.0.1", 9094, False, KEYS, "EXTERNAL", (Mechanism.SCRAM_SHA_512,))
UNKNOWN_USER = ExchangeError("authentication", "invalid credentials")


@pytest.fixture
def logins(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> dict[str, list[ExchangeError | None]]:
    """The results of logins by container, in turn, the last one for good."""
    results: dict[str, list[ExchangeError | None]] = {}

    def log_in(_client: object, container: str, listener: InnerListener) -> None:
        assert listener is LOGINS
        left = results.setdefault(container, [None])
        result = left.pop(0) if len(left) > 1 else left[0]
        if result is not None:
            raise result

    monkeypatch.setattr(inner_listener, "log_in", log_in)
    return results


def wait_for_first(*places: ContainerAddress, **options: Any) -> None:
    """Waits for the node at the first of ``places``; all are asked about the quorum."""
    wait(places[0], asked=places, **options)


def test_a_broker_is_ready_when_it_serves_clients(
    brokers: Brokers,
    logins: dict[str, list[ExchangeError | None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    brokers.answers[9092] = [NOT_LISTENING, in_sync(1)]
    monkeypatch.setattr(driver, "SAY_SECONDS", -1.0)
    logins["id-1"] = [ExchangeError("disconnected", "the broker closed the connection"), None]
    lines: list[str] = []
    wait_for_first(address(1, PLAIN, LOGINS), say=lines.append)
    assert [line.rpartition(",")[0] for line in lines] == [
        "waiting for kafka-1 (HOST: not listening yet)",
        "waiting for kafka-1 (EXTERNAL: the broker closed the connection)",
    ]


def test_users_that_one_broker_has_lost_get_their_passwords_again_once(
    logins: dict[str, list[ExchangeError | None]],
) -> None:
    logins["id-1"] = [UNKNOWN_USER, UNKNOWN_USER, None]
    resets: list[int] = []
    lines: list[str] = []
    both = address(1, LOGINS), address(2, LOGINS)
    wait_for_first(*both, say=lines.append, reset_passwords=resets.append)
    assert resets == [1]
    assert lines == ["kafka-1 has lost its users: earshot sets their passwords again"]


def test_a_broker_that_gives_no_answer_does_not_say_that_users_are_unknown(
    engine: ContainerEngine, logins: dict[str, list[ExchangeError | None]]
) -> None:
    both = address(1, LOGINS), address(2, LOGINS)
    logins |= {"id-1": [UNKNOWN_USER], "kafka-2": [NO_ANSWER]}
    with pytest.raises(EarshotError, match="refuses a user, and another broker gives no answer"):
        wait_for_first(*both, deadline=-1)
    engine.kill("id-2")
    wait_for_first(*both, deadline=-1)  # users may be created by the end of the update


def test_long_texts_of_an_engine_are_shown_in_part() -> None:
    (line,) = readiness._last_lines("x" * 100_000).splitlines()
    assert len(line) < 1_100 and line.endswith("(100,000 characters)")
    ended = readiness.how_ended({"ExitCode": 1, "Error": "y" * 100_000})
    assert len(ended) < 1_100 and ended.endswith("(100,000 characters))")
