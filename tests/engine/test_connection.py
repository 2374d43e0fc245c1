"""The address of an engine, and the errors if it does not answer."""

import shutil
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from docker.errors import APIError

from earshot.engine.connection import address_of, connect, in_clear, is_here, root_cause
from earshot.errors import EarshotError
from earshot.placement.standpoint import CandidateEngine
from tests.doubles.certificates import self_signed
from tests.doubles.closed_port import closed_port
from tests.doubles.dripping import dripping
from tests.doubles.engine_server import (
    document,
)


@pytest.mark.parametrize(
    ("named", "environment", "expected"),
    [
        ("tcp://a:1", {"DOCKER_HOST": "tcp://b:2"}, "tcp://a:1"),
        (None, {"DOCKER_HOST": "tcp://b:2"}, "tcp://b:2"),
        (None, {"DOCKER_HOST": ""}, "unix:///var/run/docker.sock"),
        (None, {}, "unix:///var/run/docker.sock"),
    ],
)
def test_the_engine_is_the_named_one_or_dockers_own(
    named: str | None, environment: dict[str, str], expected: str
) -> None:
    assert address_of(CandidateEngine(engine=named), environment) == expected


@pytest.mark.parametrize("address", ["ssh://me@devbox:path", "tcp://[::1", "tcp://a:99999"])
def test_a_variable_that_is_no_address_is_one_error(address: str) -> None:
    with pytest.raises(EarshotError, match="is no address"):
        address_of(CandidateEngine(), {"DOCKER_HOST": address})


def test_only_a_socket_of_this_machine_is_here() -> None:
    assert is_here("unix:///run/user/1000/docker.sock")
    assert not is_here("ssh://host") and not is_here("tcp://127.0.0.1:2375")


@pytest.mark.parametrize(
    ("named", "environment", "expected"),
    [
        ("tcp://a:2375", {}, True),
        (None, {"DOCKER_HOST": "tcp://a:2375"}, True),
        (None, {"DOCKER_HOST": "tcp://a:2376", "DOCKER_TLS_VERIFY": "1"}, False),
        ("tcp://127.0.0.1:2375", {}, False),
        ("tcp://localhost:2375", {}, False),
        ("ssh://a", {}, False),
        (None, {}, False),
    ],
)
def test_what_an_engine_is_sent_is_in_clear_over_a_network_without_tls(
    named: str | None, environment: dict[str, str], expected: bool
) -> None:
    assert in_clear(CandidateEngine(engine=named), environment) is expected


def refused(candidate: CandidateEngine, environment: dict[str, str] | None = None) -> EarshotError:
    with pytest.raises(EarshotError) as caught, connect(candidate, environment or {}):
        pass
    return caught.value


def test_where_no_engine_answers_the_error_says_how_to_get_one(tmp_path: Path) -> None:
    error = refused(CandidateEngine(engine=f"unix://{tmp_path}/none"))
    assert error.object == f"Docker engine at unix://{tmp_path}/none"
    assert error.observed == "does not answer (No such file or directory)"
    assert "apt-get install docker.io" in error.remedy and "DOCKER_HOST" in error.remedy


def test_a_user_who_may_not_is_told_how_to_be_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(address: str, seconds: float) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(
        "earshot.engine.connection._check_socket", denied
    )  # root may use any socket
    error = refused(CandidateEngine(engine=f"unix://{tmp_path}/docker.sock"))
    assert error.observed == "does not answer (Permission denied)"
    assert "usermod --append --groups docker" in error.remedy


def test_a_port_that_refuses_is_not_an_engine() -> None:
    with closed_port() as address:
        error = refused(CandidateEngine(engine=f"tcp://{address}"))
    assert error.observed == "does not answer (Connection refused)"


