"""Connects to a Docker engine: this machine's socket, `ssh://`, or `tcp://` with TLS."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, wait
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from earshot.errors import EarshotError
from earshot.ssh_engine import tunnel

if TYPE_CHECKING:  # a tenth of a second, for the many who only want an address
    import docker
    import docker.tls

DockerObject = dict[str, Any]
"""An object of an engine's answer. Its keys and their types depend on the engine's version."""

VARIABLE: Final = "DOCKER_HOST"
DEFAULT: Final = "unix:///var/run/docker.sock"
ANSWER_SECONDS: Final = 10
"""Time limit for the first answer of an engine."""
REQUEST_SECONDS: Final = 120
"""Time limit for later answers; for streams, until their headers."""
MOST_BYTES: Final = 64 * 2**20
"""The maximum size of an answer that is not a stream; thousands of containers need a few MiB."""
MOST_LINE: Final = 2**20
"""The maximum size of one event of a stream."""
MOST_SHOWN: Final = 1000
"""The maximum length of a cause in a message, as an engine may answer with megabytes."""
UNREADABLE: Final = (
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    IndexError,
    RecursionError,
    struct.error,
)
"""What code that reads an engine's answer raises if the answer has another form than Docker's."""
GET_ONE: Final = (
    "start it; or install one (Debian, Ubuntu: apt-get install docker.io); or name one that "
    "answers elsewhere: `hosts[].engine` in the stack file, or DOCKER_HOST"
)
BE_ALLOWED: Final = (
    "let this user use it (usermod --append --groups docker USER, then log in again), or name "
    "another engine: `hosts[].engine` in the stack file, or DOCKER_HOST"
)
_CERTIFICATES: Final = "`hosts[].cert_path` in the stack file, or DOCKER_CERT_PATH"
_FRAME_HEAD: Final = 8
"""The length of the head of a part of a command's output: its stream and its size."""
_FILES: Final = ("ca.pem", "cert.pem", "key.pem")


class HasEngine(Protocol):
    """An object with an engine's address: a Docker host of a stack, or a standpoint's candidate."""

    @property
    def engine(self) -> str | None:
        """`unix://`, `ssh://` or `tcp://`; None: DOCKER_HOST, or this machine's socket."""

    @property
    def cert_path(self) -> str | None:
        """A folder with ca.pem, cert.pem and key.pem, for `tcp://` with TLS."""


def address_of(host: HasEngine, environment: Mapping[str, str] = os.environ) -> str:
    """The address of the engine of ``host``. Raises EarshotError for an invalid one."""
    if host.engine:
        return host.engine  # read with the stack's file
    address = environment.get(VARIABLE) or DEFAULT
    try:
        _ = urlsplit(address).port
    except ValueError as reason:
        raise EarshotError(
            f"{VARIABLE}: {address}",
            observed=f"is no address ({reason})",
            allowed="unix:///SOCKET, ssh://[USER@]HOST[:PORT] or tcp://HOST:PORT",
        ) from None
    return address


def is_here(address: str) -> bool:
    """True if ``address`` is a socket of this machine."""
    return address.startswith("unix://")


def in_clear(host: HasEngine, environment: Mapping[str, str] = os.environ) -> bool:
    """True if requests to the engine of ``host`` leave this machine without encryption."""
    address = address_of(host, environment)
    if not address.startswith("tcp://") or _folder(host, address, environment) is not None:
        return False
    name = urlsplit(address).hostname or ""
    try:
        return not ip_address(name).is_loopback
    except ValueError:
        return name != "localhost"


@contextlib.contextmanager
def connect(
    host: HasEngine,
    environment: Mapping[str, str] = os.environ,
    seconds: float | None = None,
) -> Iterator[docker.DockerClient]:
    """Yields a client of the engine of ``host`` after a first answer, and closes it.

    Raises EarshotError with the fix if no engine answers within ``seconds`` (default:
    `ANSWER_SECONDS`). `ssh://` uses this machine's ssh, with its configuration and keys.
    """
    import docker

    seconds = ANSWER_SECONDS if seconds is None else seconds
    address = address_of(host, environment)
    with contextlib.ExitStack() as stack:
        folder = _folder(host, address, environment)
        tls = _tls(folder, address) if folder else None
        way = stack.enter_context(tunnel(address)) if address.startswith("ssh://") else None
        try:
            _knock(address, seconds)
            client = _client(way.address if way else address, tls, seconds)
            stack.enter_context(contextlib.closing(client))
            client.ping()
        except (docker.errors.DockerException, OSError, ValueError) as reason:
            # requests' own are OSErrors; a version that is no number is the SDK's ValueError
            detail = (way.last_words() if way else "") or root_cause(reason)
            raise EarshotError(
                f"Docker engine at {address}",
                observed=f"does not answer ({detail})",
                remedy=_remedy(reason, detail, folder),
            ) from None
        client.api.timeout = REQUEST_SECONDS
        yield client


def _client(address: str, tls: docker.tls.TLSConfig | None, seconds: float) -> docker.DockerClient:
    """A client that ignores HTTP_PROXY, as requests may contain keys.

    Docker's own tools use no proxy for this machine either.
    """
    import docker

    class Direct(docker.APIClient):  # type: ignore[misc]  # docker has no types
        trust_env = property(lambda _: False, lambda *_: None)

        def send(self, request: Any, **options: Any) -> Any:
            """The complete response, of at most `MOST_BYTES`; or a stream.

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
                return super()._result(response, json, binary)
            except (ValueError, RecursionError) as reason:
                raise OSError(f"answers with unreadable JSON ({reason})") from None

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
            """The events of a build or a pull, one per line. The SDK's own has no limit of size."""
            with contextlib.closing(_lines(response)) as lines:
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
    """The body of ``response``. Raises OSError for more than `MOST_BYTES`."""
    content = bytearray()
    for part in response.iter_content(2**16):
        content += part
        if len(content) > MOST_BYTES:
            response.close()
            raise _too_long()
    return bytes(content)


