"""The wait for a new host's engine: that it answers, and why it does not."""

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
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
from tests.doubles.tls_engine import ABOUT, ANSWERS, tls_engine
from tests.raised import raised

NOW = datetime.now(UTC)
PARAMETER = "/earshot/s-m/docker/a/report"
STARTED = 2000.0
PREPARED = '{"instance": "i-1", "state": "prepared", "detail": ""}'


@pytest.fixture
def authority() -> IssuedCertificate:
    return new_engines_authority("s-m", NOW)


@pytest.fixture(autouse=True)
def parameters(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What is in SSM; waits are short."""
    found: dict[str, str] = {}
    monkeypatch.setattr(engine_ready, "reader", lambda config, region: lambda names: found)
    monkeypatch.setattr(engine_ready, "starts", lambda *_: lambda ids: dict.fromkeys(ids, STARTED))
    monkeypatch.setattr(engine_ready, "here", Path)
    monkeypatch.setattr(engine_ready, "POLL_SECONDS", 0.1)
    return found


@pytest.fixture
def client(authority: IssuedCertificate, tmp_path: Path) -> Path:
    store = EngineStore(tmp_path / "hosts")
    store.keep(authority, NOW)
    return store.client


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def engine(
    authority: IssuedCertificate,
    folder: Path,
    name: str = "127.0.0.1",
    port: int = 0,
    answers: Mapping[str, Any] = ANSWERS,
) -> Iterator[int]:
    made = for_engine(authority, "a", [name], NOW)
    pair = made.key + made.certificate
    with tls_engine(folder, authority.certificate, pair, port, answers) as found:
        yield found


def wanted(port: int, client: Path, **changes: Any) -> dict[str, Any]:
    return {
        "name": "a",
        "engine": f"tcp://127.0.0.1:{port}",
        "cert_path": str(client),
        "instance": "i-1",
        "boot": "one",
        "seconds": 1,
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
        made = Called(DockerEngineReadyKind(), {}).create(wanted(port, client))
    assert (made.outs["engine_id"], made.outs["version"]) == tuple(ABOUT.values())


def test_the_engine_of_the_instance_before_does_not_count(
    authority: IssuedCertificate, client: Path, tmp_path: Path, parameters: dict[str, str]
) -> None:
    parameters[PARAMETER] = PREPARED.replace("i-1", "i-0")
    with engine(authority, tmp_path) as port:
        error = failure(wanted(port, client))
    assert "its host has not reported since it booted" in error.observed


def test_the_engine_of_the_boot_before_does_not_count(
    authority: IssuedCertificate, client: Path, tmp_path: Path, parameters: dict[str, str]
) -> None:
    """EC2 stops an instance to change its type; the engine answers until it is stopped."""
    report = '{"instance": "i-1", "state": "prepared", "booted": %d}'
    with engine(authority, tmp_path) as port:
        parameters[PARAMETER] = report % (STARTED - 60)
        assert "has not reported since it booted" in failure(wanted(port, client)).observed
        parameters[PARAMETER] = report % (STARTED + 20)
        assert Called(DockerEngineReadyKind(), {}).create(wanted(port, client)).outs["engine_id"]


def test_it_is_waited_for(
    authority: IssuedCertificate, client: Path, tmp_path: Path, parameters: dict[str, str]
) -> None:
    parameters[PARAMETER] = PREPARED
    port = free_port()
    found: list[Any] = []

    def wait() -> None:
        found.append(Called(DockerEngineReadyKind(), {}).create(wanted(port, client, seconds=20)))

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.3)
    with engine(authority, tmp_path, port=port):
        thread.join(20)
    assert found[0].outs["engine_id"] == ABOUT["ID"]


def test_a_closed_port_is_told_with_what_the_host_reports(
    client: Path, parameters: dict[str, str]
) -> None:
    props = wanted(free_port(), client)
    error = failure(props)
    assert "Connection refused" in error.observed and "after 1 s" in error.observed
    assert "the host reports nothing" in error.observed
    assert "`deployers`" in error.remedy
    parameters[PARAMETER] = (
        '{"instance": "i-1", "state": "starting", "detail": "cannot install docker"}'
    )
    error = failure(props)
    assert "starting: cannot install docker" in error.observed
    assert "aws ssm start-session --target i-1" in error.remedy


def test_a_report_of_a_former_instance_counts_for_nothing(
    client: Path, parameters: dict[str, str]
) -> None:
    parameters[PARAMETER] = '{"instance": "i-0", "state": "failed", "detail": "no volume"}'
    assert "the host reports nothing" in failure(wanted(free_port(), client)).observed


def test_a_host_that_gave_up_is_not_waited_for(client: Path, parameters: dict[str, str]) -> None:
    parameters[PARAMETER] = '{"instance": "i-1", "state": "failed", "detail": "neither blank"}'
    begin = time.monotonic()
    error = failure(wanted(free_port(), client, seconds=600))
    assert "failed: neither blank" in error.observed
    assert time.monotonic() - begin < 30


def test_silence_is_a_time_out(client: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_ready, "ANSWER_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        error = failure(wanted(silent.getsockname()[1], client))
    assert "timed out" in error.observed or "no whole answer within 0.5 s" in error.observed


def test_an_engine_that_drips_its_answer_takes_no_longer_than_the_update_allows(
    client: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.recv(4096)
                for byte in b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20:
                    connection.sendall(bytes([byte]))
                    time.sleep(0.2)

        thread = threading.Thread(target=drip)
        thread.start()
        props = wanted(server.getsockname()[1], client)
        begin = time.monotonic()
        assert "does not answer" in failure(props).observed
        assert time.monotonic() - begin < 4
        thread.join()


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
        error = failure(wanted(port, client))
    assert "after 1 s" in error.observed


def test_another_authority_s_engine_is_refused(client: Path, tmp_path: Path) -> None:
    with engine(new_engines_authority("other", NOW), tmp_path) as port:
        error = failure(wanted(port, client))
    assert "certificate verify failed" in error.observed
    assert "ca.pem" in error.remedy


def test_a_certificate_for_another_name_is_refused(
    authority: IssuedCertificate, client: Path, tmp_path: Path
) -> None:
    with engine(authority, tmp_path, name="10.0.0.9") as port:
        error = failure(wanted(port, client))
    assert "127.0.0.1" in error.observed


def test_an_update_that_is_cancelled_ends_the_wait(client: Path) -> None:
    cancelled = threading.Event()
    operation = Operation("urn::a", cancelled=cancelled, log=lambda line: None)
    threading.Timer(0.3, cancelled.set).start()
    begin = time.monotonic()
    with pytest.raises(Interrupted):
        DockerEngineReadyKind().create(operation, wanted(free_port(), client, seconds=600))
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("key", ["engine", "instance", "boot"])
def test_a_replaced_or_restarted_host_is_waited_for_again(key: str, client: Path) -> None:
    props = wanted(1, client)
    kind = Called(DockerEngineReadyKind(), {})
    assert not kind.differs(props, props)
    assert kind.differs(props, {**props, key: "another"})


def test_another_checkout_waits_again(client: Path, tmp_path: Path) -> None:
    props = wanted(1, tmp_path / "none")
    assert Called(DockerEngineReadyKind(), {}).differs(props, props)
