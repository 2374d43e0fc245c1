"""The wait for a new host's engine: that it answers, and why it does not."""

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.docker import engine_ready
from earshot_pulumi.docker.engine_ready import DockerEngineReadyKind
from earshot_pulumi.provider.kind import Interrupted, Operation

from earshot.certificates.authority import IssuedCertificate
from earshot.certificates.engines import EngineStore, for_engine, new_engines_authority
from earshot.errors import EarshotError
from tests.components.called import Called
from tests.doubles.closed_port import closed_port
from tests.doubles.dripping import dripping
from tests.doubles.tls_engine import ABOUT, ANSWERS, tls_engine
from tests.e2e.ports import free_ports
from tests.raised import raised

NOW = datetime.now(UTC)
PARAMETER = "/earshot/s-m/docker/a/report"
STARTED = 2000.0
PREPARED = '{"instance": "i-1", "state": "prepared", "detail": ""}'


@pytest.fixture
def authority() -> IssuedCertificate:
    return new_engines_authority("s-m", NOW)


class Clock:
    """Time that passes only while an operation waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self.meanwhile: list[Callable[[], object]] = []
        """Calls for the first wait, the second, ..."""

    def monotonic(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        if self.meanwhile:
            self.meanwhile.pop(0)()


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock, wait = Clock(), Operation.wait

    def passes(operation: Operation, seconds: float) -> None:
        clock.pass_by(seconds)
        wait(operation, 0)

    monkeypatch.setattr(engine_ready, "time", clock)
    monkeypatch.setattr(Operation, "wait", passes)
    monkeypatch.setattr(engine_ready, "LEAST_SECONDS", 60.0)
    monkeypatch.setattr(engine_ready, "ANSWER_SECONDS", 60.0)
    return clock


@pytest.fixture(autouse=True)
def parameters(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The parameters in SSM."""
    parameters: dict[str, str] = {}
    monkeypatch.setattr(engine_ready, "reader", lambda config, region: lambda names: parameters)
    monkeypatch.setattr(engine_ready, "starts", lambda *_: lambda ids: dict.fromkeys(ids, STARTED))
    monkeypatch.setattr(engine_ready, "here", Path)
    return parameters


@pytest.fixture
def client(authority: IssuedCertificate, tmp_path: Path) -> Path:
    store = EngineStore(tmp_path / "hosts")
    store.keep(authority, NOW)
    return store.client


@pytest.fixture
def closed() -> Iterator[int]:
    with closed_port() as address:
        yield address.port


@contextmanager
def engine(
    authority: IssuedCertificate,
    folder: Path,
    name: str = "127.0.0.1",
    port: int = 0,
    answers: Mapping[str, Any] = ANSWERS,
) -> Iterator[int]:
    issued = for_engine(authority, "a", [name], NOW)
    pair = issued.key + issued.certificate
    with tls_engine(folder, authority.certificate, pair, port, answers) as engine_port:
        yield engine_port


def props_of(port: int, client: Path, **changes: Any) -> dict[str, Any]:
    return {
        "name": "a",
        "engine": f"tcp://127.0.0.1:{port}",
        "cert_path": str(client),
        "instance": "i-1",
        "boot": "one",
        "seconds": 6,
        "report": PARAMETER,
        "region": "us-east-1",
        **changes,
    }


def failure(props: dict[str, Any]) -> EarshotError:
    error = raised(EarshotError, Called(DockerEngineReadyKind(), {}).create, props)
    return error


def test_an_engine_that_answers_is_known_by_id_and_version(
    authority: IssuedCertificate, client: Path, tmp_path: Path, parameters: dict[str, str]
) -> None:
    parameters[PARAMETER] = PREPARED
    with engine(authority, tmp_path) as port:
        ready = Called(DockerEngineReadyKind(), {}).create(props_of(port, client))
    assert (ready.outs["engine_id"], ready.outs["version"]) == tuple(ABOUT.values())


def test_the_engine_of_the_instance_before_does_not_count(
    authority: IssuedCertificate, client: Path, tmp_path: Path, parameters: dict[str, str]
) -> None:
    parameters[PARAMETER] = PREPARED.replace("i-1", "i-0")
    with engine(authority, tmp_path) as port:
        error = failure(props_of(port, client))
    assert "its host has not reported since it booted" in error.observed


def test_the_engine_of_the_boot_before_does_not_count(
    authority: IssuedCertificate, client: Path, tmp_path: Path, parameters: dict[str, str]
) -> None:
    """EC2 stops an instance to change its type; the engine answers until it is stopped."""
    report = '{"instance": "i-1", "state": "prepared", "booted": %d}'
    with engine(authority, tmp_path) as port:
        parameters[PARAMETER] = report % (STARTED - 60)
        assert "has not reported since it booted" in failure(props_of(port, client)).observed
        parameters[PARAMETER] = report % (STARTED + 20)
        assert Called(DockerEngineReadyKind(), {}).create(props_of(port, client)).outs["engine_id"]