def _lines(response: Any) -> Generator[bytes, None, None]:
    """The lines of a stream, when they arrive. Raises OSError for a line of `MOST_LINE` bytes."""
    rest = bytearray()
    try:
        for part in response.iter_content(2**16):
            rest += part
            *lines, rest = rest.split(b"\n")
            if len(rest) > MOST_LINE:
                raise OSError(f"answers with a line of more than {MOST_LINE // 2**20} MiB")
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
    return OSError(f"answers with more than {MOST_BYTES // 2**20} MiB")


def _frames(response: Any) -> tuple[bytearray, bytearray, bytearray]:
    """The output of a command until the end of the connection: all of it, stdout and stderr.

    https://docs.docker.com/reference/api/engine/version/v1.41/#tag/Container/operation/ContainerAttach
    Raises OSError for more than `MOST_BYTES`, and for a stream that a command does not have.
    """
    stream, both, outputs = response.raw._fp.fp, bytearray(), (bytearray(), bytearray())
    while head := stream.read(_FRAME_HEAD):
        number, size = head[0], int.from_bytes(head[4:], "big")
        if number not in (1, 2):
            raise OSError(f"answers with a stream {number}, which no command has")
        if len(both) + size > MOST_BYTES:
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


def another_form(error: Exception) -> str:
    """The text about an answer that raised ``error``, one of `UNREADABLE`."""
    detail = f"{type(error).__name__}: {root_cause(error)}"
    return f"gives an answer of another form than Docker's ({detail})"


def root_cause(error: Exception) -> str:
    """The root cause of an error of Docker's SDK, on one line."""
    from docker.errors import APIError

    cause = _bottom(error)
    if isinstance(cause, APIError):
        text = str(cause.explanation or cause)
    else:
        text = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    text = " ".join(text.split())
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."


def _bottom(error: BaseException) -> BaseException:
    """The engine's own answer, or else the first exception in the chain of ``error``."""
    from docker.errors import APIError

    while not isinstance(error, APIError):
        below = next(
            (argument for argument in error.args if isinstance(argument, BaseException)), None
        )
        below = below or getattr(error, "reason", None) or error.__cause__ or error.__context__
        if not isinstance(below, BaseException):
            break
        error = below
    return error


def _remedy(error: Exception, detail: str, folder: Path | None) -> str:
    """The fix for an engine whose connection failed with ``error``."""
    if isinstance(error, PermissionError):
        return BE_ALLOWED
    cause = _bottom(error)
    if folder is None or not isinstance(cause, ssl.SSLError):
        # the text of servers in Go for a client without TLS
        needs_tls = folder is None and "HTTP request to an HTTPS server" in detail
        return f"say where its certificates are: {_CERTIFICATES}" if needs_tls else GET_ONE
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"put the authority that has signed the engine's certificate into {folder}/ca.pem "
            f"({_CERTIFICATES}); or give the engine one that is for the name in its address and "
            "has not expired"
        )
    if cause.reason == "WRONG_VERSION_NUMBER":
        return (
            "name the port on which the engine takes TLS (`dockerd --tlsverify`, as a rule 2376); "
            f"or, for one that takes none, no certificates: {_CERTIFICATES}"
        )
    return (
        f"see that {folder} holds PEM files, that key.pem is the key of cert.pem, and that the "
        "engine trusts the authority of cert.pem (`dockerd --tlscacert`); the folder is "
        f"{_CERTIFICATES}"
    )


def _knock(address: str, seconds: float) -> None:
    """Raises OSError for a socket of this machine on which no process listens.

    The SDK does, too, but does not close its own socket.
    """
    if is_here(address):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(seconds)
            probe.connect(unquote(urlsplit(address).path))


def _tls(folder: Path, address: str) -> docker.tls.TLSConfig:
    files = [folder / name for name in _FILES]
    missing = [str(file) for file in files if not file.is_file()]
    if missing:
        raise EarshotError(
            f"Docker engine at {address}",
            observed=f"its certificates are not in {folder}: no {', '.join(missing)}",
            allowed=f"a folder with {', '.join(_FILES)}",
        )
    return certified(folder)


def _folder(host: HasEngine, address: str, environment: Mapping[str, str]) -> Path | None:
    """The folder of the certificates for the engine; None without TLS."""
    folder = host.cert_path
    if folder is None and host.engine is None and environment.get("DOCKER_TLS_VERIFY"):
        folder = environment.get("DOCKER_CERT_PATH") or str(Path.home() / ".docker")
    if folder is None or not address.startswith("tcp://"):
        return None
    return Path(folder).expanduser()


def certified(folder: Path) -> docker.tls.TLSConfig:
    """TLS with the certificates in ``folder``, which trusts only the authority there."""
    from docker.tls import TLSConfig

    class Own(TLSConfig):  # type: ignore[misc]  # docker has no types
        def configure_client(self, client: docker.APIClient) -> None:
            super().configure_client(client)
            client.trust_env = False  # REQUESTS_CA_BUNDLE would override the folder's authority

    authority, certificate, key = (str(folder / name) for name in _FILES)
    return Own(client_cert=(certificate, key), ca_cert=authority, verify=True)
