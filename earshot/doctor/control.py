"""The control probe: when a cell failed, whether the place it was seen from can do its part at all.

A place whose DNS servers are all silent says nothing about a name, and one without a network says
nothing about an address: such cells are inconclusive, and so is the vantage. A name that a server
says does not exist, an address that refuses, metadata that differs: those were seen, and stay.

It is asked only when something failed, and right then, so that all being well costs nothing.
"""

import ipaddress
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from earshot.doctor.probe import resolve
from earshot.names.configured import nameservers
from earshot.names.lookup import Diagnosis, Lookup
from earshot.names.resolvers import DNS_PORT
from earshot.validation.result import Cell, Report
from earshot.validation.terms import Stage, Verdict

LIMIT: Final = 3.0
"""Seconds for a DNS server's answer, and for looking names up again."""
TRIES: Final = 2
UNANSWERED: Final = frozenset({"resolver-timeout", "resolver-failure"})
"""Causes of the resolve stage that say nothing about the name."""
DOUBTFUL: Final = frozenset({Stage.TCP, Stage.PRODUCE, Stage.CONSUME})
"""Stages that fail where the network is gone; in the others a server has answered."""
CERTAIN: Final = frozenset({"refused", "no-port"})
"""Causes at one of these stages that no network would change."""
WORLD: Final = ("198.41.0.4", "2001:503:ba3e::2:30")
"""A root DNS server: every machine with a default route has one to it. Nothing is sent there."""

_UNKNOWN: Final = (Diagnosis.TIMEOUT, Diagnosis.SERVER_FAILURE)


def hears(server: str, limit: float, port: int = DNS_PORT) -> bool:
    """Whether the DNS server at the address ``server`` answers a question that any server knows.

    Any answer counts but SERVFAIL: a forwarder answers it if no server is behind it.
    """
    import dns.exception
    import dns.message
    import dns.query
    import dns.rcode

    question = dns.message.make_query(".", "SOA")
    for _ in range(TRIES):
        try:
            reply = dns.query.udp(question, server, timeout=limit / TRIES, port=port)
        except (OSError, ValueError, dns.exception.DNSException):
            continue  # a packet may be lost
        return reply.rcode() != dns.rcode.SERVFAIL
    return False


def has_route(address: str) -> bool:
    """Whether this machine would know where to send a packet for ``address``; none is sent."""
    family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
    except OSError:
        return False
    return True


@dataclass(frozen=True)
class OwnNetwork:
    """What can be asked of the place that this process runs at: this very machine, or container."""

    servers: Callable[[], Sequence[str]] = nameservers
    """Its DNS servers."""
    hears: Callable[[str, float], bool] = hears
    """Whether a DNS server answers anything within some seconds."""
    resolve: Callable[[Iterable[str], float], Mapping[str, Lookup]] = resolve
    has_route: Callable[[str], bool] = has_route


def mark_inconclusive(
    report: Report, vantage: str, limit: float = LIMIT, place: OwnNetwork | None = None
) -> Report:
    """``report`` with the failed cells of ``vantage``, which is this place, that are its own fault.

    ``limit`` in seconds bounds each of two questions, asked one after the other.
    """
    failed = [cell for cell in report.cells if cell.vantage == vantage and _may_be_ours(cell)]
    reasons = _reasons(failed, place or OwnNetwork(), limit) if failed else {}
    if not reasons:
        return report
    cells = tuple(
        _undecided(cell, reasons[cell.address.host])
        if cell in failed and cell.address.host in reasons
        else cell
        for cell in report.cells
    )
    broken = {"verdict": Verdict.INCONCLUSIVE, "reason": next(iter(reasons.values()))}
    vantages = tuple(
        item.model_copy(update=broken) if item.name == vantage else item for item in report.vantages
    )
    return report.model_copy(update={"cells": cells, "vantages": vantages})


def _may_be_ours(cell: Cell) -> bool:
    if cell.verdict is not Verdict.FAIL or cell.cause is None:
        return False
    if cell.failed_stage is Stage.RESOLVE:
        return cell.cause.kind in UNANSWERED
    return cell.failed_stage in DOUBTFUL and cell.cause.kind not in CERTAIN


def _reasons(cells: Sequence[Cell], place: OwnNetwork, limit: float) -> dict[str, str]:
    """By host, what this place lacks to say anything about it; hosts it can check are left out."""
    unresolved = {cell.address.host for cell in cells if cell.failed_stage is Stage.RESOLVE}
    others = {cell.address.host for cell in cells} - unresolved
    lookups = place.resolve(sorted(others), limit) if others else {}
    unresolved |= {host for host, lookup in lookups.items() if lookup.diagnosis in _UNKNOWN}
    reasons = {}
    if unresolved and (silent := _no_dns(place, limit)):
        reasons = {
            host: f"{silent}, so nothing is known about {host}" for host in sorted(unresolved)
        }
    cut_off = not any(map(place.has_route, WORLD))
    for host, lookup in lookups.items():
        if cut_off and lookup.ok and not any(map(place.has_route, lookup.addresses)):
            to = ", ".join(lookup.addresses)
            reasons[host] = f"this vantage has no network: no route to {to}, and none to anywhere"
    return reasons


def _no_dns(place: OwnNetwork, limit: float) -> str:
    """Why this place can resolve nothing, or an empty text."""
    servers = tuple(place.servers())
    if not servers:
        return "this vantage has no DNS server"
    with ThreadPoolExecutor(len(servers), thread_name_prefix="control") as pool:
        if any(pool.map(lambda server: place.hears(server, limit), servers)):
            return ""
    return f"no DNS server of this vantage answers ({', '.join(servers)}: nothing in {limit:g} s)"


def _undecided(cell: Cell, reason: str) -> Cell:
    """``cell``, with its failure as the observation, and this place as the cause."""
    stages = tuple(
        stage.model_copy(update={"verdict": Verdict.INCONCLUSIVE})
        if stage.verdict is Verdict.FAIL
        else stage
        for stage in cell.stages
    )
    changes = {"verdict": Verdict.INCONCLUSIVE, "stages": stages, "cause": None, "reason": reason}
    return cell.model_copy(update=changes)
