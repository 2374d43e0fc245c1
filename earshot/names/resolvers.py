"""This machine's system resolver, and the text form of a DNS server.

Source: gai_strerror(3) for getaddrinfo's failures.
"""

from __future__ import annotations

import ipaddress
import socket
import time

from earshot.errors import AddressError
from earshot.listeners.address import Address, check_port
from earshot.names.lookup import Diagnosis, Lookup

DNS_PORT = 53
SYSTEM_LABEL = "this machine (hosts file included)"

_SYSTEM_FAILURES = {
    socket.EAI_NONAME: Diagnosis.NXDOMAIN,
    socket.EAI_AGAIN: Diagnosis.SERVER_FAILURE,
    socket.EAI_FAIL: Diagnosis.SERVER_FAILURE,
} | {
    getattr(socket, name): Diagnosis.NO_ANSWER
    for name in ("EAI_NODATA", "EAI_ADDRFAMILY")
    if hasattr(socket, name)  # not on every system
}


class SystemResolver:
    """`getaddrinfo`, which clients on this machine use: with the hosts file and mDNS."""

    label = SYSTEM_LABEL

    def resolve(self, name: str, seconds: float) -> Lookup:
        """Ignores ``seconds``, as getaddrinfo has no time limit; the batch has one."""
        start = time.monotonic()
        try:
            if "\0" in name:  # the C library would look up only the text before it
                raise ValueError("it contains a null character")
            rows = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        except OSError as error:  # gaierror, or a failure of the system
            diagnosis = _SYSTEM_FAILURES.get(error.errno or 0, Diagnosis.SERVER_FAILURE)
            elapsed = time.monotonic() - start
            return Lookup(name, self.label, diagnosis, (), elapsed, error.strerror or str(error))
        except ValueError as error:  # IDNA cannot encode the name, so it cannot exist
            return Lookup(name, self.label, Diagnosis.NXDOMAIN, (), 0.0, str(error))
        addresses = dict.fromkeys(str(row[4][0]) for row in rows)
        return Lookup(name, self.label, Diagnosis.OK, tuple(addresses), time.monotonic() - start)


def parse_server(text: str) -> Address:
    """The address of a DNS server: `ip`, `ip:port` or `[ipv6]:port`, by default port 53.

    Raises AddressError.
    """
    host, port = text, str(DNS_PORT)
    if text.startswith("[") and "]" in text:
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":") if rest else port
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    try:
        return Address(str(ipaddress.ip_address(host)), check_port(port))
    except ValueError:
        raise AddressError(
            f"DNS server {text!r}",
            observed="is not an IP address",
            allowed="ip, ip:port or [ipv6]:port, as in 192.0.2.53 or [2001:db8::53]:5353",
        ) from None