def test_it_is_waited_for(
    authority: IssuedCertificate,
    client: Path,
    tmp_path: Path,
    parameters: dict[str, str],
    clock: Clock,
) -> None:
    parameters[PARAMETER] = PREPARED
    (port,) = free_ports(1)
    with ExitStack() as stack:

        def start() -> None:
            stack.enter_context(engine(authority, tmp_path, port=port))

        clock.meanwhile = [lambda: None, start]
        ready = Called(DockerEngineReadyKind(), {}).create(props_of(port, client))
    assert ready.outs["engine_id"] == ABOUT["ID"]
    assert clock.now == 6


def test_a_closed_port_is_told_with_what_the_host_reports(
    client: Path, parameters: dict[str, str], closed: int
) -> None:
    props = props_of(closed, client)
    error = failure(props)
    assert "Connection refused" in error.observed and "after 6 s" in error.observed
    assert "the host reports nothing" in error.observed
    assert "`deployers`" in error.remedy
    parameters[PARAMETER] = (
        '{"instance": "i-1", "state": "starting", "detail": "cannot install docker"}'
    )
    error = failure(props)
    assert "starting: cannot install docker" in error.observed
    assert "aws ssm start-session --target i-1" in error.remedy


def test_a_report_of_a_former_instance_counts_for_nothing(
    client: Path, parameters: dict[str, str], closed: int
) -> None:
    parameters[PARAMETER] = '{"instance": "i-0", "state": "failed", "detail": "no volume"}'
    assert "the host reports nothing" in failure(props_of(closed, client)).observed


def test_a_host_that_gave_up_is_not_waited_for(
    client: Path, parameters: dict[str, str], closed: int, clock: Clock
) -> None:
    parameters[PARAMETER] = '{"instance": "i-1", "state": "failed", "detail": "neither blank"}'
    error = failure(props_of(closed, client, seconds=600))
    assert "failed: neither blank" in error.observed
    assert clock.now == 0


def test_silence_is_a_time_out(client: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_ready, "ANSWER_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        error = failure(props_of(silent.getsockname()[1], client))
    assert "timed out" in error.observed or "no whole answer within 0.5 s" in error.observed


def test_an_engine_that_drips_its_answer_takes_no_longer_than_the_update_allows(
    client: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_ready, "LEAST_SECONDS", 1.5)
    record = b"\x16\x03\x03\x40\x00"  # the head of a TLS record that never ends
    with dripping(record + b"\x02") as port:
        error = failure(props_of(port, client, seconds=0))
    # on a busy machine no byte may come for as long, which is a time-out of its own
    assert "does not answer" in error.observed
    assert "no whole answer within 1.5 s" in error.observed or "timed out" in error.observed


@pytest.mark.parametrize(
    "about",
    ["no JSON", [], "null", {"ID": "", "ServerVersion": 7}],
)
def test_an_engine_that_says_no_id_is_not_ready(
    about: object,
    authority: IssuedCertificate,
    client: Path,
    tmp_path: Path,
    parameters: dict[str, str],
) -> None:
    parameters[PARAMETER] = PREPARED
    with engine(authority, tmp_path, answers={**ANSWERS, "info": about}) as port:
        error = failure(props_of(port, client))
    assert "describe" in error.observed and "after 6 s" in error.observed


def test_another_authority_s_engine_is_refused(client: Path, tmp_path: Path) -> None:
    with engine(new_engines_authority("other", NOW), tmp_path) as port:
        error = failure(props_of(port, client))
    assert "certificate verify failed" in error.observed
    assert "ca.pem" in error.remedy


def test_a_certificate_for_another_name_is_refused(
    authority: IssuedCertificate, client: Path, tmp_path: Path
) -> None:
    with engine(authority, tmp_path, name="10.0.0.9") as port:
        error = failure(props_of(port, client))
    assert "127.0.0.1" in error.observed


def test_an_update_that_is_cancelled_ends_the_wait(client: Path, closed: int, clock: Clock) -> None:
    operation = Operation("urn::a", log=lambda line: None)
    clock.meanwhile = [operation.cancelled.set]
    with pytest.raises(Interrupted):
        DockerEngineReadyKind().create(operation, props_of(closed, client, seconds=600))
    assert clock.now == 3


@pytest.mark.parametrize("key", ["engine", "instance", "boot"])
def test_a_replaced_or_restarted_host_is_waited_for_again(key: str, client: Path) -> None:
    props = props_of(1, client)
    kind = Called(DockerEngineReadyKind(), {})
    assert not kind.differs(props, props)
    assert kind.differs(props, {**props, key: "another"})


def test_another_checkout_waits_again(client: Path, tmp_path: Path) -> None:
    props = props_of(1, tmp_path / "none")
    assert Called(DockerEngineReadyKind(), {}).differs(props, props)
