"""Resolves a host, connects to it by TCP and makes the TLS handshake, before any Kafka request."""

from __future__ import annotations

import errno
import socket
import ssl
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from earshot.errors import EarshotError
from earshot.listeners.address import MAX_NAME, MAX_PORT, Address, bracketed
from earshot.listeners.listed import clipped, shortened
from earshot.names.configured import configuration
from earshot.names.lookup import Diagnosis, Lookup, look_up
from earshot.names.resolvers import SystemResolver
from earshot.validation.deadline import Deadline
from earshot.validation.failure import Failure, refuses_certificate

RESOLVE_LIMIT: Final = 3.0
"""Seconds for all lookups together."""
EXPLAIN_LIMIT: Final = 1.5
"""Seconds for asking each DNS server about a name that did not resolve."""
CONNECT_LIMIT: Final = 2.0
"""Seconds per IP address."""
MAX_ATTEMPTS: Final = 16
"""The maximum number of IP addresses tried per name: a name may have thousands."""
MAX_NAMES: Final = 20
"""The maximum number of a certificate's names in a message."""
CONTROL_NAME: Final = "localhost"
"""A name that every working vantage resolves (RFC 6761)."""


@dataclass(frozen=True)
class Attempt:
    """One attempt to connect to one IP address by TCP; `error` is empty if it succeeded."""

    address: str
    error: str
    seconds: float

    def __str__(self) -> str:
        if not self.error:
            return f"{self.address} connected"
        return f"{self.address} {PHRASES.get(self.error, self.error)}"


PHRASES: Final[Mapping[str, str]] = {
    "refused": "refused the connection",
    "timeout": "did not answer in time",
    "no-route": "has no route from here",
    "reset": "closed the connection",
    "no-port": f"has a port that no client can connect to (they go from 1 to {MAX_PORT})",
}
_ERRNOS: Final = {
    errno.ECONNREFUSED: "refused",
    errno.ETIMEDOUT: "timeout",
    errno.ENETUNREACH: "no-route",
    errno.EHOSTUNREACH: "no-route",
    errno.EADDRNOTAVAIL: "no-route",
    errno.EAFNOSUPPORT: "no-route",
    errno.ECONNRESET: "reset",
    errno.ECONNABORTED: "reset",
}


@dataclass(frozen=True)
class Handshake:
    """A successful TLS handshake. The broker's name is checked if the client properties require
    it."""

    version: str
    days_left: int | None
    """Whole days until the certificate expires; None if it could not be read."""
    seconds: float
    cipher: str = ""
    names: tuple[str, ...] = ()
    """The certificate's subject alternative names; empty if it could not be read."""


@dataclass(frozen=True)
class OtherCertificate(Failure):
    """A certificate of a trusted authority that does not cover the host."""

    names: tuple[str, ...] = ()
    """The certificate's subject alternative names."""


@dataclass(frozen=True)
class Contact:
    """The results of lookup, TCP connection and TLS handshake for ``address``, up to a failure."""

    address: Address
    lookup: Lookup
    attempts: tuple[Attempt, ...] = ()
    security: Handshake | Failure | None = None

    @property
    def connected(self) -> bool:
        return bool(self.attempts) and not self.attempts[-1].error

    @property
    def dead_first(self) -> tuple[Attempt, ...]:
        """Failed attempts before another IP address of the same name connected."""
        return self.attempts[:-1] if self.connected else ()


def resolve(hosts: Iterable[str], limit: float = RESOLVE_LIMIT) -> dict[str, Lookup]:
    """Looks up every host with `getaddrinfo`, each name once, all within ``limit`` seconds."""
    resolver = SystemResolver()
    names = list(hosts)
    lookups = look_up([(host, resolver) for host in names], seconds=limit)
    return {host: lookups[host.lower(), resolver.label] for host in names}


