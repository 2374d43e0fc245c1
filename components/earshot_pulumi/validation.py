"""The validation as a resource of the stack. If a cell fails, the update fails and shows it.

It runs `earshot validate` as a child process with a deadline, when it is created and whenever the
contract or an incarnation changes. Cells that a standpoint leaves out make the report inconclusive;
the update prints them and does not fail.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

import pulumi

from earshot.errors import EarshotError
from earshot.extras import folder_of
from earshot.files import cache
from earshot.jvm.java import find_java
from earshot.placement import standpoint
from earshot.placement.standpoint import Kind, Standpoint
from earshot.validation.contract import Contract
from earshot_pulumi.aws_settings import AwsKind, environment
from earshot_pulumi.outputs import are_same, without_dependencies
from earshot_pulumi.properties import here
from earshot_pulumi.provider.kind import (
    FailedUpdate,
    Interrupted,
    Operation,
    OperationFailed,
    Properties,
)
from earshot_pulumi.provider.resource import InternalResource

CONTRACT, REPORT = "contract.json", "report.json"
UNPROVED = "unproved"
"""The verdict on a cluster that an update has changed without a validation."""
FAILED = "fail"
"""`verdict`, in a state alone, of a resource whose last run did not pass."""
GRACE = 30.0
"""Seconds from the validation's own deadline until its process is stopped."""
IMAGE_SECONDS = 1800.0
"""Additional seconds to build the image for vantages in containers once."""


DOCTOR_ALONE = ", or validate by the doctor alone: `validation: {records: 0}`"


def check_spark(records: int, standpoints: Sequence[Standpoint] = ()) -> None:
    """Raises EarshotError if the validation needs Spark and this machine does not have it.

    Called before a broker is touched. Without ``standpoints``, `earshot validate` runs here. Images
    of containers and instances that validate are built from Spark's jars. In a preview, which may
    run on another machine than its update, a missing Java is only a warning.
    """
    kinds = {place.kind for place in standpoints} or {Kind.HERE}
    makes_image = bool(kinds & {Kind.CONTAINER, Kind.INSTANCE})
    if not makes_image and (not records or Kind.HERE not in kinds):
        return
    folder_of("pyspark", "validation", "" if makes_image else DOCTOR_ALONE)
    try:
        find_java()
    except EarshotError as error:
        if not pulumi.runtime.is_dry_run():
            raise
        pulumi.log.warn(f"validation: {error}")


class ValidationKind(AwsKind):
    ID = "validated"
    OWNS = ("state_dir",)
    DECISIVE = ("contract", "incarnations", "records", "vantages")
    interrupted = "interrupted during the validation: nothing was changed, and nothing is proved"

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        return olds.get("verdict") == FAILED or super().differs(operation, olds, news)

    def update(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        with failure_kept(news):
            return super().update(operation, olds, news)

    def delete(self, operation: Operation, olds: Properties) -> None:
        for name in (CONTRACT, standpoint.FILE):
            (here(olds["state_dir"]) / name).unlink(missing_ok=True)

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        state, options, patience = Path(news["state_dir"]), list[str](), 0.0
        vantages = tuple(map(Standpoint.model_validate, news.get("vantages") or ()))
        if client_config := news.get("client_config"):
            options += ["--client-config", str(here(client_config))]
        options += ["--incarnations", json.dumps(news["incarnations"])]
        if vantages:
            cache.write(state / standpoint.FILE, standpoint.to_json(vantages))
            options += ["--vantages", str(state / standpoint.FILE)]
            patience = IMAGE_SECONDS + max(vantage.patience for vantage in vantages)
        else:
            (state / standpoint.FILE).unlink(missing_ok=True)
        variables = environment(self.settings(operation), os.environ)
        contract = Contract.model_validate(news["contract"])
        code, errors = validate(operation, contract, state, news, options, variables, patience)
        report = state / REPORT
        if code == 0:
            return {**news, "verdict": "pass"}
        if code == 3 and report.exists() and (skipped := _skipped_cells(report, vantages)):
            operation.log(skipped)
            return {**news, "verdict": "inconclusive"}
        raise EarshotError(unproved(report, code, errors))


@contextlib.contextmanager
def failure_kept(news: Properties, report: str = "") -> Iterator[None]:
    """Raises FailedUpdate for a run that does not pass; ``report`` is the output for its text.

    Otherwise the state would keep the former verdict, and an update that returns to the former
    inputs would prove nothing.
    """
    try:
        yield
    except Interrupted:
        raise
    except (EarshotError, OperationFailed) as error:
        text = {report: str(error)} if report else {}
        raise FailedUpdate(str(error), {**news, "verdict": FAILED, **text}) from None


def validate(
    operation: Operation,
    contract: Contract,
    folder: Path,
    inputs: Properties,
    options: Sequence[str],
    variables: Mapping[str, str],
    patience: float = 0.0,
) -> tuple[int, str]:
    """The exit code and last lines of `earshot validate`, which writes its report into ``folder``.

    ``inputs`` has the number of `records`, and the `deadline` in seconds, to which ``patience`` is
    added. Raises Interrupted.
    """
    cache.write(folder / CONTRACT, contract.to_json())
    report = folder / REPORT
    report.unlink(missing_ok=True)  # the report of an earlier run proves nothing about this run
    command = [sys.executable, "-m", "earshot.cli.ends_with_stdin", "validate"]
    command += ["--contract", str(folder / CONTRACT), "--output", str(report)]
    command += ["--records", str(int(inputs["records"]))]
    command += ["--deadline", f"{inputs['deadline']:.15g}", "--format", "json", *options]
    deadline = inputs["deadline"] + GRACE + patience
    result = run_child(command, deadline, variables, operation.log, operation.cancelled.is_set)
    operation.wait(0)
    return result


def run_child(
    command: list[str],
    deadline: float,
    environment: Mapping[str, str],
    show: Callable[[str], None],
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[int, str]:
    """The exit code of ``command``, and its error or last lines; ``show`` gets its progress.

    The command is stopped with this process, after ``deadline`` seconds, or once ``cancelled()``.
    """
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,  # closes when this process ends, which ends the command
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment, "PYTHONUNBUFFERED": "1"},
    )
    lines: list[str] = []
    assert child.stderr is not None and child.stdin is not None
    reader = threading.Thread(target=_show, args=(child.stderr, lines, show), daemon=True)
    reader.start()
    end = time.monotonic() + deadline
    try:
        while child.poll() is None and not cancelled():
            if time.monotonic() > end:
                lines.append(f"the validation did not end within {deadline:.0f} s and was stopped")
                break
            time.sleep(0.05)
    finally:
        _end(child)
    reader.join(2)
    child.stderr.close()
    return child.returncode, "\n".join(lines[-20:])


