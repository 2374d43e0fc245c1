"""Checks a report that another machine has sent."""

from earshot.doctor.targets import targets_of
from earshot.errors import EarshotError
from earshot.report.json import read_report
from earshot.validation.contract import Contract
from earshot.validation.result import Report


def checked_report(answer: bytes, source: str, contract: Contract, vantage: str) -> Report:
    """The report in ``answer``; ``source`` names it.

    Raises EarshotError unless it is of the cluster of ``contract`` and has every cell of it from
    ``vantage``.
    """
    report = read_report(answer, source)
    allowed = "a report on the contract of the order"
    if report.cluster != contract.cluster:
        observed = f"is of cluster {report.cluster}, not of {contract.cluster}"
        raise EarshotError(source, observed=observed, allowed=allowed)
    reported_cells = {
        (cell.listener, cell.broker, cell.address)
        for cell in report.cells
        if cell.vantage == vantage
    }
    expected_cells = {
        (target.listener, target.broker, target.address) for target in targets_of(contract)
    }
    if missing_cells := sorted(expected_cells - reported_cells):
        listener, broker, address = missing_cells[0]
        observed = f"has no cell for {listener} of broker {broker} ({address}) from {vantage}"
        raise EarshotError(source, observed=observed, allowed=allowed)
    return report
