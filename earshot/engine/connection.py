"""Connects to a Docker engine: this machine's socket, `ssh://`, or `tcp://` with TLS."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import struct
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from earshot.engine.client import new_client
from earshot.engine.ssh import tunnel
from earshot.errors import EarshotError

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
MAX_SHOWN: Final = 1000
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
FIX_NO_ENGINE: Final = (
    "start it; or install one (Debian, Ubuntu: apt-get install docker.io); or name one that "
    "answers elsewhere: `hosts[].engine` in the stack file, or DOCKER_HOST"
)
FIX_NO_PERMISSION: Final = (
    "let this user use it (usermod --append --groups docker USER, then log in again), or name "
    "another engine: `hosts[].engine` in the stack file, or DOCKER_HOST"
)
_CERTIFICATES: Final = "`hosts[].cert_path` in the stack file, or DOCKER_CERT_PATH"
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
            _check_socket(address, seconds)
            client = new_client(way.address if way else address, tls, seconds)
            stack.enter_context(contextlib.closing(client))
            client.ping()
        except (docker.errors.DockerException, OSError, ValueError) as reason:
            # requests' own are OSErrors; a version that is no number is the SDK's ValueError
            detail = (way.last_output() if way else "") or root_cause(reason)
            raise EarshotError(
                f"Docker engine at {address}",
                observed=f"does not answer ({detail})",
                remedy=_remedy(reason, detail, folder),
            ) from None
        client.api.timeout = REQUEST_SECONDS
        yield client


def another_form(error: Exception) -> str:
    """The text about an answer that raised ``error``, one of `UNREADABLE`."""
    detail = f"{type(error).__name__}: {root_cause(error)}"
    return f"gives an answer of another form than Docker's ({detail})"


def root_cause(error: Exception) -> str:
    """The root cause of an error of Docker's SDK, on one line."""
    from docker.errors import APIError

    cause = _innermost_error(error)
    if isinstance(cause, APIError):
        text = str(cause.explanation or cause)
    else:
        text = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    text = " ".join(text.split())
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def _innermost_error(error: BaseException) -> BaseException:
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
        return FIX_NO_PERMISSION
    cause = _innermost_error(error)
    if folder is None or not isinstance(cause, ssl.SSLError):
        # the text of servers in Go for a client without TLS
        needs_tls = folder is None and "HTTP request to an HTTPS server" in detail
        return f"say where its certificates are: {_CERTIFICATES}" if needs_tls else FIX_NO_ENGINE
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


def _check_socket(address: str, seconds: float) -> None:
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
    return tls_config(folder)


def _folder(host: HasEngine, address: str, environment: Mapping[str, str]) -> Path | None:
    """The folder of the certificates for the engine; None without TLS."""
    folder = host.cert_path
    if folder is None and host.engine is None and environment.get("DOCKER_TLS_VERIFY"):
        folder = environment.get("DOCKER_CERT_PATH") or str(Path.home() / ".docker")
    if folder is None or not address.startswith("tcp://"):
        return None
    return Path(folder).expanduser()


def tls_config(folder: Path) -> docker.tls.TLSConfig:
    """TLS with the certificates in ``folder``, which trusts only the authority there."""
    from docker.tls import TLSConfig

    class OwnAuthorityConfig(TLSConfig):  # type: ignore[misc]  # docker has no types
        def configure_client(self, client: docker.APIClient) -> None:
            super().configure_client(client)
            client.trust_env = False  # REQUESTS_CA_BUNDLE would override the folder's authority

    authority, certificate, key = (str(folder / name) for name in _FILES)
    return OwnAuthorityConfig(client_cert=(certificate, key), ca_cert=authority, verify=True)