def _show(stream: IO[str], lines: list[str], show: Callable[[str], None]) -> None:
    """Shows and keeps the lines of ``stream``; from an error on, only keeps them."""
    is_error = False
    for line in map(str.rstrip, stream):
        if not is_error and line.startswith("error: "):
            is_error = True
            lines.clear()
        lines.append(line)
        if not is_error:
            show(line)


def _end(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.close()
    for number, patience in ((signal.SIGTERM, 15.0), (signal.SIGKILL, 5.0)):
        child.send_signal(number)  # does nothing if the child has ended
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(patience)


def _skipped_cells(file: Path, vantages: Sequence[Standpoint]) -> str:
    """The cells that standpoints leave out, with reasons; empty if anything else did not pass."""
    from earshot.validation.result import Report
    from earshot.validation.terms import Verdict

    report = Report.model_validate_json(file.read_text())
    standpoints = {vantage.name: vantage for vantage in vantages}
    places_by_reason: dict[str, set[str]] = {}
    for cell in report.cells:
        if cell.verdict is not Verdict.PASS:
            standpoint = standpoints.get(cell.vantage)
            reason = standpoint.leaves_out(cell.listener) if standpoint else ""
            if not reason or cell.verdict is not Verdict.SKIP:
                return ""
            places_by_reason.setdefault(reason, set()).add(f"{cell.listener} ({cell.vantage})")
    passed_vantages = {cell.vantage for cell in report.cells if cell.verdict is Verdict.PASS}
    other_verdicts = [
        vantage.verdict for vantage in report.vantages if vantage.name in passed_vantages
    ]
    other_verdicts += [delivery.verdict for delivery in report.delivery]
    other_verdicts += [replication.verdict for replication in report.replication]
    if any(verdict is not Verdict.PASS for verdict in other_verdicts):
        return ""
    return "\n".join(
        f"{', '.join(sorted(places))}: {reason}" for reason, places in places_by_reason.items()
    )


def unproved(report: Path, code: int, errors: str) -> str:
    """The message of a validation that did not pass: its ``report`` if it wrote one."""
    if code not in (1, 3) or not report.exists():
        return f"the validation could not run (exit code {code}):\n{errors}"
    from earshot.report import render
    from earshot.validation.result import Report

    return render(Report.model_validate_json(report.read_text()), "text")


class Validation(InternalResource):
    """Proof that every broker can be reached through every listener.

    The clients run on this machine, or, with `vantages`, in each vantage for the listeners of its
    scope.
    """

    verdict: pulumi.Output[str]
    """`pass`, or `inconclusive` if a vantage leaves cells out."""
    contract: pulumi.Output[Any]
    incarnations: pulumi.Output[Any]

    def verdict_on(
        self, contract: pulumi.Output[Any], incarnations: Mapping[str, pulumi.Input[Any]]
    ) -> pulumi.Output[str]:
        """`verdict`, or `UNPROVED` if the last run was of another contract or of other nodes.

        An update that leaves this resource out (`--exclude`) has the outputs of the former run.
        """

        def verdict(values: Sequence[Any]) -> str:
            last_verdict, present, last = values
            if are_same(present, last):
                return cast("str", last_verdict)
            pulumi.log.warn("the validation was left out of this update: nothing is proved", self)
            return UNPROVED

        # this resource waits for all that the inputs depend on
        present = without_dependencies(pulumi.Output.all(contract, dict(incarnations)))
        return pulumi.Output.all(self.verdict, present, [self.contract, self.incarnations]).apply(
            verdict
        )
