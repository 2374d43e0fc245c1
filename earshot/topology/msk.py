"""The ports of Amazon MSK brokers, which are recognised by their names.

Source: https://docs.aws.amazon.com/msk/latest/developerguide/port-info.html
"""

import re

from earshot.listeners.address import Address

_MSK = re.compile(
    r"b-[0-9]+(-public)?\.[a-z0-9-]+\.[a-z0-9]+\.c[0-9]+\.kafka\.[a-z0-9-]+\.amazonaws\.com",
    re.ASCII | re.IGNORECASE,
)
_PRIVATE = frozenset({9092, 9094, 9096, 9098})
_PUBLIC = frozenset({9194, 9196, 9198})
_BETWEEN = 100
"""Difference between the public and the private port of one authentication type."""


def is_msk_broker(host: str) -> bool:
    """Whether ``host`` is a broker of MSK."""
    return _MSK.fullmatch(host) is not None


def corrected_address(address: Address) -> Address | None:
    """The right address for an MSK broker whose name is public and whose port is private, or vice
    versa; otherwise None."""
    match = _MSK.fullmatch(address.host)
    if match is None:
        return None
    if match[1] and address.port in _PRIVATE:
        port = address.port + _BETWEEN
        return Address(address.host, port) if port in _PUBLIC else None
    if not match[1] and address.port in _PUBLIC:
        return Address(address.host, address.port - _BETWEEN)
    return None
