"""`earshot doctor`: every broker through every listener, from here."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from earshot.cli import child_process
from earshot.cli.ending import ended_by
from earshot.cli.output import SUFFIXES, formats, refuse_outputs, show
from earshot.cli.target import target
from earshot.doctor.doctor import examine
from earshot.doctor.draft import Draft
from earshot.doctor.idle import answered, hold, notes
from earshot.doctor.survey import USUAL_DEADLINE
from earshot.errors import EarshotError
from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol, Scope
from earshot.placement_registry import in_containers
from earshot.report import Format
from earshot.validation.client import protocol_of
from earshot.validation.contract import Contract
from earshot.validation.result import Report

CLEAN_UP = 10.0
"""Seconds after the deadline for the topic's removal and the control probe of failures."""
ELSEWHERE = (
    "seen from this machine alone: listeners for clients in containers need not work from here; "
    "--scope host leaves them out, and `earshot validate` validates from where those clients are"
)


def run(
    looked_at: tuple[str | None, str | None, str | None],
    scope: str | None,
    client_config: Path | None,
    deadline: float | None,
    produce: bool,
    format: Format | None,
    output: Sequence[Path],
    *,
    idle: float | None = None,
    force: bool = False,
) -> int:
    """Examines the brokers of ``looked_at`` (stack, contract, bootstrap); the exit code.

    With ``scope``, only the listeners for its clients, which must be on this machine. With
    ``idle``, a connection to each broker is kept open for this number of seconds afterwards.
    Raises EarshotError.
    """
    files = formats(output, format, SUFFIXES)
    run_target = target(*looked_at)
    refuse_outputs([*files], [*run_target.files, *filter(None, [client_config])], force)
    client = run_target.client_properties(client_config)
    contract = (
        run_target.contract if scope is None else _for_scope(run_target.contract, Scope(scope))
    )
    seconds = deadline or USUAL_DEADLINE
    draft = Draft(contract=contract, vantage_failure=child_process.crash)

    def tell(reason: str) -> int:
        partial_report = draft.report(f"not decided: {reason}")
        show(partial_report, files, format)
        return partial_report.exit_code

    with ended_by(tell, seconds + CLEAN_UP, lambda: draft.most_threads):
        report = examine(
            contract or run_target.bootstrap,
            client=client,
            bootstrap=run_target.bootstrap if contract else (),
            deadline=seconds,
            produce=produce,
            draft=draft,
        )
    if scope is None and contract is not None and in_containers(contract.placement):
        report = report.model_copy(update={"notes": (*report.notes, ELSEWHERE)})
    has_lost_connection = False
    if idle is not None:
        idle_results = hold(_idle_places(report, contract, client), client, idle)
        report = report.model_copy(update={"notes": (*report.notes, *notes(idle_results, idle))})
        has_lost_connection = any(result.is_connected and result.error for result in idle_results)
    show(report, files, format)
    return 1 if has_lost_connection else report.exit_code


def _idle_places(
    report: Report, contract: Contract | None, client: Mapping[str, str]
) -> list[tuple[Address, Protocol]]:
    """The addresses in ``report`` that answered, with their protocols."""
    cells = answered(report.cells)
    if contract is None:
        return [(cell.address, protocol_of(client)) for cell in cells]
    protocols = {listener.name: listener.protocol for listener in contract.listeners}
    return [(cell.address, protocols[cell.listener]) for cell in cells]


def _for_scope(contract: Contract | None, scope: Scope) -> Contract:
    if contract is None:
        observed = "the purpose of a listener is not known outside its cluster"
        remedy = "name a --stack or a --contract"
        raise EarshotError(f"--scope {scope}", observed=observed, remedy=remedy)
    if scope not in contract.scopes:
        observed, allowed = "no listener of the contract is for it", ", ".join(contract.scopes)
        raise EarshotError(f"--scope {scope}", observed=observed, allowed=allowed)
    return contract.for_scope(scope)
