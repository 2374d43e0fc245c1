"""Who comes in: ranges of addresses, members of security groups, and what cannot be read.

Source: the VPC guide on security group rules (a rule that names a group matches its members'
private addresses).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_address, ip_network

from earshot.errors import EarshotError

IpRange = IPv4Network | IPv6Network

WORLD = ("0.0.0.0/0", "::/0")
_WIDEST = {4: 8, 6: 16}
"""No single owner was ever given more: a wider range names nobody."""


@dataclass(frozen=True)
class Members:
    """Everything that carries a security group, known here by a name or an id."""

    group: str

    def __str__(self) -> str:
        return f"group {self.group}"


@dataclass(frozen=True)
class Unread:
    """A source that cannot be read here: a value that is not known yet, a prefix list."""

    what: str

    def __str__(self) -> str:
        return self.what


Source = IpRange | Members | Unread


class Reach:
    """The addresses that several ranges have together."""

    def __init__(self, ranges: Iterable[IpRange]) -> None:
        listed = list(ranges)
        four = collapse_addresses(item for item in listed if isinstance(item, IPv4Network))
        six = collapse_addresses(item for item in listed if isinstance(item, IPv6Network))
        # joined, they lie apart and in order: by number, for there may be many
        self._ends = {4: list(map(_ends, four)), 6: list(map(_ends, six))}

    def covers(self, wanted: IpRange) -> bool:
        """Whether every address of ``wanted`` is among them."""
        first, last = _ends(wanted)
        ends = self._ends[wanted.version]
        index = bisect_right(ends, first, key=lambda pair: pair[0]) - 1
        return index >= 0 and last <= ends[index][1]


def _ends(item: IpRange) -> tuple[int, int]:
    return int(item.network_address), int(item.broadcast_address)


@dataclass(frozen=True)
class Clients:
    """Who may come in on the listeners of a scope, beside the nodes themselves."""

    internal: tuple[IpRange | Members, ...] = ()
    """The VPC's ranges, security groups, or both."""
    external: tuple[IpRange, ...] = ()
    """Ranges of clients beyond; the world only where it was written out."""


def read_range(text: str) -> IpRange:
    """``text`` as a range of clients' addresses, a single address as a range of one.

    Raises EarshotError for what is no range, and for one too wide to be anybody's; the world
    itself must be asked for in so many words, as `0.0.0.0/0` or `::/0`.
    """
    what = f"client range {text!r}"
    allowed = "an IPv4 or IPv6 range, as in 203.0.113.0/24"
    try:
        found = ip_network(text, strict=False)
    except ValueError:
        raise EarshotError(what, observed="is no range", allowed=allowed) from None
    if text in WORLD:
        return found
    address = ip_address(text.partition("/")[0])
    if found.prefixlen < found.max_prefixlen and address != found.network_address:
        observed = "has bits set beyond its prefix"
        remedy = f"write {found}, or {address} for the one address"
    elif found.prefixlen < (widest := _WIDEST[found.version]):
        observed = f"names nobody: no network is larger than a /{widest}"
        remedy = "name the clients' own ranges; the world must be asked for in so many words"
    else:
        return found
    raise EarshotError(what, observed=observed, allowed=allowed, remedy=remedy)
