"""The validator of a stack on AWS: the real program and engine, doubles of AWS and of who answers.

No Kafka runs: what the validator sees is a double's word, and external listeners are left out.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from earshot.report.json import read_report
from earshot.validation.result import Report
from earshot.validation.terms import Verdict
from tests.config.aws_documents import TWO_LISTENERS
from tests.doubles.aws.server import MotoServer
from tests.doubles.aws.validators import Validators, validators_answering
from tests.e2e.aws_stack import Stack, aws_stack, cluster

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(600)]

GOING = {"deletion_protection": False, "data": "delete"}


@pytest.fixture
def stack(server: MotoServer, tmp_path: Path) -> Iterator[Stack]:
    with aws_stack(server, tmp_path) as new_stack:
        yield new_stack


@pytest.fixture
def validators(stack: Stack) -> Iterator[Validators]:
    with validators_answering(stack.server) as new_validators:
        yield new_validators


def stored_report(stack: Stack) -> Report:
    """The report that the stack's proof left on this machine."""
    file = stack.project.folder / ".earshot" / "stacks" / "test" / "report.json"
    return read_report(file.read_bytes(), str(file))


def verdicts(report: Report) -> dict[tuple[str, str], Verdict]:
    """The verdict by vantage and listener. All brokers must have the same one."""
    verdict_by_listener: dict[tuple[str, str], Verdict] = {}
    for cell in report.cells:
        key = (cell.vantage, cell.listener)
        assert verdict_by_listener.setdefault(key, cell.verdict) is cell.verdict
    return verdict_by_listener


def earshot(stack: Stack, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in the project's folder, with AWS where moto answers."""
    aws_variables = {
        "AWS_ENDPOINT_URL": stack.server.url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-west-2",
    }
    return subprocess.run(
        [sys.executable, "-m", "earshot", *arguments],
        cwd=stack.project.folder,
        env={**os.environ, **aws_variables},
        capture_output=True,
        text=True,
    )


def test_the_life_of_a_stack_with_a_validator(stack: Stack, validators: Validators) -> None:
    old_holdings = stack.server.holdings()
    stack.configure(cluster(3, validator=True, **GOING))
    stack.project.up()
    outputs = stack.project.outputs()
    (order,) = validators.answered_orders
    assert order.contract.model_dump(mode="json") == outputs["contract"]
    assert order.incarnations == outputs["incarnations"]
    assert verdicts(stored_report(stack)) == {("internal", "INTERNAL"): Verdict.PASS}
    assert stored_report(stack).exit_code == 0 and len(stored_report(stack).cells) == 3

    validator = stack.instances()["test-validator"]
    assert "PublicIpAddress" not in validator
    assert outputs["reports"].endswith("/reports/latest.json")
    fetched_report = earshot(stack, "report", outputs["reports"], "--format", "json")
    assert fetched_report.returncode == 0, fetched_report.stderr
    assert read_report(fetched_report.stdout, "latest").incarnations == outputs["incarnations"]

    assert "unchanged" in stack.project.up("--expect-no-changes")
    assert "unchanged" in stack.project.up("--refresh", "--expect-no-changes")
    assert len(validators.answered_orders) == 1

    stack.configure(cluster(3, validator=True, heap="2g", **GOING))
    stack.project.up()
    _, second_order = validators.answered_orders
    assert (
        second_order.incarnations == stack.project.outputs()["incarnations"] != order.incarnations
    )
    assert stack.instances()["test-validator"]["InstanceId"] == validator["InstanceId"]

    stack.project.destroy()
    assert stack.server.holdings() == old_holdings


def test_a_cell_that_fails_in_the_vpc_fails_the_update(
    stack: Stack, validators: Validators
) -> None:
    validators.verdict = Verdict.FAIL
    stack.configure(cluster(validator=True))
    output = stack.project.failed_output()
    assert "INTERNAL" in output and "internal" in output
    assert stored_report(stack).exit_code == 1

    validators.verdict = Verdict.PASS
    stack.project.up()
    assert len(validators.answered_orders) == 2, "asked anew, though nothing else has changed"
    assert stored_report(stack).exit_code == 0


def test_a_validator_that_cannot_answer_is_no_proof(stack: Stack, validators: Validators) -> None:
    validators.broken = "it ended with status 2: no memory"
    stack.configure(cluster(validator=True))
    output = " ".join(stack.project.failed_output().split())
    assert "cannot answer; last status: failed: it ended with status 2: no memory" in output
    assert verdicts(stored_report(stack)) == {("internal", "INTERNAL"): Verdict.INCONCLUSIVE}
    assert stored_report(stack).exit_code == 3


def test_without_a_validator_the_internal_scope_is_not_run(stack: Stack) -> None:
    stack.configure(cluster(**TWO_LISTENERS))
    output = " ".join(stack.project.up().split())
    assert "INTERNAL for scope internal: not run: the VPC has no validator" in output
    report = stored_report(stack)
    assert verdicts(report) == {
        ("internal", "INTERNAL"): Verdict.SKIP,
        ("external", "EXTERNAL"): Verdict.SKIP,
    }
    assert report.exit_code == 3
    assert "reports" not in stack.project.outputs()
    assert "unchanged" in stack.project.up("--expect-no-changes")


def test_it_is_asked_at_any_time_and_its_silence_told(
    stack: Stack, validators: Validators, tmp_path: Path
) -> None:
    stack.configure(cluster(validator=True))
    stack.project.up()
    state = stack.project.folder / ".earshot" / "stacks" / "test"
    contract, vantages = str(state / "contract.json"), state / "vantages.json"
    arguments = ("validate", "--contract", contract, "--vantages", str(vantages))
    second_run = earshot(stack, *arguments)
    assert second_run.returncode == 0, second_run.stderr
    assert len(validators.answered_orders) == 2

    validators.mute = True
    places: dict[str, Any] = json.loads(vantages.read_text())
    places["standpoints"][0]["patience"] = 0
    vantages.write_text(json.dumps(places))
    silent = earshot(stack, *arguments, "--deadline", "2")
    assert silent.returncode == 3, silent.stderr
    output = " ".join(silent.stdout.split())
    assert "did not answer within" in output and "last status: ready" in output
