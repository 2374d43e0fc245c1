"""A double of the validator in the VPC: it answers orders in buckets, without a Kafka to look at.

moto runs no machine. This looks for instances whose user data are a validator's, and leaves in the
bucket that they name what the real scripts would: how it fares, and reports.
"""

import base64
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from earshot.doctor.survey import targets_of
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
from earshot.validation.result import Cell, Report, Vantage
from earshot.validation.terms import Verdict
from tests.doubles.aws.server import MotoServer
from tests.doubles.watching import watching

POLL_SECONDS = 0.2
_BUCKET = re.compile(r"bucket=s3://([a-z0-9.-]+)")
_WHEN = "2026-01-01T00:00:00Z"


@dataclass
class Validators:
    """What was carried out so far, and how validators fare from now on."""

    server: MotoServer
    verdict: Verdict = Verdict.PASS
    """Of every cell."""
    mute: bool = False
    """They have come up, and then say nothing more."""
    broken: str = ""
    """What they cannot do, instead of answering."""
    answered: list[ValidationOrder] = field(default_factory=list)
    _done: set[str] = field(default_factory=set)

    def look(self) -> None:
        """Let every validator that runs do what there is to do."""
        ec2 = self.server.client("ec2")
        running = [{"Name": "instance-state-name", "Values": ["running"]}]
        for reservation in ec2.describe_instances(Filters=running)["Reservations"]:
            for instance in reservation["Instances"]:
                id = str(instance["InstanceId"])
                found = ec2.describe_instance_attribute(InstanceId=id, Attribute="userData")
                text = base64.b64decode(found["UserData"].get("Value", "")).decode()
                match = _BUCKET.search(text)
                if match is not None:
                    self._serve(id, match[1])

    def _serve(self, instance: str, bucket: str) -> None:
        if instance not in self._done:
            self._done.add(instance)
            self._say(bucket, instance, ValidatorState.READY)
        text = self._get(bucket, ORDER)
        if text is None or self.mute or (digest_ := digest(text)) in self._done:
            return
        self._done.add(digest_)
        if self.broken:
            self._say(bucket, instance, ValidatorState.FAILED, digest_, self.broken)
            return
        self._say(bucket, instance, ValidatorState.RUNNING, digest_)
        order = read_order(text, ORDER)
        report = self._report(order, instance).model_dump_json(indent=2)
        for key in (LATEST, f"{DATED}{len(self.answered)}.json", answer_to(text)):
            self._put(bucket, key, report)
        self._say(bucket, instance, ValidatorState.READY, digest_, "reported")
        self.answered.append(order)

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
                    listener=it.listener,
                    broker=it.broker,
                    scopes=it.scopes,
                    address=it.address,
                    verdict=self.verdict,
                )
                for it in targets_of(order.contract)
            ),
            vantages=(Vantage(name=order.vantage, where=instance),),
            incarnations=order.incarnations,
        )

    def _say(
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
    """Validators of ``server`` do their work until the block ends."""
    validators = Validators(server)
    gone = server.client("ec2").exceptions.ClientError  # an instance or a bucket's content
    with watching(validators.look, POLL_SECONDS, (gone,)):
        yield validators
