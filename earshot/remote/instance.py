"""Validates from an instance: writes an order to its bucket, and waits for the report."""

import secrets
import time
from collections.abc import Callable
from typing import Final

from earshot.errors import EarshotError
from earshot.placement.standpoint import Standpoint
from earshot.remote.answer import checked_report
from earshot.remote.bucket import Bucket
from earshot.remote.orders import ORDER, STATUS, Status, ValidationOrder, answer_to, digest
from earshot.spark.run import ValidationOptions
from earshot.validation.contract import Contract
from earshot.validation.deadline import Deadline
from earshot.validation.result import Report

POLL_SECONDS: Final = 5.0
SAY_SECONDS: Final = 15.0

Say = Callable[[str], None]


def ask(
    bucket: Bucket,
    standpoint: Standpoint,
    contract: Contract,
    options: ValidationOptions,
    end: Deadline,
    say: Say,
    poll: float = POLL_SECONDS,
) -> Report:
    """The report of a new validation of ``contract`` by the validator of ``standpoint``.

    The deadline of ``options`` begins when the validator runs; `standpoint.patience` is added for
    its start. Only the stop of ``end`` counts. Raises EarshotError with the last status if the
    validator does not answer in time, or cannot.
    """
    order = ValidationOrder(
        id=secrets.token_hex(8),
        vantage=standpoint.name,
        contract=contract,
        incarnations=dict(options.incarnations),
        records=options.records,
        deadline=options.deadline,
    ).to_json()
    bucket.put(ORDER, order.encode())
    patience = standpoint.patience + options.deadline
    start = last_progress = time.monotonic()
    while True:
        answer = bucket.get(answer_to(order))
        if answer is not None:
            source = f"s3://{bucket.name}/{answer_to(order)}"
            return _report(answer, source, contract, standpoint.name)
        content = bucket.get(STATUS)
        status = Status.read(content.decode(errors="replace")) if content is not None else None
        now = time.monotonic()
        if status is not None and status.ends(digest(order), standpoint.instance):
            raise _silent(standpoint, "cannot answer", status)
        if end.stop.is_set() or now - start > patience:
            raise _silent(standpoint, f"did not answer within {now - start:.0f} s", status)
        if now - last_progress >= SAY_SECONDS:
            last_progress = now
            say(f"waiting for {standpoint.instance} ({now - start:.0f} s): {status or 'no status'}")
        end.stop.wait(poll)


def _silent(standpoint: Standpoint, problem: str, status: Status | None) -> EarshotError:
    return EarshotError(
        f"the validator {standpoint.instance}",
        observed=f"{problem}; last status: {status or 'none'}",
        remedy=f"log in to it (`aws ssm start-session --target {standpoint.instance}`, then "
        "`journalctl -u earshot-prepare -u earshot-validate`), fix it, and run this again",
    )


def _report(answer: bytes, source: str, contract: Contract, vantage: str) -> Report:
    """The report in ``answer``, with the kind of its vantage. Raises EarshotError."""
    report = checked_report(answer, source, contract, vantage)
    vantages = tuple(
        vantage.model_copy(update={"kind": "remote"}) if vantage.kind == "host" else vantage
        for vantage in report.vantages
    )
    return report.model_copy(update={"vantages": vantages})
