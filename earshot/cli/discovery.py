"""Builds a contract from a running cluster's own answers."""

from collections.abc import Mapping, Sequence

from earshot.doctor.doctor import examine
from earshot.doctor.draft import Draft
from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol
from earshot.validation.client import protocol_of
from earshot.validation.contract import (
    AdvertisedAddress,
    AnsweredAddress,
    Contract,
    ContractBroker,
    ContractListener,
)
from earshot.validation.result import Cell, Report

LOOK_SECONDS = 10.0


class NoBrokerAnswered(Exception):
    """No broker answered at the bootstrap addresses; ``report`` has the reasons."""

    def __init__(self, report: Report) -> None:
        self.report = report
        super().__init__("no broker answers there")


def discover(
    bootstrap: Sequence[Address],
    client: Mapping[str, str],
    vantage: str = "host",
    draft: Draft | None = None,
) -> tuple[Contract, tuple[str, ...], tuple[Cell, ...]]:
    """The contract of the brokers that answer at ``bootstrap``, notes that explain its names,
    and the cells of addresses that listed no broker.

    ``draft`` is filled with the doctor's partial report. Raises NoBrokerAnswered.
    """
    report = examine(
        list(bootstrap),
        client=client,
        deadline=LOOK_SECONDS,
        vantage=vantage,
        produce=False,
        draft=draft,
    )
    unknown = tuple(cell for cell in report.cells if cell.broker < 0)
    return *contract_of(report, protocol_of(client)), unknown


def contract_of(report: Report, protocol: Protocol) -> tuple[Contract, tuple[str, ...]]:
    """The contract with the addresses that the brokers of ``report`` advertise, and notes on names.

    Listener names are unknown outside a cluster. So each group of bootstrap addresses with the same
    metadata is called LISTENER_1, LISTENER_2, and so on. Raises NoBrokerAnswered.
    """
    groups: dict[str, list[Cell]] = {}
    for cell in report.cells:
        if cell.broker >= 0:
            groups.setdefault(cell.listener, []).append(cell)
    if not groups:
        raise NoBrokerAnswered(report)
    listeners, notes = [], []
    advertised: dict[int, dict[str, AdvertisedAddress]] = {}
    for number, (group, cells) in enumerate(groups.items(), start=1):
        name = f"LISTENER_{number}"
        notes.append(f"{name} is what {group} led to")
        bootstrap = ",".join(str(cell.address) for cell in cells)
        listeners.append(
            ContractListener(name=name, protocol=protocol, scopes=(), bootstrap=bootstrap)
        )
        for cell in cells:
            host, port = cell.address
            advertised.setdefault(cell.broker, {})[name] = AnsweredAddress(host=host, port=port)
    contract = Contract(
        cluster=report.cluster,
        cluster_id=report.cluster_id or None,
        placement="",
        kafka_version="",
        listeners=tuple(listeners),
        brokers=tuple(
            ContractBroker(id=id, advertised=advertised[id]) for id in sorted(advertised)
        ),
    )
    return contract, tuple(notes)
