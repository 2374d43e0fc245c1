"""A client of a Docker engine that limits the size and the time of each answer."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:  # slow to import
    import docker
    import docker.tls

MAX_BYTES: Final = 64 * 2**20
"""The maximum size of an answer that is not a stream; thousands of containers need a few MiB."""
MAX_LINE: Final = 2**20
"""The maximum size of one event of a stream."""
STREAM_SECONDS: Final[float] = 3600
"""Time limit for all events of a stream: a pull over a slow line takes many minutes."""
_LISTS: Final = re.compile(
    r"(?<!/containers)/containers/json$|(?<!/images)/images/json$|(?<!/networks)/networks$"
)
"""Paths of lists of objects, which may be null if they are empty; not of an object `networks`."""
_OBJECTS: Final = re.compile(r"/volumes$|/(?:networks|volumes)/[^/]+$|/.+/.+/json$")
"""Paths of single objects."""
_FRAME_HEAD: Final = 8
"""The length of the head of a part of a command's output: its stream and its size."""


def new_client(
    address: str, tls: docker.tls.TLSConfig | None, seconds: float
) -> docker.DockerClient:
    """A client that ignores HTTP_PROXY, as requests may contain keys.

    Docker's own tools use no proxy for this machine either.
    """
    import docker

    class Direct(docker.APIClient):  # type: ignore[misc]  # docker has no types
        trust_env = property(lambda _: False, lambda *_: None)

        def send(self, request: Any, **options: Any) -> Any:
            """The complete response, of at most `MAX_BYTES`; or a stream.

            The time limit is for the whole exchange, as requests restarts its own at each byte.
            """

            def exchange() -> Any:
                # a redirect would send the request, which may contain keys, to another server
                unlike = {"stream": True, "allow_redirects": False}
                response = super(Direct, self).send(request, **{**options, **unlike})
                if response.is_redirect:
                    response.close()
                    raise OSError(f"redirects to {response.headers['location']}")
                if not options.get("stream"):
                    response._content = _whole(response)
                return response

            return _within(options.get("timeout"), exchange)

        def _result(self, response: Any, json: bool = False, binary: bool = False) -> Any:
            try:
                result = super()._result(response, json, binary)
            except (ValueError, RecursionError) as reason:
                raise OSError(f"answers with unreadable JSON ({reason})") from None
            return _formed(response, result) if json else result

        def _read_from_socket(
            self, response: Any, stream: bool, tty: bool = True, demux: bool = False
        ) -> Any:
            """The output of a command that does not run in a terminal.

            The SDK's own has no limits, and loses output that arrives with the headers.
            """
            self._raise_for_status(response)
            try:
                outputs = _within(self.timeout, lambda: _frames(response))
            finally:
                _cut(response)
            if demux:
                return tuple(bytes(output) or None for output in outputs[1:])
            return bytes(outputs[0])

        def _stream_helper(self, response: Any, decode: bool = False) -> Iterator[Any]:
            """The events of a build or a pull, one per line. The SDK's own has no limits."""
            with _limited(response), contextlib.closing(_lines(response)) as lines:
                yield from map(_event if decode else bytes, lines)

        def _stream_raw_result(
            self, response: Any, chunk_size: int = 1, decode: bool = True
        ) -> Iterator[bytes]:
            """The content of a file, as one part. The SDK's own has no limits."""
            self._raise_for_status(response)
            try:
                yield _within(self.timeout, lambda: _whole(response))
            finally:
                _cut(response)

    client = docker.DockerClient.__new__(docker.DockerClient)
    client.api = Direct(base_url=address, tls=tls, timeout=seconds)
    return client


def _formed(response: Any, document: Any) -> Any:
    """``document``, an object or a list of objects as the path of ``response`` demands.

    Raises TypeError for other ones: the SDK's exception has no type of its own.
    """
    if response.request.method == "GET" and not _has_form(response, document):
        raise TypeError(f"the answer is of type {type(document).__name__}")
    return document


def _has_form(response: Any, document: object) -> bool:
    path = urlsplit(response.url).path
    if _LISTS.search(path):
        is_list = isinstance(document, list) and all(isinstance(item, dict) for item in document)
        return is_list or document is None
    return isinstance(document, dict) or not _OBJECTS.search(path)