def with_server_answers(lookup: Lookup, limit: float = EXPLAIN_LIMIT) -> Lookup:
    """``lookup``, with a hint if the name failed although one of this machine's DNS servers
    resolves it.

    The system's resolver stops at the first server that denies a name, even if the next one (of a
    VPN, for example) resolves it. ``limit`` is in seconds. A single server is not asked again.
    """
    is_denied = lookup.diagnosis in (Diagnosis.NXDOMAIN, Diagnosis.NO_ANSWER)
    servers = configuration().servers if is_denied and "." in lookup.name and limit > 0 else ()
    if len(servers) < 2:
        return lookup
    from earshot.names.nameservers import DnsResolver  # slow to import

    lookups = DnsResolver(servers).resolve(lookup.name, limit)
    resolving_servers = [lookup.resolver for lookup in lookups.each if lookup.ok]
    if not resolving_servers:
        return lookup
    servers_text = " and ".join(resolving_servers)
    hint = f"the DNS server {servers_text} resolves it, but another one denied it first"
    return replace(lookup, detail="; ".join(filter(None, (lookup.detail, hint))))


def vantage_resolves() -> bool:
    """True if this vantage resolves `CONTROL_NAME`. If not, a failed lookup proves nothing."""
    return resolve([CONTROL_NAME])[CONTROL_NAME].ok


def reach(
    address: Address,
    lookup: Lookup,
    context: ssl.SSLContext | None = None,
    limit: float = CONNECT_LIMIT,
    end: Deadline | None = None,
) -> Contact:
    """Connects to the IP addresses of ``lookup`` in order until one answers, as clients do.

    With ``context`` a TLS handshake follows, which checks the advertised name. ``limit`` is in
    seconds, for each attempt and for the handshake; ``end`` bounds all of them. At most
    `MAX_ATTEMPTS` addresses are tried.
    """
    attempts: list[Attempt] = []
    for ip in lookup.addresses[:MAX_ATTEMPTS]:
        if attempts and end is not None:
            if not end.left():
                break
            limit = max(0.05, end.left(limit))
        place, start = f"{bracketed(ip)}:{address.port}", time.monotonic()
        # the C library would reduce a larger port modulo 2^16
        if not 1 <= address.port <= MAX_PORT:
            attempts.append(Attempt(place, "no-port", 0.0))
            continue
        try:
            connection = socket.create_connection((ip, address.port), timeout=limit)
        except OSError as error:
            attempts.append(Attempt(place, _error_word(error), time.monotonic() - start))
            continue
        with connection:
            attempts.append(Attempt(place, "", time.monotonic() - start))
            security = _handshake(connection, address, ip, context) if context else None
        return Contact(address, lookup, tuple(attempts), security)
    return Contact(address, lookup, tuple(attempts))


def connects(address: Address, limit: float) -> bool:
    """True if ``address`` accepts a connection. ``limit`` (in seconds) is for the lookup and for
    each attempt."""
    return reach(address, resolve([address.host], limit)[address.host], None, limit).connected


