"""A double of the validator in the VPC: it answers orders in buckets, without Kafka.

moto runs no machine. For each running instance with the user data of a validator, this writes the
status and the reports of the real scripts into the bucket that they name.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from earshot.doctor.targets import targets_of
from earshot.remote.orders import (
    DATED,
    LATEST,
    ORDER,
    STATUS,
    Status,
    ValidationOrder,
    ValidatorState,
    answer_to,
    digest,
    read_order,
)
from earshot.validation.result import Cell, Report, StageResult, Vantage
from earshot.validation.terms import Stage, Verdict
from tests.doubles.aws.nodes import running_instances, user_data
from tests.doubles.aws.server import MotoServer
from tests.doubles.watching import watching

POLL_SECONDS = 0.2
_BUCKET = re.compile(r"bucket=s3://([a-z0-9.-]+)")
_WHEN = "2026-01-01T00:00:00Z"


@dataclass
class Validators:
    """The orders answered so far, and the behaviour from now on."""

    server: MotoServer
    verdict: Verdict = Verdict.PASS
    """The verdict of every cell."""
    mute: bool = False
    """They start, and then do not answer."""
    broken: str = ""
    """The failure that they report instead of an answer."""
    answered_orders: list[ValidationOrder] = field(default_factory=list)
    _handled: set[str] = field(default_factory=set)

    def look(self) -> None:
        """Lets every running validator answer its order."""
        ec2 = self.server.client("ec2")
        for instance in running_instances(ec2):
            id = str(instance["InstanceId"])
            if match := _BUCKET.search(user_data(ec2, id)):
                self._serve(id, match[1])

    def _serve(self, instance: str, bucket: str) -> None:
        if instance not in self._handled:
            self._handled.add(instance)
            self._put_status(bucket, instance, ValidatorState.READY)
        text = self._get(bucket, ORDER)
        if text is None or self.mute or (order_digest := digest(text)) in self._handled:
            return
        self._handled.add(order_digest)
        if self.broken:
            self._put_status(bucket, instance, ValidatorState.FAILED, order_digest, self.broken)
            return
        self._put_status(bucket, instance, ValidatorState.RUNNING, order_digest)
        order = read_order(text, ORDER)
        report = self._report(order, instance).model_dump_json(indent=2)
        for key in (LATEST, f"{DATED}{len(self.answered_orders)}.json", answer_to(text)):
            self._put(bucket, key, report)
        self._put_status(bucket, instance, ValidatorState.READY, order_digest, "reported")
        self.answered_orders.append(order)

    def _report(self, order: ValidationOrder, instance: str) -> Report:
        return Report(
            kind="validation",
            run=order.id[:8],
            cluster=order.contract.cluster,
            placement="aws",
            kafka_version=order.contract.kafka_version,
            started=datetime.now(UTC),
            seconds=1,
            cells=tuple(
                Cell(
                    vantage=order.vantage,
                    listener=target.listener,
                    broker=target.broker,
                    scopes=target.scopes,
                    address=target.address,
                    verdict=self.verdict,
                    stages=(StageResult(stage=Stage.METADATA, verdict=self.verdict),),
                )
                for target in targets_of(order.contract)
            ),
            vantages=(Vantage(name=order.vantage, where=instance),),
            incarnations=order.incarnations,
        )

    def _put_status(
        self, bucket: str, instance: str, state: ValidatorState, order: str = "", detail: str = ""
    ) -> None:
        status = Status(instance=instance, state=state, order=order, detail=detail, at=_WHEN)
        self._put(bucket, STATUS, status.model_dump_json())

    def _get(self, bucket: str, key: str) -> str | None:
        s3 = self.server.client("s3")
        try:
            return str(s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode())
        except (s3.exceptions.NoSuchKey, s3.exceptions.NoSuchBucket):
            return None

    def _put(self, bucket: str, key: str, text: str) -> None:
        self.server.client("s3").put_object(Bucket=bucket, Key=key, Body=text.encode())


@contextmanager
def validators_answering(server: MotoServer) -> Iterator[Validators]:
    """Validators of ``server`` answer until the block ends."""
    validators = Validators(server)
    not_found = server.client("ec2").exceptions.ClientError  # an instance or a bucket's content
    with watching(validators.look, POLL_SECONDS, (not_found,)):
        yield validators