def _within(seconds: float | None, exchange: Callable[[], Any]) -> Any:
    """The result of ``exchange``. Raises TimeoutError after ``seconds``, if given.

    The thread of a late exchange ends with its connection, or with the process.
    """
    if seconds is None:
        return exchange()
    result: Future[Any] = Future()

    def run() -> None:
        try:
            result.set_result(exchange())
        except BaseException as reason:
            result.set_exception(reason)

    threading.Thread(target=run, daemon=True, name="docker-request").start()
    if not wait([result], seconds).done:
        raise TimeoutError(f"no whole answer within {seconds:g} s")
    return result.result()


def _whole(response: Any) -> bytes:
    """The body of ``response``. Raises OSError for more than `MAX_BYTES`."""
    content = bytearray()
    for part in response.iter_content(2**16):
        content += part
        if len(content) > MAX_BYTES:
            response.close()
            raise _too_long()
    return bytes(content)


@contextlib.contextmanager
def _limited(response: Any) -> Iterator[None]:
    """Raises TimeoutError if reading the stream ``response`` takes more than `STREAM_SECONDS`.

    The client's own limit restarts at each byte.
    """
    is_late = threading.Event()

    def end() -> None:
        is_late.set()
        _cut(response)

    timer = threading.Timer(STREAM_SECONDS, end)
    timer.daemon = True
    timer.start()
    late = TimeoutError(f"no whole answer within {STREAM_SECONDS:g} s")
    try:
        yield
        if is_late.is_set():  # the cut looks like the end of the stream
            raise late
    except Exception:
        if is_late.is_set():
            raise late from None
        raise
    finally:
        timer.cancel()


def _lines(response: Any) -> Generator[bytes, None, None]:
    """The lines of a stream, when they arrive. Raises OSError for a line of `MAX_LINE` bytes."""
    rest = bytearray()
    try:
        for part in response.iter_content(2**16):
            rest += part
            *lines, rest = rest.split(b"\n")
            if len(rest) > MAX_LINE:
                raise OSError(f"answers with a line of more than {MAX_LINE // 2**20} MiB")
            yield from (bytes(line) for line in lines if line.strip())
        if rest.strip():
            yield bytes(rest)
    finally:
        _cut(response)


def _event(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as reason:
        raise OSError(f"answers with unreadable JSON ({reason})") from None


def _too_long() -> OSError:
    return OSError(f"answers with more than {MAX_BYTES // 2**20} MiB")


def _frames(response: Any) -> tuple[bytearray, bytearray, bytearray]:
    """The output of a command until the end of the connection: all of it, stdout and stderr.

    https://docs.docker.com/reference/api/engine/version/v1.41/#tag/Container/operation/ContainerAttach
    Raises OSError for more than `MAX_BYTES`, and for a stream that a command does not have.
    """
    stream, both, outputs = response.raw._fp.fp, bytearray(), (bytearray(), bytearray())
    while head := stream.read(_FRAME_HEAD):
        number, size = head[0], int.from_bytes(head[4:], "big")
        if number not in (1, 2):
            raise OSError(f"answers with a stream {number}, which no command has")
        if len(both) + size > MAX_BYTES:
            raise _too_long()
        text = stream.read(size)
        both += text
        outputs[number - 1].extend(text)
    return both, *outputs


def early_output(opened: Any) -> bytes:
    """What a command wrote before its connection was ``opened``.

    http.client reads ahead, and the SDK hands out only the socket below its buffer.
    """
    with contextlib.suppress(AttributeError, OSError):
        stream = opened._response.raw._fp.fp
        ready, connection = b"", stream.raw._sock
        seconds = connection.gettimeout()
        connection.settimeout(0)
        with contextlib.suppress(OSError):
            ready = bytes(stream.peek())
        connection.settimeout(seconds)
        return ready
    return b""


def _cut(response: Any) -> None:
    """Ends the connection of ``response``, so that a thread that reads from it ends, too.

    `close` alone would wait for that thread.
    """
    with contextlib.suppress(OSError, AttributeError):
        response.raw._fp.fp.raw._sock.shutdown(socket.SHUT_RDWR)
    response.close()
