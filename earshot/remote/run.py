"""Validates the listeners of each scope from where its clients are, and merges the reports.

A vantage without a process is in the report as undecided, with the reason. So an incomplete run
never passes.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final, Literal

from earshot.doctor.diagnosis import undecided
from earshot.doctor.draft import Draft
from earshot.doctor.targets import targets_of
from earshot.errors import EarshotError
from earshot.listeners.terms import Scope
from earshot.placement.standpoint import Kind, Standpoint
from earshot.report.merge import Source, merge
from earshot.spark import run as spark
from earshot.spark.run import ValidationOptions, validate
from earshot.validation.contract import Contract
from earshot.validation.deadline import Deadline, unwinding_on_sigterm
from earshot.validation.result import Report, Vantage
from earshot.validation.terms import Verdict

AT_ONCE: Final = 1
"""The maximum number of containers that validate in parallel."""

Reported = Literal["host", "container", "remote"]
"""The kind of a vantage in a report."""
_KINDS: Final[Mapping[Kind, Reported]] = {
    Kind.HERE: "host",
    Kind.CONTAINER: "container",
    Kind.INSTANCE: "remote",
    Kind.NOT_RUN: "remote",
}
_INCONCLUSIVE: Final = Verdict.INCONCLUSIVE

Say = Callable[[str], None]
Run = Callable[[Deadline], Report]
KnownReports = dict[str, Callable[[str], Report]]
"""By vantage, a function that returns its partial report, given the reason for the end."""


@dataclass(frozen=True)
class _Turn:
    """The validation at one vantage."""

    name: str
    run: Run
    here: bool = False


def validate_from(
    standpoints: Sequence[Standpoint],
    contract: Contract,
    options: ValidationOptions,
    on_event: Say = lambda text: None,
    only: Sequence[str] = (),
    known_reports: KnownReports | None = None,
) -> Report:
    """Validates the listeners of every client scope of ``contract`` from its standpoints.

    ``only`` are the names of the standpoints to use; cells of others are skipped. Listeners that a
    standpoint excludes are skipped with its reason. A scope without a standpoint, or without a
    report from its container or instance, is inconclusive with the reason. ``known_reports`` is
    filled with the partial report of each vantage.

    The deadline of ``options`` begins when the engines and the image are ready; for a validator on
    an instance, when it starts the order. Raises EarshotError if a name in ``only`` is unknown, or
    if this process itself cannot validate.
    """
    start_time, start = datetime.now(UTC), time.monotonic()
    _check(only, (standpoint.name for standpoint in standpoints))
    with contextlib.ExitStack() as engines, unwinding_on_sigterm():
        known_reports = {} if known_reports is None else known_reports
        request = _RunRequest(options, on_event, only, engines, known_reports)
        turns = [
            request.turn(scope, standpoint, contract.for_scope(scope))
            for scope in contract.scopes
            for standpoint in _of_scope(standpoints, scope) or (None,)
        ]
        turns += [_settled(report) for report in _unscoped(contract)]
        reports = _run_all(turns, Deadline(options.deadline), known_reports)
    merged = merge([Source(f"vantage {name}", report) for name, report in reports.items()])
    changes = {
        "started": start_time,
        "seconds": time.monotonic() - start,
        "run": merged.run or "none",
    }
    return merged.model_copy(update=changes)


def _of_scope(standpoints: Sequence[Standpoint], scope: Scope) -> list[Standpoint]:
    """The ``standpoints`` of ``scope``."""
    return [standpoint for standpoint in standpoints if standpoint.scope is scope]


def _check(only: Sequence[str], names: Iterable[str]) -> None:
    known_names = list(names)
    for name in only:
        if name not in known_names:
            allowed = ", ".join(known_names) or "none is known here"
            subject, observed = f"--only {name}", "is not a vantage of this cluster"
            raise EarshotError(subject, observed=observed, allowed=allowed)


@dataclass(frozen=True)
class _RunRequest:
    """The arguments of `validate_from`, and its open connections to engines."""

    options: ValidationOptions
    on_event: Say
    only: Sequence[str]
    engines: contextlib.ExitStack
    known_reports: KnownReports

    def turn(self, scope: Scope, standpoint: Standpoint | None, contract: Contract) -> _Turn:
        """The validation of ``scope`` from ``standpoint``, with its engine ready."""
        if standpoint is None:
            reason = f"no process ran where clients of scope {scope} are"
            reason += ": no standpoint is known"
            return _settled(_undecided(contract, scope, _INCONCLUSIVE, reason))
        name, kind = standpoint.name, _KINDS[standpoint.kind]
        if self.only and name not in self.only:
            reason = f"not asked for: --only {' --only '.join(self.only)}"
            return _settled(_undecided(contract, name, Verdict.SKIP, reason, kind=kind))
        excluded = {
            listener.name: why
            for listener in contract.listeners
            if (why := standpoint.leaves_out(listener.name))
        }
        if not excluded:
            return self._validation_from(standpoint, contract)
        reports = [
            _undecided(contract.with_listeners([listener_name]), name, Verdict.SKIP, why, kind=kind)
            for listener_name, why in excluded.items()
        ]
        cells = tuple(cell for report in reports for cell in report.cells)
        remaining_names = [
            listener.name for listener in contract.listeners if listener.name not in excluded
        ]
        if not remaining_names:
            return _settled(reports[0].model_copy(update={"cells": cells}))
        turn = self._validation_from(standpoint, contract.with_listeners(remaining_names))

        def with_excluded(end: Deadline) -> Report:
            report = turn.run(end)
            return report.model_copy(update={"cells": (*report.cells, *cells)})

        return replace(turn, run=with_excluded)

    def _validation_from(self, standpoint: Standpoint, contract: Contract) -> _Turn:
        """The validation of all of ``contract`` from ``standpoint``."""
        from earshot.remote.container import docker_session, validate_on

        name, options = standpoint.name, self.options

        def say(text: str) -> None:
            self.on_event(f"{name}: {text}")

        def here(end: Deadline) -> Report:
            draft = Draft(vantage=name, contract=contract)
            self.known_reports[name] = partial(spark.unfinished, draft)
            own_options = replace(options, vantage=name, deadline=end.left())
            return validate(contract, own_options, say, draft)

        def elsewhere(end: Deadline) -> Report:
            from earshot.remote.bucket import Bucket
            from earshot.remote.instance import ask

            try:
                if standpoint.kind is Kind.INSTANCE:
                    bucket = Bucket(standpoint.bucket, standpoint.region)
                    return ask(bucket, standpoint, contract, options, end, say)
                return validate_on(session, contract, options, end, say)
            except EarshotError as error:
                problem = "it is not known what is seen from there"
                return _failed_report(contract, standpoint, problem, error)

        if standpoint.kind is Kind.HERE:
            return _Turn(name, here, here=True)
        if standpoint.kind is not Kind.INSTANCE:
            try:
                opening = docker_session(standpoint, contract.cluster, say)
                session = self.engines.enter_context(opening)
            except EarshotError as error:
                return _settled(
                    _failed_report(contract, standpoint, "no process could run there", error)
                )
        return _Turn(name, elsewhere)


def _settled(report: Report) -> _Turn:
    """A turn whose ``report`` is known without a run."""
    return _Turn(report.vantages[0].name, lambda end: report)


def unfinished(
    standpoints: Sequence[Standpoint], contract: Contract, known_reports: KnownReports, reason: str
) -> Report:
    """The report of a validation that ended, for ``reason``, with the partial ``known_reports``."""
    reports = []
    for scope in contract.scopes:
        for name in [standpoint.name for standpoint in _of_scope(standpoints, scope)] or [scope]:
            so_far = known_reports.get(name)
            undecided = _undecided(contract.for_scope(scope), name, _INCONCLUSIVE, reason)
            reports.append(Source(f"vantage {name}", so_far(reason) if so_far else undecided))
    reports += [Source("listeners without a scope", report) for report in _unscoped(contract)]
    merged = merge(reports)
    return merged.model_copy(update={"run": merged.run or "none"})


def _unscoped(contract: Contract) -> list[Report]:
    """The report on listeners without a client scope, undecided; empty if there are none."""
    scopes = set(contract.scopes)
    names = [listener.name for listener in contract.listeners if not scopes & set(listener.scopes)]
    if not names:
        return []
    reason = "the contract has no scope for its clients: add `scopes`, or use --vantage NAME"
    return [
        _undecided(contract.with_listeners(names), "unknown", _INCONCLUSIVE, reason, kind="remote")
    ]


def _run_all(
    turns: Sequence[_Turn], end: Deadline, known_reports: KnownReports
) -> dict[str, Report]:
    """Runs all turns. Returns the report of each by name, in their order."""

    def run(turn: _Turn) -> Report:
        report = turn.run(end)
        known_reports[turn.name] = lambda reason: report
        return report

    pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="vantage")
    try:
        remote_futures = {turn.name: pool.submit(run, turn) for turn in turns if not turn.here}
        local_reports = {turn.name: run(turn) for turn in turns if turn.here}
        all_reports = local_reports | {
            name: future.result() for name, future in remote_futures.items()
        }
        return {turn.name: all_reports[turn.name] for turn in turns}
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        end.stop.set()  # stops running validations after an interrupt
        pool.shutdown()


def _failed_report(
    contract: Contract, standpoint: Standpoint, problem: str, error: EarshotError
) -> Report:
    """The report of a vantage that gave none. Its cells have the first line of ``error``."""
    first_line, *_ = f"{problem}: {error.object}: {error.observed.lstrip()}".splitlines()
    name, kind = standpoint.name, _KINDS[standpoint.kind]
    return _undecided(
        contract, name, _INCONCLUSIVE, first_line.rstrip(": "), f"{problem}: {error}", kind=kind
    )


def _undecided(
    contract: Contract,
    name: str,
    verdict: Verdict,
    reason: str,
    in_full: str = "",
    kind: Reported = "container",
) -> Report:
    cells = tuple(undecided(target, name, reason, verdict) for target in targets_of(contract))
    vantage = Vantage(name=name, kind=kind, verdict=verdict, reason=in_full or reason)
    return Report(
        kind="validation",
        run="",
        cluster=contract.cluster,
        cluster_id=contract.cluster_id or "",
        placement=contract.placement,
        kafka_version=contract.kafka_version,
        started=datetime.now(UTC),
        seconds=0,
        cells=cells,
        vantages=(vantage,),
    )