@contextmanager
def answering(text: bytes) -> Iterator[int]:
    """A port where one request gets ``text``, whatever it was."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):  # a client may leave before it has read all
                connection.recv(4096)
                connection.sendall(text)

        thread = threading.Thread(target=answer)
        thread.start()
        yield server.getsockname()[1]
        thread.join(60)


NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
ENDLESS = b"HTTP/1.1 200 OK\r\nApi-Version: 1.44\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS += (b"10000\r\n" + b"x" * 65536 + b"\r\n") * 40


def refusal_of(text: bytes) -> EarshotError:
    """The error of a connection to a port that answers ``text``."""
    with answering(text) as port:
        return refused(CandidateEngine(engine=f"tcp://127.0.0.1:{port}"))


def test_an_engine_is_asked_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    error = refusal_of(document(b'{"ApiVersion": "1.10"}'))
    assert "API versions below" in error.observed, "it has read the engine's own answer"


@pytest.mark.parametrize(("text", "observed"), [
    (NOT_FOUND, "does not answer (404 Client Error"),
    (ENDLESS, "does not answer (answers with more than 1 MiB)"),
    (document(b'{"ApiVersion": "x.y"}'), "does not answer (invalid literal for int()"),
    (document(b"x" * 100_000, "500 Internal Server Error"), "does not answer (xxx"),
], ids=["another server", "endless", "no number", "a long refusal"])  # fmt: skip
def test_an_odd_answer_is_one_short_error(
    text: bytes, observed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("earshot.engine.client.MAX_BYTES", 2**20)
    error = refusal_of(text)
    assert error.observed.startswith(observed)
    assert len(error.observed) < 1_100
    assert error.observed.endswith("x...") or "xxx" not in observed


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nApi-Version: 1.4", id="headers"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\nx", id="body"),
    ],
)
def test_the_whole_answer_has_one_time_limit(text: bytes) -> None:
    with dripping(text) as port, pytest.raises(EarshotError) as caught:
        candidate = CandidateEngine(engine=f"tcp://127.0.0.1:{port}")
        with connect(candidate, {}, seconds=1.5):
            pass
    assert caught.value.observed == "does not answer (no whole answer within 1.5 s)"


@pytest.mark.parametrize("by_variable", [False, True])
def test_certificates_that_are_missing_are_named(by_variable: bool, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    folder = str(tmp_path)
    address = "tcp://192.0.2.7:2376"
    if by_variable:
        variables = {"DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": folder, "DOCKER_HOST": address}
        error = refused(CandidateEngine(), variables)
    else:
        error = refused(CandidateEngine(engine=address, cert_path=folder))
    assert f"no {folder}/cert.pem, {folder}/key.pem" in error.observed
    assert error.allowed == "a folder with ca.pem, cert.pem, key.pem"


@pytest.fixture
def behind_tls(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of a server that answers like an engine to clients with a certificate, and the
    folder of its certificates."""
    self_signed(tmp_path, "IP:127.0.0.1")
    shutil.copy(tmp_path / "cert.pem", tmp_path / "ca.pem")

    class Ping(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b'{"ApiVersion": "1.41"}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Writes nothing."""

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=tmp_path / "ca.pem")
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    with HTTPServer(("127.0.0.1", 0), Ping) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"tcp://127.0.0.1:{server.server_port}", tmp_path
        server.shutdown()
        thread.join()


def test_the_folders_authority_counts_whatever_others_this_machine_trusts(
    behind_tls: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, folder = behind_tls
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    self_signed(other_folder, "IP:127.0.0.1")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(other_folder / "cert.pem"))
    with connect(CandidateEngine(engine=engine, cert_path=str(folder)), {}) as client:
        assert client.version()["ApiVersion"] == "1.41"

    shutil.copy(other_folder / "cert.pem", folder / "ca.pem")
    error = refused(CandidateEngine(engine=engine, cert_path=str(folder)))
    assert "certificate verify failed" in error.observed
    assert f"signed the engine's certificate into {folder}/ca.pem" in error.remedy
    assert "cert_path" in error.remedy and "install" not in error.remedy


def test_a_key_of_another_certificate_is_said_to_be_one(
    behind_tls: tuple[str, Path], tmp_path: Path
) -> None:
    engine, folder = behind_tls
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    self_signed(other_folder, "IP:127.0.0.1")
    shutil.copy(other_folder / "key.pem", folder / "key.pem")
    error = refused(CandidateEngine(engine=engine, cert_path=str(folder)))
    assert f"see that {folder} holds PEM files, that key.pem is the key of cert.pem" in error.remedy


def test_certificates_for_an_engine_without_tls_and_none_for_one_with_it(tmp_path: Path) -> None:
    self_signed(tmp_path, "IP:127.0.0.1")
    shutil.copy(tmp_path / "cert.pem", tmp_path / "ca.pem")
    variables = {"DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": str(tmp_path)}
    with answering(NOT_FOUND) as port:
        variables["DOCKER_HOST"] = f"tcp://127.0.0.1:{port}"
        error = refused(CandidateEngine(), variables)
    assert "name the port on which the engine takes TLS" in error.remedy
    body = b"Client sent an HTTP request to an HTTPS server.\n"
    error = refusal_of(document(body, "400 Bad Request"))
    assert error.remedy.startswith("say where its certificates are: `hosts[].cert_path`")


def test_the_root_cause_of_an_error_is_shown() -> None:
    inner = OSError(111, "Connection refused")
    outer = RuntimeError("while connecting", ConnectionError("aborted", inner))
    assert root_cause(outer) == "Connection refused"
    assert root_cause(APIError("500", explanation="no space\n left")) == "no space left"
    assert root_cause(TimeoutError()) == "TimeoutError"
