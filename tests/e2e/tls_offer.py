"""The versions and ciphers of a TLS listener: each is requested alone, by its name in OpenSSL."""

import contextlib
import socket
import ssl
import warnings
from pathlib import Path

_VERSIONS = (
    ssl.TLSVersion.TLSv1,
    ssl.TLSVersion.TLSv1_1,
    ssl.TLSVersion.TLSv1_2,
    ssl.TLSVersion.TLSv1_3,
)


def accepted_ciphers(host: str, port: int, client: Path) -> dict[str, list[str]]:
    """The accepted ciphers by version (`TLSv1.2`), without versions that are refused.

    ``client`` is a PEM file with key and certificate, for listeners that require one.
    """
    ciphers_by_version = {}
    for version in _VERSIONS:
        ciphers = _ciphers(host, port, client, version)
        if ciphers:
            ciphers_by_version[version.name.replace("_", ".")] = ciphers
    return ciphers_by_version


def _ciphers(host: str, port: int, client: Path, version: ssl.TLSVersion) -> list[str]:
    if version is ssl.TLSVersion.TLSv1_3:  # Python cannot choose among its ciphers
        chosen = _chosen_cipher(host, port, _context(client, version))
        return [chosen] if chosen else []
    known_ciphers: list[str] = []
    while True:
        # without those that are known, until none is left that both have
        names = ":".join(
            ["ALL", "COMPLEMENTOFALL", *(f"!{name}" for name in known_ciphers), "@SECLEVEL=0"]
        )
        try:
            chosen = _chosen_cipher(host, port, _context(client, version, names))
        except ssl.SSLError:  # nothing is left to ask for
            return known_ciphers
        if not chosen:
            return known_ciphers
        known_ciphers.append(chosen)


def _context(client: Path, version: ssl.TLSVersion, ciphers: str = "") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(client)
    if ciphers:
        context.set_ciphers(ciphers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # old versions are asked for on purpose
        context.minimum_version = context.maximum_version = version
    return context


def _chosen_cipher(host: str, port: int, context: ssl.SSLContext) -> str:
    """The cipher of a connection; empty if the listener ends the handshake."""
    with (
        contextlib.suppress(ssl.SSLError, ConnectionError),
        socket.create_connection((host, port), 10) as plain_socket,
        context.wrap_socket(plain_socket, server_hostname=host) as secured,
    ):
        cipher = secured.cipher()
        return cipher[0] if cipher else ""
    return ""
