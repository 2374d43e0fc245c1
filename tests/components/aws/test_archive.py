"""Checks of the archive that instances will fetch, against a server of this test."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from earshot_pulumi.aws import archive
from earshot_pulumi.aws.archive import problem, sum_in

from earshot.config.aws_sections import KafkaRelease
from earshot.errors import EarshotError
from tests.doubles.dripping import dripping

CONTENT = b"Kafka as its project publishes it"
SUM = hashlib.sha512(CONTENT).hexdigest()
OTHER_SUM = hashlib.sha512(b"another").hexdigest()
GROUPED = " ".join(SUM.upper()[i : i + 8] for i in range(0, 128, 8))
ARCHIVE, PUBLISHED_SUM = "/kafka.tgz", "/kafka.tgz.sha512"


class Server:
    """Serves ``files`` by path. The status of other paths is ``otherwise``."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.otherwise = 404
        self.raw_answer: bytes | None = None
        """Sent for the archive instead of an answer in HTTP."""
        self.requests: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self.do_GET()

            def do_GET(self) -> None:
                server.requests.append(f"{self.command} {self.path}")
                if self.path == ARCHIVE and server.raw_answer is not None:
                    self.wfile.write(server.raw_answer)
                    self.close_connection = True
                    return
                content = server.files.get(self.path)
                self.send_response(server.otherwise if content is None else 200)
                self.send_header("Content-Length", str(len(content or b"")))
                self.end_headers()
                if content and self.command == "GET":
                    self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}{ARCHIVE}"

    def problem(self, sha512: str = SUM) -> str | None:
        return problem(KafkaRelease(url=self.url, sha512=sha512))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        thread.join()
        server.http.server_close()


def test_an_archive_with_its_published_sum_is_not_fetched(server: Server) -> None:
    server.files = {ARCHIVE: CONTENT, PUBLISHED_SUM: SUM.encode()}
    assert server.problem() is None
    assert server.requests == [f"GET {PUBLISHED_SUM}", f"HEAD {ARCHIVE}"]


@pytest.mark.parametrize(
    ("published", "source"),
    [
        ({PUBLISHED_SUM: f"kafka.tgz: {GROUPED}".encode()}, "{url}.sha512 has"),
        ({}, "the file at {url} has"),
    ],
)
def test_another_sum_than_the_published_or_the_computed_one(
    server: Server, published: dict[str, bytes], source: str
) -> None:
    server.files = {ARCHIVE: CONTENT, **published}
    assert server.problem() is None
    assert server.problem(OTHER_SUM) == (
        f"`archive.sha512` is {OTHER_SUM[:12]}…, and {source.format(url=server.url)} "
        f"{SUM[:12]}…. Set the archive's own checksum"
    )


@pytest.mark.parametrize("files", [{}, {PUBLISHED_SUM: SUM.encode()}])
def test_an_archive_that_does_not_exist(server: Server, files: dict[str, bytes]) -> None:
    server.files = files
    assert server.problem() == (
        f"`archive.url`: no file exists at {server.url}. Check that the version is published there"
    )


def test_an_archive_that_this_machine_cannot_read_is_unknown(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.otherwise = 403
    with pytest.raises(EarshotError, match=r"this machine cannot check it \(403 Forbidden\)"):
        server.problem()
    for url in ("https://archive.invalid/kafka.tgz", "http://127.0.0.1/a b"):
        with pytest.raises(EarshotError, match=r"this machine cannot check it \([A-Z]"):
            problem(KafkaRelease.model_construct(url=url, sha512=SUM))
    server.files = {ARCHIVE: CONTENT}
    server.otherwise = 404
    monkeypatch.setattr(archive, "FETCH_SECONDS", -1)
    with pytest.raises(EarshotError, match="not fetched within -1 s"):
        server.problem()


def test_an_archive_that_arrives_byte_by_byte_is_unknown_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(archive, "FETCH_SECONDS", 0.3)
    with (
        dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nx") as port,
        pytest.raises(EarshotError, match=r"not fetched within 0\.3 s"),
    ):
        problem(KafkaRelease.model_construct(url=f"http://127.0.0.1:{port}/a", sha512=SUM))


@pytest.mark.parametrize(("answer", "reason"), [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
     "the connection ended 96 bytes before its end"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nhalf", r"IncompleteRead\(.*\)"),
    (b"220 mail.example ESMTP\r\n\r\n", "220 mail.example ESMTP"),
    (b"", "Remote end closed connection without response"),
], ids=["cut short", "a chunk cut short", "another protocol", "nothing"])  # fmt: skip
def test_an_archive_with_an_incomplete_answer_is_unknown(
    server: Server, answer: bytes, reason: str
) -> None:
    server.raw_answer = answer
    with pytest.raises(EarshotError, match=rf"this machine cannot check it \({reason}\)"):
        server.problem()


@pytest.mark.parametrize(
    ("text", "checksum"),
    [(SUM, SUM), (f"{SUM}  kafka_2.13-4.1.1.tgz\n", SUM),
     (f"kafka_2.13-4.1.1.tgz: {GROUPED}\n", SUM),
     (f"kafka_2.13-4.1.1.tgz: {GROUPED[:71]}\n                       {GROUPED[71:]}\n", SUM),
     ("<html>: not here</html>", None)],
)  # fmt: skip
def test_the_sum_in_a_published_file(text: str, checksum: str | None) -> None:
    assert sum_in(text) == checksum
