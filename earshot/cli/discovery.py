"""Builds a contract from a running cluster's own answers."""

from collections.abc import Mapping, Sequence

from earshot.doctor.doctor import examine
from earshot.doctor.draft import Draft
from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol
from earshot.validation.client import protocol_of
from earshot.validation.contract import (
    Advertised,
    AnsweredAddress,
    Contract,
    ContractBroker,
    ContractListener,
)
from earshot.validation.result import Cell, Report

LOOK_SECONDS = 10.0


class NoBrokerAnswered(Exception):
    """No broker answered at the addresses that were given; ``report`` says why."""

    def __init__(self, report: Report) -> None:
        self.report = report
        super().__init__("no broker answers there")


def discover(
    bootstrap: Sequence[Address],
    client: Mapping[str, str],
    vantage: str = "host",
    draft: Draft | None = None,
) -> tuple[Contract, tuple[str, ...], tuple[Cell, ...]]:
    """The contract of what answers at ``bootstrap``, notes that say what its names mean, and the
    cells of those addresses that named no broker.

    ``draft`` has the doctor's report as far as it has come. Raises NoBrokerAnswered.
    """
    seen = examine(
        list(bootstrap),
        client=client,
        deadline=LOOK_SECONDS,
        vantage=vantage,
        produce=False,
        draft=draft,
    )
    unknown = tuple(cell for cell in seen.cells if cell.broker < 0)
    return *contract_of(seen, protocol_of(client)), unknown


def contract_of(seen: Report, protocol: Protocol) -> tuple[Contract, tuple[str, ...]]:
    """The contract that the brokers of ``seen`` advertise, and notes on the names in it.

    The names of listeners are not known outside a cluster, so each group of addresses that
    leads to the same metadata is called LISTENER_1 and so on. Raises NoBrokerAnswered.
    """
    groups: dict[str, list[Cell]] = {}
    for cell in seen.cells:
        if cell.broker >= 0:
            groups.setdefault(cell.listener, []).append(cell)
    if not groups:
        raise NoBrokerAnswered(seen)
    listeners, notes = [], []
    advertised: dict[int, dict[str, Advertised]] = {}
    for number, (asked, cells) in enumerate(groups.items(), start=1):
        name = f"LISTENER_{number}"
        notes.append(f"{name} is what {asked} led to")
        bootstrap = ",".join(str(cell.address) for cell in cells)
        listeners.append(
            ContractListener(name=name, protocol=protocol, scopes=(), bootstrap=bootstrap)
        )
        for cell in cells:
            host, port = cell.address
            advertised.setdefault(cell.broker, {})[name] = AnsweredAddress(host=host, port=port)
    contract = Contract(
        cluster=seen.cluster,
        cluster_id=seen.cluster_id or None,
        placement="",
        kafka_version="",
        listeners=tuple(listeners),
        brokers=tuple(
            ContractBroker(id=it, advertised=advertised[it]) for it in sorted(advertised)
        ),
    )
    return contract, tuple(notes)
