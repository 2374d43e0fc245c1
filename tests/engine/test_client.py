"""What an engine may answer, by a double, and what a client takes of it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from earshot.engine.connection import connect
from earshot.placement.standpoint import CandidateEngine
from tests.doubles.dripping import PAUSE_SECONDS
from tests.doubles.engine_server import (
    UPGRADED,
    Answer,
    document,
    endless,
    engine_server,
    frame,
    silent,
)


@contextmanager
def client_of(answers: Mapping[str, Answer]) -> Iterator[Any]:
    """A client of an engine that gives these ``answers``."""
    with (
        engine_server(answers) as address,
        connect(CandidateEngine(engine=address), {}) as client,
    ):
        yield client


TOO_LATE = "no whole answer within 0.5 s|timed out"  # one of two limits of the same length
START = "POST /v1.41/exec/[^/]+/start"


def executed(answer: Answer) -> Any:
    """The result of a command in a container, whose output is ``answer``."""
    with client_of({START: answer}) as client:
        return client.containers.get("x").exec_run(["true"], demux=True)


def test_the_output_of_a_command_that_ends_at_once_is_not_lost() -> None:
    # all bytes arrive at once, so that http.client reads the output with the headers
    status, output = executed(UPGRADED + frame(b"one\n") + frame(b"no\n", 2) + frame(b"two\n"))
    assert (status, output) == (0, (b"one\ntwo\n", b"no\n"))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (silent(UPGRADED), TOO_LATE),
        (silent(UPGRADED + frame(b"text")[:-1]), TOO_LATE),
        (endless(UPGRADED, frame(b"x"), PAUSE_SECONDS), TOO_LATE),
        (endless(UPGRADED, frame(b"x" * 65536)), "answers with more than 1 MiB"),
        (UPGRADED + b"\1\0\0\0\xff\xff\xff\xfftext", "answers with more than 1 MiB"),
        (UPGRADED + frame(b"text", 7), "answers with a stream 7"),
    ],
    ids=["silent", "cut short", "byte by byte", "endless", "announces 4 GiB", "unknown stream"],
)
def test_the_output_of_a_command_has_limits(
    answer: Answer, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("earshot.engine.client.MAX_BYTES", 2**20)
    monkeypatch.setattr("earshot.engine.connection.REQUEST_SECONDS", 0.5)
    with pytest.raises(OSError, match=error):
        executed(answer)


ARCHIVE = "GET /v1.41/containers/[^/]+/archive"
_FILE_HEAD = b"HTTP/1.1 200 OK\r\nX-Docker-Container-Path-Stat: e30=\r\n\r\n"


@pytest.mark.parametrize(("answer", "error"), [
    (silent(_FILE_HEAD + b"x"), TOO_LATE),
    (endless(_FILE_HEAD, b"x", PAUSE_SECONDS), TOO_LATE),
    (endless(_FILE_HEAD, b"x" * 65536), "answers with more than 1 MiB"),
], ids=["silent", "byte by byte", "endless"])  # fmt: skip
def test_a_file_of_a_container_has_limits(
    answer: Answer, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("earshot.engine.client.MAX_BYTES", 2**20)
    monkeypatch.setattr("earshot.engine.connection.REQUEST_SECONDS", 0.5)
    with client_of({ARCHIVE: answer}) as client, pytest.raises(OSError, match=error):
        b"".join(client.api.get_archive("x", "/file")[0])


@pytest.mark.parametrize("status", ["301 Moved Permanently", "307 Temporary Redirect"])
def test_a_redirect_is_not_followed(status: str) -> None:
    # a request may contain keys, and the other server is not the one that was named
    redirect = document(b"", status, "Location: http://127.0.0.1:9/elsewhere")
    redirected = pytest.raises(OSError, match=r"redirects to http://127\.0\.0\.1:9/elsewhere")
    with client_of({"GET /v1.41/info": redirect}) as client, redirected:
        client.api.info()


@pytest.mark.parametrize(
    "text", [b"[" * 100_000, b"9" * 5000, b"{nope"], ids=["deep", "a huge number", "no JSON"]
)
def test_an_answer_that_cannot_be_read_is_an_error_of_the_engine(text: bytes) -> None:
    unreadable = pytest.raises(OSError, match="answers with unreadable JSON")
    with client_of({"GET /v1.41/info": document(text)}) as client, unreadable:
        client.api.info()


@pytest.mark.parametrize("document_", [None, 5, "x", [], [[]]])
def test_an_object_of_another_form_is_an_error_of_the_engine(document_: object) -> None:
    paths = {"GET /v1.41/(images/.*|networks/.*|volumes)": document(document_)}
    other = pytest.raises(TypeError, match="the answer is of type")
    with client_of(paths) as client:
        for ask in (
            lambda: client.images.get("x"),
            lambda: client.networks.get("x"),
            client.volumes.list,
        ):
            with other:
                ask()


@pytest.mark.parametrize("document_", [5, "x", [5], ["x"], [[]], [None], {"message": "no"}])
def test_a_list_of_another_form_is_an_error_of_the_engine(document_: object) -> None:
    paths = {"GET /v1.41/(containers/json|networks|images/json)": document(document_)}
    other = pytest.raises(TypeError, match="the answer is of type")
    with client_of(paths) as client:
        for ask in (client.containers.list, client.networks.list, client.images.list):
            with other:
                ask()


PULL = "POST /v1.41/images/create"
_EVENTS_HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


def events(answer: Answer) -> list[Any]:
    """The events of a pull that an engine answers with ``answer``."""
    with client_of({PULL: answer}) as client:
        return list(client.api.pull("image", tag="1", stream=True, decode=True))


def test_events_are_read_line_by_line() -> None:
    assert events(document(b'{"a": 1}\r\n\r\n{"b": 2}\n{"c": 3}')) == [{"a": 1}, {"b": 2}, {"c": 3}]
    assert events(document(b"")) == []


@pytest.mark.parametrize(("answer", "error"), [
    (document(b'{"a": 1}\n{nope\n'), "answers with unreadable JSON"),
    (document(b"[" * 100_000), "answers with unreadable JSON"),
    (endless(_EVENTS_HEAD, b"x" * 65536), "answers with a line of more than 1 MiB"),
], ids=["no JSON", "deep", "endless"])  # fmt: skip
def test_events_have_limits(answer: Answer, error: str) -> None:
    with pytest.raises(OSError, match=error):
        events(answer)


@pytest.mark.parametrize(
    "text", [b"x", b'{"status": "Downloading"}\n'], ids=["byte by byte", "event by event"]
)
def test_the_events_of_a_pull_have_one_time_limit(
    text: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("earshot.engine.client.STREAM_SECONDS", 0.5)
    answer = endless(_EVENTS_HEAD, text, PAUSE_SECONDS)
    with pytest.raises(TimeoutError, match=r"no whole answer within 0\.5 s"):
        events(answer)
