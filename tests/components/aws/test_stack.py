"""What a stack of placement aws proves from this machine, and what it says that it does not."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi.runtime import mocks

from components.aws.stack import deploy, provable
from earshot.validation.contract import Contract
from tests.components.aws.registered import INSTANCE, READY, STACK, Answers, Engine
from tests.spec.aws_documents import BOTH, EXTERNAL, INTERNAL, ONE_LISTENER, TWO_LISTENERS, read_aws

VALIDATION = "pulumi-python:dynamic/earshot:Validation"
CLEAR = {
    **TWO_LISTENERS,
    "listeners": [INTERNAL, {**EXTERNAL, "protocol": "PLAINTEXT"}],
    "clear_text": {"EXTERNAL": "a trial without data"},
}


def deployed(state: Path, log: logging.Logger, **settings: Any) -> Engine:
    answers = Answers()
    engine = Engine(answers)
    mocks.set_mocks(answers, "earshot", STACK, False, logger=log, monitor=engine)

    def run() -> pulumi.Output[str]:
        return deploy(STACK, read_aws(**settings), state).ready.urn

    pulumi.runtime.test(run)()  # type: ignore[no-untyped-call]
    return engine


@pytest.fixture
def log() -> logging.Logger:
    return logging.getLogger("earshot.tests.aws")


@pytest.mark.parametrize(
    ("settings", "names"),
    [(CLEAR, ["EXTERNAL"]), (ONE_LISTENER, ["PLAINTEXT"])],
)
def test_external_listeners_without_credentials_are_proved_from_here(
    settings: dict[str, Any], names: list[str], tmp_path: Path, log: logging.Logger
) -> None:
    engine = deployed(tmp_path, log, **settings)
    proof = engine.one(VALIDATION)
    contract = Contract.model_validate(proof.inputs["contract"])
    assert [item.name for item in contract.listeners] == names
    assert contract.scopes == ("external",)
    assert all(list(broker.advertised) == names for broker in contract.brokers)
    assert [item["scope"] for item in proof.inputs["vantages"]] == ["external"]
    assert proof.depends_on(engine.of(READY)["mine-cluster"])
    assert set(proof.inputs["incarnations"]) == {"1", "2", "3"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, ["INTERNAL: not validated for scope internal"]),
        (
            TWO_LISTENERS,
            ["INTERNAL: not validated for scope internal", "EXTERNAL: not validated from here"],
        ),
        ({**CLEAR, "prove": "later"}, ["EXTERNAL: not validated from here"]),
    ],
)
def test_what_is_not_proved_is_said(
    settings: dict[str, Any],
    said: list[str],
    tmp_path: Path,
    log: logging.Logger,
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = deployed(tmp_path, log, **settings)
    assert engine.of(INSTANCE) and not engine.of(VALIDATION)
    assert all(text in caplog.text for text in said)


def test_a_listener_for_both_scopes_is_provable_where_it_takes_no_credentials() -> None:
    secured = {
        **ONE_LISTENER,
        "listeners": [{**BOTH, "name": "BOTH", "protocol": "SSL"}],
        "clear_text": {},
    }
    assert [item.name for item in provable(read_aws(**ONE_LISTENER))] == ["PLAINTEXT"]
    assert provable(read_aws(**secured)) == ()
