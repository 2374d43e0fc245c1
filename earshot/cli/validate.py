"""`earshot validate`: the validation with Spark of a stack, a contract or a bootstrap address."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from earshot.cli.discovery import LOOK_SECONDS, NoBrokerAnswered, discover
from earshot.cli.ending import ended_by
from earshot.cli.output import SUFFIXES, formats, refuse_outputs, save, show
from earshot.cli.progress import steps
from earshot.cli.target import Target, target
from earshot.config.cluster import ValidationSpec
from earshot.doctor.draft import Draft
from earshot.errors import EarshotError
from earshot.listeners.terms import Scope
from earshot.placement import standpoint
from earshot.placement.standpoint import Standpoint, read_standpoints
from earshot.placement_registry import in_containers
from earshot.remote.run import KnownReports, validate_from
from earshot.remote.run import unfinished as unfinished_from
from earshot.report import Format, render
from earshot.spark.run import ValidationOptions, unfinished
from earshot.spark.run import validate as prove
from earshot.validation.result import Cell, Report

CLEAN_UP = 25.0
"""Seconds after the deadline for topics, the JVM, and the control probe of failures."""
IMAGE_SECONDS = 1800.0
"""Additional seconds to build the image for vantages in containers, once."""
HOST_ALONE = (Standpoint(name="host", scope=Scope.HOST),)
"""The only standpoint of a docker contract without a stack: listeners for this machine."""


@dataclass(frozen=True)
class Choice:
    """The values of the command's options; None for the stack's own value, or the default."""

    records: int | None = None
    deadline: float | None = None
    jars: str | None = None
    jars_dir: Path | None = None
    conf: Sequence[str] = ()
    vantages: Path | None = None
    """A file of standpoints: the place from which each scope is validated."""
    vantage: str | None = None
    """The name of this machine as the only vantage."""
    only: tuple[str, ...] = ()


def run(
    looked_at: tuple[str | None, str | None, str | None],
    client_config: Path | None,
    choice: Choice,
    incarnations: str | None,
    format: Format | None,
    output: Sequence[Path],
    *,
    force: bool = False,
) -> int:
    """Validates the brokers of ``looked_at`` (stack, contract, bootstrap); the exit code.

    The report of a stack is stored for `earshot report`; if no broker answers, it is the doctor's.
    Raises EarshotError.
    """
    files = formats(output, format, SUFFIXES)
    lives = _incarnations(incarnations)
    run_target = target(*looked_at)
    if run_target.contract is not None and run_target.bootstrap:
        raise EarshotError(
            "--bootstrap",
            observed="is given with a contract, which has all addresses",
            remedy="leave one of them out; `earshot doctor` begins at other addresses",
        )
    input_files = filter(None, (client_config, choice.vantages))
    refuse_outputs([*files], [*run_target.files, *input_files], force)
    client = run_target.client_properties(client_config)
    options = replace(_options(choice, _defaults(run_target)), client=client, incarnations=lives)
    standpoints = _standpoints(choice, run_target, bool(client))
    if choice.vantage is not None:
        # this may be a container, whose cache is temporary
        options = replace(options, vantage=choice.vantage, record=False)
    notes: tuple[str, ...] = ()
    unknown: tuple[Cell, ...] = ()
    if (contract := run_target.contract) is None:
        looking = Draft()

        def tell_seen(reason: str) -> int:
            show(looking.report(f"not decided: {reason}"), files, format)
            return 3

        try:
            with ended_by(tell_seen, LOOK_SECONDS + CLEAN_UP, lambda: looking.most_threads):
                contract, notes, unknown = discover(
                    run_target.bootstrap, client, options.vantage, looking
                )
        except NoBrokerAnswered as silence:
            show(silence.report, files, format)
            return silence.report.exit_code
    draft = Draft(vantage=options.vantage, contract=contract)
    known_reports: KnownReports = {}

    def with_unknown_cells(report: Report) -> Report:
        fields = {"cells": (*report.cells, *unknown), "notes": (*notes, *report.notes)}
        return report.model_copy(update={"incarnations": lives, **fields})

    def tell(reason: str) -> int:
        reason = f"not decided: {reason}"
        if standpoints is None:
            partial_report = unfinished(draft, reason)
        else:
            partial_report = unfinished_from(standpoints, contract, known_reports, reason)
        show(with_unknown_cells(partial_report), files, format)
        return partial_report.exit_code

    seconds = options.deadline + _beyond_the_deadline(standpoints)
    with ended_by(tell, seconds, lambda: draft.most_threads), steps() as step:
        if standpoints is None:
            report = prove(contract, options, step, draft)
        else:
            report = validate_from(standpoints, contract, options, step, choice.only, known_reports)
    report = with_unknown_cells(report)
    try:
        show(report, files, format)
    finally:
        if run_target.report_file is not None:
            save(run_target.report_file, render(report, Format.JSON))
    return report.exit_code


def _beyond_the_deadline(standpoints: Sequence[Standpoint] | None) -> float:
    """Seconds that a validation may take after the deadline, for clean-up and its images."""
    if standpoints is None:
        return CLEAN_UP
    return CLEAN_UP + IMAGE_SECONDS + max((place.patience for place in standpoints), default=0.0)


def _standpoints(choice: Choice, target: Target, asked: bool) -> tuple[Standpoint, ...] | None:
    """The standpoints for each scope; None means this machine for all of them.

    ``asked`` is True if there are credentials for listeners for which a deploy has none.
    """
    if choice.vantage is not None:
        for option, value in (("--vantages", choice.vantages), ("--only", choice.only)):
            if value:
                subject = f"--vantage and {option}"
                raise EarshotError(subject, observed="are both given", allowed="one of them")
        return None
    if choice.vantages is not None:
        return read_standpoints(choice.vantages)
    if target.project is not None:
        stored_file = target.project.contract_file(target.stack).with_name(standpoint.FILE)
        if stored_file.exists():
            # listeners that a deploy omits are validated if they are asked for
            return tuple(
                standpoint_read.model_copy(update={"without": {}})
                if asked or standpoint_read.name in choice.only
                else standpoint_read
                for standpoint_read in read_standpoints(stored_file)
            )
    if target.contract is not None and in_containers(target.contract.placement):
        return HOST_ALONE
    if choice.only:
        allowed = "with a stack on Docker hosts, or with --vantages FILE"
        raise EarshotError("--only", observed="there is one vantage: this machine", allowed=allowed)
    return None


def _defaults(target: Target) -> ValidationSpec:
    """The settings in the stack's file, or the defaults if the file is not on this machine."""
    if target.project is None or not target.project.stack_file(target.stack).exists():
        return ValidationSpec()
    return target.project.read_cluster(target.stack).validation


def _options(choice: Choice, defaults: ValidationSpec) -> ValidationOptions:
    return ValidationOptions(
        records=defaults.records if choice.records is None else choice.records,
        deadline=choice.deadline or float(defaults.deadline),
        jars=tuple(Path(jar.strip()) for jar in (choice.jars or "").split(",") if jar.strip()),
        jars_dir=choice.jars_dir,
        spark_conf=dict(_property(text) for text in choice.conf),
        record=True,
    )


def _property(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.startswith("spark."):
        observed, allowed = "is no Spark property", "spark.KEY=VALUE"
        raise EarshotError(f"--conf {text}", observed=observed, allowed=allowed)
    return key, value


def _incarnations(text: str | None) -> dict[str, str]:
    try:
        document = json.loads(text or "{}")
    except (ValueError, RecursionError) as reason:
        raise EarshotError("--incarnations", observed=f"is not JSON ({reason})") from None
    if not isinstance(document, dict):
        raise EarshotError("--incarnations", observed=f"found {text}", allowed="a JSON object")
    return {str(key): str(value) for key, value in document.items()}