def tls_context(client: Mapping[str, Any]) -> ssl.SSLContext:
    """The TLS context for ``client`` (librdkafka's properties). Raises EarshotError for files that
    cannot be read."""
    has_own_authority = "ssl.ca.location" in client or "ssl.ca.pem" in client
    context = (
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if has_own_authority
        else ssl.create_default_context()
    )
    context.check_hostname = client.get("ssl.endpoint.identification.algorithm") != "none"
    try:
        if has_own_authority:
            file, text = client.get("ssl.ca.location"), client.get("ssl.ca.pem")
            context.load_verify_locations(cafile=file, cadata=text)
        # never None: OpenSSL would prompt on the terminal
        password = client.get("ssl.key.password", "")
        if "ssl.certificate.location" in client:
            chain, key = client["ssl.certificate.location"], client.get("ssl.key.location")
            context.load_cert_chain(chain, key, password)
        elif "ssl.certificate.pem" in client:
            with tempfile.NamedTemporaryFile("w") as key_and_chain:  # only files can be loaded
                key_and_chain.write(
                    f"{client.get('ssl.key.pem', '')}\n{client['ssl.certificate.pem']}\n"
                )
                key_and_chain.flush()
                context.load_cert_chain(key_and_chain.name, None, password)
    except (OSError, ValueError, TypeError) as reason:  # a null character; PEM beyond ASCII
        raise EarshotError(
            "the client properties ssl.*",
            observed=f"name a certificate or key that cannot be read ({reason})",
            allowed="PEM files: ssl.truststore.location for the authority, "
            "ssl.keystore.location for a client's own key and chain",
        ) from None
    if str(client.get("enable.ssl.certificate.verification", "true")).lower() == "false":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _error_word(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "timeout"
    return _ERRNOS.get(error.errno or 0, (error.strerror or str(error)).lower())


def _handshake(
    connection: socket.socket, address: Address, ip: str, context: ssl.SSLContext
) -> Handshake | Failure:
    try:  # validate the name first: an error in wrap_socket would leave the connection open
        context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname=address.host)
    except (TypeError, ValueError) as error:
        return Failure("certificate-name", f"no certificate can be for {address.host!r} ({error})")
    start = time.monotonic()
    try:
        with context.wrap_socket(connection, server_hostname=address.host) as secured:
            seconds = time.monotonic() - start
            certificate = secured.getpeercert() or {}
            version, cipher = secured.version() or "TLS", secured.cipher() or ("",)
            return Handshake(
                version, _days_left(certificate), seconds, cipher[0], _names(certificate)
            )
    except ssl.SSLCertVerificationError as error:
        text = error.verify_message
        if error.verify_code in _NAME_MISMATCH:
            names = _names_at((ip, address.port), address.host, context)
            return OtherCertificate(
                "certificate-name", f"the certificate is for {names_listed(names)}", names=names
            )
        if error.verify_code in _VALIDITY_ERRORS:
            text += f" (by the clock of this machine it is {datetime.now(UTC):%Y-%m-%d %H:%M} UTC)"
        if error.verify_code in _UNFIT:
            return Failure("certificate-unfit", text)
        return Failure(_VALIDITY_ERRORS.get(error.verify_code, "certificate-untrusted"), text)
    except TimeoutError:
        return Failure("timeout", "the handshake did not end in time")
    except (ssl.SSLError, OSError) as error:
        # a listener without TLS closes the connection or answers with other bytes
        word = "protocol"
        if "ALERT" in str(error).upper():
            word = "client-certificate" if refuses_certificate(str(error)) else "tls"
        return Failure(word, getattr(error, "reason", None) or str(error))


_VALIDITY_ERRORS: Final = {  # X509_V_ERR_CERT_NOT_YET_VALID, …_CERT_HAS_EXPIRED
    9: "certificate-not-yet-valid",
    10: "certificate-expired",
}
_UNFIT: Final = (24, 25, 26, 32, 66, 67, 68, 79)
"""X509_V_ERR_INVALID_CA (two numbers), …_PATH_LENGTH_EXCEEDED, …_INVALID_PURPOSE,
…_KEYUSAGE_NO_CERTSIGN, …_EE_KEY_TOO_SMALL, …_CA_KEY_TOO_SMALL, …_CA_MD_TOO_WEAK."""
_NAME_MISMATCH: Final = (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH, …_IP_ADDRESS_MISMATCH


def _names_at(peer: tuple[str, int], host: str, context: ssl.SSLContext) -> tuple[str, ...]:
    """The names of the certificate at ``peer``, from a handshake that checks only the chain."""
    nameless = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    nameless.check_hostname = False
    for der in context.get_ca_certs(binary_form=True):
        nameless.load_verify_locations(cadata=der)
    try:
        with (
            socket.create_connection(peer, timeout=CONNECT_LIMIT) as connection,
            nameless.wrap_socket(connection, server_hostname=host) as secured,
        ):
            certificate = secured.getpeercert() or {}
    except OSError:
        return ("other names",)
    return _names(certificate) or ("no name at all (no subjectAltName)",)


def names_listed(names: Sequence[str]) -> str:
    """The ``names`` of a certificate as text, shortened beyond `MAX_NAMES`."""
    return shortened(names) if len(names) > MAX_NAMES else ", ".join(names)


def _names(certificate: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(clipped(str(name[1]), MAX_NAME) for name in certificate.get("subjectAltName", ()))


def _days_left(certificate: Mapping[str, Any]) -> int | None:
    if "notAfter" not in certificate:
        return None
    return int((ssl.cert_time_to_seconds(certificate["notAfter"]) - time.time()) // 86400)
