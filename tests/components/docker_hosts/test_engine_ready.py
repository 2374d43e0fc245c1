"""The wait for a new host's engine: that it answers, and why it does not."""

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.aws.machines import Machine
from earshot_pulumi.docker_hosts import engine_ready
from earshot_pulumi.docker_hosts.engine_ready import DockerEngineReadyKind
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
KIND = Called(DockerEngineReadyKind(), {})
PREPARED = '{"instance": "i-1", "state": "prepared", "detail": ""}'


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


class Host:
    """A new Docker host, and the kind that waits for its engine."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.folder, self.clock = folder, clock
        self.authority = new_engines_authority("s-m", NOW)
        store = EngineStore(folder / "hosts")
        store.keep(self.authority, NOW)
        self.client = store.client
        self.parameters: dict[str, str] = {}
        """The parameters in SSM."""

    def report(self, text: str = PREPARED) -> None:
        self.parameters[PARAMETER] = text

    @contextmanager
    def engine(
        self,
        authority: IssuedCertificate | None = None,
        name: str = "127.0.0.1",
        port: int = 0,
        answers: Mapping[str, Any] = ANSWERS,
    ) -> Iterator[int]:
        """The host's engine, with a certificate of ``authority`` or its own; its port."""
        authority = authority or self.authority
        issued = for_engine(authority, "a", [name], NOW)
        pair = issued.key + issued.certificate
        with tls_engine(self.folder, authority.certificate, pair, port, answers) as engine_port:
            yield engine_port

    def props(self, port: int, **changes: Any) -> dict[str, Any]:
        return {
            "name": "a",
            "engine": f"tcp://127.0.0.1:{port}",
            "cert_path": str(self.client),
            "instance": "i-1",
            "boot": "one",
            "seconds": 6,
            "report": PARAMETER,
            "region": "us-east-1",
            **changes,
        }

    def wait(self, port: int) -> dict[str, Any]:
        """The outputs once the engine at ``port`` is ready."""
        return dict(KIND.create(self.props(port)).outs)

    def failure(self, port: int, **changes: Any) -> EarshotError:
        return raised(EarshotError, KIND.create, self.props(port, **changes))


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    clock, wait = Clock(), Operation.wait
    host = Host(tmp_path, clock)

    def pass_time(operation: Operation, seconds: float) -> None:
        clock.pass_by(seconds)
        wait(operation, 0)

    monkeypatch.setattr(engine_ready, "time", clock)
    monkeypatch.setattr(Operation, "wait", pass_time)
    monkeypatch.setattr(engine_ready, "LEAST_SECONDS", 60.0)
    monkeypatch.setattr(engine_ready, "ANSWER_SECONDS", 60.0)
    monkeypatch.setattr(engine_ready, "reader", lambda *_: lambda names: host.parameters)
    machine = Machine("i-1", "a", "running", STARTED)
    monkeypatch.setattr(engine_ready, "described", lambda *at: dict.fromkeys(at[2], machine))
    monkeypatch.setattr(engine_ready, "here", Path)
    monkeypatch.setattr("earshot_pulumi.docker_hosts.clusters.here", Path)
    return host


@pytest.fixture
def closed() -> Iterator[int]:
    with closed_port() as address:
        yield address.port


def test_an_engine_that_answers_is_known_by_id_and_version(host: Host) -> None:
    host.report()
    with host.engine() as port:
        outputs = host.wait(port)
    assert (outputs["engine_id"], outputs["version"]) == tuple(ABOUT.values())


def test_the_engine_of_the_former_instance_or_boot_does_not_count(host: Host) -> None:
    """EC2 stops an instance to change its type; the engine answers until it is stopped."""
    report = '{"instance": "i-1", "state": "prepared", "booted": %d}'
    with host.engine() as port:
        for text in (PREPARED.replace("i-1", "i-0"), report % (STARTED - 60)):
            host.report(text)
            failure = host.failure(port)
            assert "its host has sent no report since it booted" in failure.observed
        host.report(report % (STARTED + 20))
        assert host.wait(port)["engine_id"]


def test_the_engine_is_waited_for(host: Host) -> None:
    host.report()
    (port,) = free_ports(1)
    with ExitStack() as stack:

        def start() -> None:
            stack.enter_context(host.engine(port=port))

        host.clock.meanwhile = [lambda: None, start]
        assert host.wait(port)["engine_id"] == ABOUT["ID"]
    assert host.clock.now == 6


def test_a_closed_port_is_reported_with_the_report_of_the_host(host: Host, closed: int) -> None:
    for text in ("", '{"instance": "i-0", "state": "failed", "detail": "no volume"}'):
        host.report(text)  # the second is of a former instance
        error = host.failure(closed)
        assert "Connection refused" in error.observed and "after 6 s" in error.observed
        assert "the host sent no report" in error.observed
        assert "`deployers`" in error.remedy
    host.report('{"instance": "i-1", "state": "starting", "detail": "cannot install docker"}')
    error = host.failure(closed)
    assert "starting: cannot install docker" in error.observed
    assert "aws ssm start-session --target i-1" in error.remedy


def test_a_host_that_gave_up_is_not_waited_for(host: Host, closed: int) -> None:
    host.report('{"instance": "i-1", "state": "failed", "detail": "neither blank"}')
    assert "failed: neither blank" in host.failure(closed, seconds=600).observed
    assert host.clock.now == 0


def test_silence_is_a_time_out(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_ready, "ANSWER_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        error = host.failure(silent.getsockname()[1])
    assert "timed out" in error.observed or "no whole answer within 0.5 s" in error.observed


def test_an_engine_that_drips_its_answer_takes_no_longer_than_the_update_allows(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_ready, "LEAST_SECONDS", 1.5)
    record = b"\x16\x03\x03\x40\x00"  # the head of a TLS record that never ends
    with dripping(record + b"\x02") as port:
        error = host.failure(port, seconds=0)
    # on a busy machine no byte may come for as long, which is a time-out of its own
    assert "does not answer" in error.observed
    assert "no whole answer within 1.5 s" in error.observed or "timed out" in error.observed


@pytest.mark.parametrize("about", ["no JSON", [], "null", {"ID": "", "ServerVersion": 7}])
def test_an_engine_without_an_id_is_not_ready(host: Host, about: object) -> None:
    host.report()
    with host.engine(answers={**ANSWERS, "info": about}) as port:
        error = host.failure(port)
    assert "returns " in error.observed and "after 6 s" in error.observed


def test_another_authority_s_engine_is_refused(host: Host) -> None:
    with host.engine(new_engines_authority("other", NOW)) as port:
        error = host.failure(port)
    assert "certificate verify failed" in error.observed
    assert "ca.pem" in error.remedy


def test_a_certificate_for_another_name_is_refused(host: Host) -> None:
    with host.engine(name="10.0.0.9") as port:
        assert "127.0.0.1" in host.failure(port).observed


def test_an_update_that_is_cancelled_ends_the_wait(host: Host, closed: int) -> None:
    operation = Operation("urn::a", log=lambda line: None)
    host.clock.meanwhile = [operation.cancelled.set]
    with pytest.raises(Interrupted):
        DockerEngineReadyKind().create(operation, host.props(closed, seconds=600))
    assert host.clock.now == 3


def test_a_replaced_or_restarted_host_and_another_checkout_wait_again(host: Host) -> None:
    props = host.props(1)
    assert not KIND.differs(props, props)
    for key in ("engine", "instance", "boot"):
        assert KIND.differs(props, {**props, key: "another"})
    elsewhere = host.props(1, cert_path=str(host.folder / "none"))
    assert KIND.differs(elsewhere, elsewhere)
