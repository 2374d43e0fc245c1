"""The control probe: tells a broken vantage from a broken listener, after a cell failed.

If no DNS server answers, or this vantage has no route, the failed cells prove nothing: the cells
and the vantage become inconclusive. Failures with an answer stay failures: a name that a server
reports as missing, a refused connection, different metadata.

The probe runs only after a failure.
"""

import ipaddress
import socket
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from earshot.doctor.probe import resolve
from earshot.files.open_files import raise_limit
from earshot.listeners.listed import briefly
from earshot.names.configured import nameservers
from earshot.names.lookup import Diagnosis, Lookup
from earshot.names.resolvers import DNS_PORT
from earshot.validation.result import Cell, Report
from earshot.validation.terms import Stage, Verdict

LIMIT: Final = 3.0
"""Seconds to wait for DNS servers, and again for repeated lookups."""
TRIES: Final = 2
FILES_OF_ADDRESS: Final = 5
"""Files that the clients of one address need: sockets, and a pipe per broker and client."""
SPARE_FILES: Final = 20
UNANSWERED: Final = frozenset({"resolver-timeout", "resolver-failure"})
"""Causes of the resolve stage for which no server has answered about the name."""
DOUBTFUL: Final = frozenset({Stage.TCP, Stage.PRODUCE, Stage.CONSUME})
"""Stages that fail without a network. In the other stages a server has answered."""
CERTAIN: Final = frozenset({"refused", "no-port"})
"""Causes at these stages that do not depend on the network."""
ROOT_SERVERS: Final = ("198.41.0.4", "2001:503:ba3e::2:30")
"""A root DNS server's IPv4 and IPv6 address, to look up the default route. No packet is sent."""

_UNKNOWN: Final = (Diagnosis.TIMEOUT, Diagnosis.SERVER_FAILURE)


def server_answers(server: str, limit: float, port: int = DNS_PORT) -> bool:
    """True if the DNS server at IP address ``server`` answers within ``limit`` seconds.

    SERVFAIL does not count as an answer: a forwarder without an upstream server returns it.
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
    """True if this machine has a route to the IP address ``address``. No packet is sent."""
    family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
    except OSError:
        return False
    return True


@dataclass(frozen=True)
class OwnNetwork:
    """The lookups of the control probe, from the machine or container of this process."""

    servers: Callable[[], Sequence[str]] = nameservers
    """The IP addresses of the configured DNS servers."""
    server_answers: Callable[[str, float], bool] = server_answers
    """True if a DNS server (IP address) answers within a limit (s)."""
    resolve: Callable[[Iterable[str], float], Mapping[str, Lookup]] = resolve
    has_route: Callable[[str], bool] = has_route
    may_open: Callable[[int], int] = raise_limit
    """The limit of open files, raised to a number if possible."""


def mark_broken_vantage(
    report: Report, vantage: str, limit: float = LIMIT, place: OwnNetwork | None = None
) -> Report:
    """``report`` with the vantage and its failed cells inconclusive, if this vantage is broken.

    ``vantage`` is the name of this place in the report. ``limit`` in seconds bounds each of two
    consecutive probes: lookups, then DNS servers.
    """
    doubtful_cells = [
        cell for cell in report.cells if cell.vantage == vantage and _may_be_vantage_failure(cell)
    ]
    if not doubtful_cells:
        return report
    place = place or OwnNetwork()
    if few_files := _few_files({cell.address for cell in report.cells}, place):
        reasons = dict.fromkeys((cell.address.host for cell in doubtful_cells), few_files)
    elif not (reasons := _reasons(doubtful_cells, place, limit)):
        return report
    cells = tuple(
        _inconclusive_cell(cell, reasons[cell.address.host])
        if cell in doubtful_cells and cell.address.host in reasons
        else cell
        for cell in report.cells
    )
    changes = {"verdict": Verdict.INCONCLUSIVE, "reason": next(iter(reasons.values()))}
    vantages = tuple(
        entry.model_copy(update=changes) if entry.name == vantage else entry
        for entry in report.vantages
    )
    return report.model_copy(update={"cells": cells, "vantages": vantages})


def _may_be_vantage_failure(cell: Cell) -> bool:
    if cell.verdict is not Verdict.FAIL or cell.cause is None:
        return False
    if cell.failed_stage is Stage.RESOLVE:
        return cell.cause.kind in UNANSWERED
    return cell.failed_stage in DOUBTFUL and cell.cause.kind not in CERTAIN


def _few_files(addresses: Collection[object], place: OwnNetwork) -> str:
    """Why this process may open too few files for clients of ``addresses``; else empty."""
    needed = SPARE_FILES + FILES_OF_ADDRESS * len(addresses)
    if (limit := place.may_open(needed)) >= needed:
        return ""
    return (
        f"this process may open only {limit} files, and the check of {len(addresses)} addresses "
        f"needs up to {needed}: raise its limit (`ulimit -n`)"
    )


def _reasons(cells: Sequence[Cell], place: OwnNetwork, limit: float) -> dict[str, str]:
    """Maps each host that cannot be checked from here to the reason."""
    unresolved = {cell.address.host for cell in cells if cell.failed_stage is Stage.RESOLVE}
    resolved_hosts = {cell.address.host for cell in cells} - unresolved
    lookups = place.resolve(sorted(resolved_hosts), limit) if resolved_hosts else {}
    unresolved |= {host for host, lookup in lookups.items() if lookup.diagnosis in _UNKNOWN}
    reasons = {}
    if unresolved and (silent := _no_dns(place, limit)):
        reasons = {
            host: f"{silent}, so nothing is known about {host}" for host in sorted(unresolved)
        }
    cut_off = not any(map(place.has_route, ROOT_SERVERS))
    for host, lookup in lookups.items():
        if cut_off and lookup.ok and not any(map(place.has_route, lookup.addresses)):
            ips = briefly(lookup.addresses)
            reasons[host] = f"this vantage has no network: no route to {ips}, and none to anywhere"
    return reasons


def _no_dns(place: OwnNetwork, limit: float) -> str:
    """Why this vantage cannot resolve names; empty if it can."""
    servers = tuple(place.servers())
    if not servers:
        return "this vantage has no DNS server"
    with ThreadPoolExecutor(len(servers), thread_name_prefix="control") as pool:
        if any(pool.map(lambda server: place.server_answers(server, limit), servers)):
            return ""
    return f"no DNS server of this vantage answers ({', '.join(servers)}: nothing in {limit:g} s)"


def _inconclusive_cell(cell: Cell, reason: str) -> Cell:
    """``cell`` as inconclusive for ``reason``. The failed stage keeps its observation."""
    stages = tuple(
        stage.model_copy(update={"verdict": Verdict.INCONCLUSIVE})
        if stage.verdict is Verdict.FAIL
        else stage
        for stage in cell.stages
    )
    changes = {"verdict": Verdict.INCONCLUSIVE, "stages": stages, "cause": None, "reason": reason}
    return cell.model_copy(update=changes)
