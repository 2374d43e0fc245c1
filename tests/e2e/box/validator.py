"""The validator in the VPC, in a box: an instance that boots its real user data, and really looks.

Run by `make test-box`; every run has the validator on doubles in `tests/e2e/test_aws_validator.py`.

Its image has the Python that the user data would make, at the place where they look for it: that
step is skipped, for it takes minutes and an index of packages. All else is done: the bundle is
fetched and checked, orders are carried out with Spark, reports are put into the bucket.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from earshot.remote.image import context
from earshot.remote.orders import LATEST
from earshot.remote.user_data import HOME
from earshot.report.json import read_report
from earshot.validation.result import Report
from earshot.validation.terms import Stage, Verdict
from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.docker_engine import Engine
from tests.e2e.images.load import instance_image, validator_images

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

IMAGE = "earshot-test/validator-instance:latest"
SCRAM = "SCRAM-SHA-256"
STACK_STATE = Path(".earshot", "stacks", "test")


def validator_instance_image(engine: Engine) -> str:
    """The instance image with the validator image's Python, at the place that its lock names."""
    lock = hashlib.sha256(context()["requirements.lock"]).hexdigest()[:12]
    _, python = validator_images(engine)
    with contextlib.closing(engine.client()) as client:
        text = (
            f"FROM {python} AS validator\n"
            f"FROM {instance_image(engine)}\n"
            f"COPY --from=validator /opt/earshot/python {HOME}/python-{lock}\n"
            f"RUN touch {HOME}/python-{lock}/complete\n"
        )
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            member = tarfile.TarInfo("Dockerfile")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
        buffer.seek(0)
        client.images.build(fileobj=buffer, custom_context=True, tag=IMAGE, rm=True, forcerm=True)
    return IMAGE


@pytest.fixture(scope="module")
def validator_box(box: CloudBox, docker_engine: Engine) -> CloudBox:
    """A box whose validator boots an image with Python."""
    box.images["test-validator"] = validator_instance_image(docker_engine)
    return box


def test_an_update_is_proved_from_inside_the_vpc_and_from_beyond(
    validator_box: CloudBox, tmp_path: Path
) -> None:
    box = validator_box
    old_holdings = box.server.holdings()
    with box.place("outside") as laptop:
        stack = box.stack(tmp_path / "stack", laptop)
        stack.configure(
            box.cluster(validator=True, prove="here", clear_text={}, security={"mechanism": SCRAM})
        )
        stack.up()
        file = stack.project.folder / STACK_STATE / "report.json"
        report = read_report(file.read_bytes(), str(file))
        verdicts = {
            (cell.vantage, cell.listener, cell.broker): cell.verdict for cell in report.cells
        }
        assert verdicts == {
            ("internal", "INTERNAL", 1): Verdict.PASS,
            ("external", "EXTERNAL", 1): Verdict.PASS,
        }
        assert report.exit_code == 0
        assert {
            (delivery.written_through, delivery.read_through, delivery.lost)
            for delivery in report.delivery
        } == {
            ("INTERNAL", "INTERNAL", 0),
            ("EXTERNAL", "EXTERNAL", 0),
        }

        machine_of_validator = next(
            machine
            for machine in box.moto_state().machines.values()
            if machine.name == "test-validator"
        )
        assert not machine_of_validator.elastic
        internal_vantage = next(
            vantage for vantage in report.vantages if vantage.name == "internal"
        )
        assert internal_vantage.kind == "remote" and internal_vantage.where.startswith(
            "ip-" + machine_of_validator.private.replace(".", "-")
        )
        validator = box.instance("test-validator")
        files = validator.run("find", "/run/earshot/secrets", "-printf", "%m %u %P\n").splitlines()
        assert files == ["500 earshot ", "400 earshot validator.properties"]
        assert _security(report) == {("INTERNAL", "SSL"), ("EXTERNAL", "SASL_SSL")}
        assert "fetching s3://" in validator.journal("earshot-prepare")
        assert validator.show("earshot-validate.timer", "ActiveState") == "active"

        bucket = stack.project.outputs()["reports"].removeprefix("s3://").partition("/")[0]
        s3 = box.server.client("s3")
        latest = s3.get_object(Bucket=bucket, Key=LATEST)["Body"].read()
        assert read_report(latest, LATEST).incarnations == stack.project.outputs()["incarnations"]

        assert "unchanged" in stack.up("--expect-no-changes")
        stack.destroy()
    box.settle()
    assert box.server.holdings() == old_holdings and box.fleet.remaining == []


def _security(report: Report) -> set[tuple[str, str]]:
    """The security of the doctor's connections, by listener."""
    return {
        (cell.listener, stage.detail.partition(",")[0])
        for cell in report.cells
        for stage in cell.stages
        if stage.stage is Stage.SECURITY
    }
