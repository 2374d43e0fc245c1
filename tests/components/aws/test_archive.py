"""Whether an archive is where instances will fetch it; a server of this test's own says so."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from earshot_pulumi.aws import archive
from earshot_pulumi.aws.archive import problem, sum_in

from earshot.config.aws_parts import KafkaRelease
from earshot.errors import EarshotError

CONTENT = b"Kafka as its project publishes it"
SUM = hashlib.sha512(CONTENT).hexdigest()
OTHER = hashlib.sha512(b"another").hexdigest()
GROUPED = " ".join(SUM.upper()[i : i + 8] for i in range(0, 128, 8))


class Server:
    """What it has, by path; any other path is answered with ``otherwise``."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.otherwise = 404
        self.asked: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self._answer(body=False)

            def do_GET(self) -> None:
                self._answer(body=True)

            def _answer(self, body: bool) -> None:
                server.asked.append(f"{self.command} {self.path}")
                found = server.files.get(self.path)
                self.send_response(server.otherwise if found is None else 200)
                self.send_header("Content-Length", str(len(found or b"")))
                self.end_headers()
                if body and found is not None:
                    self.wfile.write(found)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/kafka.tgz"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    found = Server()
    thread = threading.Thread(target=found.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield found
    finally:
        found.http.shutdown()
        thread.join()
        found.http.server_close()


def said(server: Server, sha512: str = SUM) -> str | None:
    return problem(KafkaRelease(url=server.url, sha512=sha512))


def test_an_archive_that_is_there_with_its_sum_is_not_fetched(server: Server) -> None:
    server.files = {"/kafka.tgz": CONTENT, "/kafka.tgz.sha512": SUM.encode()}
    assert said(server) is None
    assert server.asked == ["GET /kafka.tgz.sha512", "HEAD /kafka.tgz"]


def test_another_sum_than_the_published_one(server: Server) -> None:
    server.files = {"/kafka.tgz": CONTENT, "/kafka.tgz.sha512": f"kafka.tgz: {GROUPED}".encode()}
    assert said(server, OTHER) == (
        f"`archive.sha512` is {OTHER[:12]}…, and {server.url}.sha512 says {SUM[:12]}…. "
        "Set the sum that belongs to the archive"
    )


@pytest.mark.parametrize("left", [{}, {"/kafka.tgz.sha512": SUM.encode()}])
def test_an_archive_that_is_not_there(server: Server, left: dict[str, bytes]) -> None:
    server.files = left
    assert said(server) == (
        f"`archive.url`: there is nothing at {server.url}. See that the version is published there"
    )


def test_without_a_published_sum_it_is_computed(server: Server) -> None:
    server.files = {"/kafka.tgz": CONTENT}
    assert said(server) is None
    assert said(server, OTHER) == (
        f"`archive.sha512` is {OTHER[:12]}…, and what is at {server.url} has {SUM[:12]}…. "
        "Set the sum that belongs to the archive"
    )


def test_what_this_machine_may_not_see_says_nothing_about_the_instances(server: Server) -> None:
    server.otherwise = 403
    with pytest.raises(EarshotError, match=r"cannot look at it beforehand \(403 Forbidden\)"):
        said(server)
    with pytest.raises(EarshotError, match=r"cannot look at it beforehand \([A-Z]"):
        problem(KafkaRelease(url="https://archive.invalid/kafka.tgz", sha512=SUM))


def test_an_archive_that_takes_too_long_says_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.files = {"/kafka.tgz": CONTENT}
    monkeypatch.setattr(archive, "FETCH_SECONDS", -1)
    with pytest.raises(EarshotError, match="not fetched within -1 s"):
        said(server)


ANSWERS = {
    "cut short": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
        "the connection ended 96 bytes before its end",
    ),
    "a chunk cut short": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nhalf",
        r"IncompleteRead\(.*\)",
    ),
    "another protocol": (b"220 mail.example ESMTP\r\n\r\n", "220 mail.example ESMTP"),
    "nothing": (b"", "Remote end closed connection without response"),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_that_breaks_off_says_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    content, reason = ANSWERS[answer]
    handler = server.http.RequestHandlerClass

    def broken(self: Any, body: bool) -> None:
        if self.path.endswith(".sha512"):
            self.send_error(404)
            return
        self.wfile.write(content)
        self.close_connection = True

    monkeypatch.setattr(handler, "_answer", broken)
    with pytest.raises(EarshotError, match=rf"cannot look at it beforehand \({reason}\)"):
        said(server)


def test_an_address_that_is_none_says_nothing() -> None:
    with pytest.raises(EarshotError, match="cannot look at it beforehand"):
        archive.problem(KafkaRelease.model_construct(url="http://127.0.0.1/a b", sha512=SUM))


@pytest.mark.parametrize(
    "text",
    [SUM, f"{SUM}  kafka_2.13-4.1.1.tgz\n", f"kafka_2.13-4.1.1.tgz: {GROUPED}\n",
     f"kafka_2.13-4.1.1.tgz: {GROUPED[:71]}\n                       {GROUPED[71:]}\n"],
)  # fmt: skip
def test_published_sums_are_read(text: str) -> None:
    assert sum_in(text) == SUM


def test_a_page_that_is_no_sum_is_none() -> None:
    assert sum_in("<html>: not here</html>") is None
