"""What a stack of placement aws proves from this machine, and what it says that it does not."""

import hashlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.aws.turns import OtherNode

from earshot.errors import EarshotError
from earshot.placement.aws import plan_aws
from earshot.placement.aws_step import written
from earshot.placement.standpoint import Kind, Standpoint
from earshot.validation.contract import Contract
from tests.components.aws.registered import (
    INSTANCE,
    PREFLIGHT,
    READY,
    STACK,
    TURN,
    Answers,
    deployed,
)
from tests.components.aws.test_readiness_reports import ONE, report
from tests.components.engine_double import Engine
from tests.config.aws_documents import EXTERNAL, INTERNAL, ONE_LISTENER, TWO_LISTENERS, read_aws

VALIDATION = "earshot:index:Validation"
CLEAR = {
    **TWO_LISTENERS,
    "listeners": [INTERNAL, {**EXTERNAL, "protocol": "PLAINTEXT"}],
    "clear_text": {"EXTERNAL": "a trial without data"},
}


def places(engine: Engine) -> dict[str, Standpoint]:
    """The standpoint of the proof, by scope."""
    vantages = engine.one(VALIDATION).inputs["vantages"]
    return {it["scope"]: Standpoint.model_validate(it) for it in vantages}


@pytest.mark.parametrize("settings", [CLEAR, ONE_LISTENER])
def test_external_listeners_without_credentials_are_proved_from_here(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    engine = deployed(tmp_path, **settings)
    proof = engine.one(VALIDATION)
    contract = Contract.model_validate(proof.inputs["contract"])
    names = [listener["name"] for listener in settings["listeners"]]
    assert [listener.name for listener in contract.listeners] == names
    external = places(engine)["external"]
    assert (external.kind, external.without) == (Kind.HERE, {})
    assert proof.depends_on(engine.of(READY)["mine-cluster"])
    assert set(proof.inputs["incarnations"]) == {"1", "2", "3"}


@pytest.mark.parametrize(("settings", "notes"), [
    ({}, ["INTERNAL for scope internal: not run: the VPC has no validator"]),
    (TWO_LISTENERS, ["INTERNAL for scope internal: not run",
                     "EXTERNAL for scope external: not run: its protocol"]),
    ({**CLEAR, "prove": "later"}, ["EXTERNAL for scope external: not run: `prove: later`"]),
])  # fmt: skip
def test_what_is_not_proved_is_said_and_in_the_report(
    settings: dict[str, Any],
    notes: list[str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = deployed(tmp_path, **settings)
    assert all(text in caplog.text for text in notes)
    standpoints = places(engine)
    internal = standpoints["internal"]
    assert internal.kind is Kind.NOT_RUN and "validator: true" in internal.reason
    if "external" in standpoints:
        assert standpoints["external"].leaves_out("EXTERNAL")


def test_a_validator_proves_the_internal_scope(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = deployed(tmp_path, validator=True, **CLEAR)
    internal = places(engine)["internal"]
    assert (internal.kind, internal.bucket) == (Kind.INSTANCE, "mine-validator")
    assert internal.instance == "id of mine-validator"
    assert "not run" not in caplog.text
    assert engine.one(VALIDATION).depends_on(engine.of(INSTANCE)["mine-validator"])
    (file,) = tmp_path.glob("validator-*.tar")
    (carried,) = engine.of("aws:s3/bucketObject:BucketObject").values()
    assert carried.inputs["source"].path == str(file)
    assert hashlib.sha256(file.read_bytes()).hexdigest() in carried.inputs["key"]


REPL = {"name": "REPL", "port": 19192, "scopes": ["internal"]}
BEGUN = "earshot:index:BegunChange"
PROVED = "earshot:index:ProvedChange"


def proved(**settings: Any) -> Answers:
    """AWS, and a state in which these settings were proved."""
    spec = read_aws(**settings)
    plan = plan_aws(spec).plan.model_dump(mode="json")
    begun = {"begun": [{"plan": plan, "own": written(spec)}]}
    return Answers(
        state={
            f"urn:begun::{STACK}": {"type": BEGUN, "outputs": begun},
            f"urn:proved::{STACK}": {"type": PROVED, "outputs": {"done": 0.0, **begun}},
        }
    )


def test_a_step_is_begun_before_an_instance_and_over_after_the_proof(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    engine = deployed(tmp_path, proved(), brokers=3, listeners=[REPL])
    assert "step 1 of 3: REPL added next to INTERNAL; run again" in caplog.text
    begun, over = engine.one(BEGUN), engine.one(PROVED)
    first = next(iter(engine.of(INSTANCE).values()))
    assert engine.before(begun, first) and over.depends_on(engine.one(VALIDATION))
    assert begun.depends_on(engine.of(PREFLIGHT)["mine"])
    assert over.inputs["begun"] == begun.inputs["begun"]
    assert over.inputs["done"] == 1
    contract = Contract.model_validate(engine.one(VALIDATION).inputs["contract"])
    assert {it.name: it.leaving for it in contract.listeners} == {"INTERNAL": True, "REPL": False}
    assert contract.inter_broker == "INTERNAL"


@pytest.mark.parametrize(
    ("remove", "is_removed"),
    [("unused", False), ("9999-12-31", False), ("2020-01-01", True), ("anyway", True)],
)
def test_a_listener_is_removed_when_the_stack_file_says_so(
    remove: str, is_removed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[str] = []

    def read(names: Sequence[str]) -> dict[str, str]:
        requests.extend(names)
        return dict.fromkeys(names, report(ONE))

    monkeypatch.setattr("earshot_pulumi.aws.deployment.reader", lambda _settings, _region: read)
    answers = proved(listeners=[INTERNAL, REPL])
    if is_removed:
        engine = deployed(tmp_path, answers, listeners=[INTERNAL], remove=remove)
        assert engine.of(INSTANCE) and not requests
        return
    with pytest.raises(EarshotError) as caught:
        deployed(tmp_path, answers, listeners=[INTERNAL], remove=remove)
    assert str(caught.value) == (
        "nothing was changed: REPL would be removed, and whether clients are connected is not "
        "known (node 1, 2, 3: clients are counted from the step on that marks a listener as "
        "leaving). Let them use another listener, then set `remove: anyway`, "
        "or a date from which it may be removed"
    )


@pytest.mark.parametrize("down", [{}, {2: "starting"}])
def test_nodes_that_serve_after_an_interrupted_first_update_change_in_turn(
    down: dict[int, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No update has seen the cluster serve. It changes as a whole only while it does not serve."""
    requests: list[Any] = []

    def nodes_down(settings: Any, region: str, stack: str, nodes: Any) -> dict[int, str]:
        requests.append((stack, nodes))
        return down

    monkeypatch.setattr("earshot_pulumi.aws.deployment.nodes_down", nodes_down)
    ready = [f"urn::{STACK}-broker-{id}" for id in (1, 2, 3)]
    state = {urn: {"type": READY, "outputs": {}} for urn in ready}
    engine = deployed(tmp_path, Answers(state=state), brokers=3)
    nodes = [
        OtherNode(id, f"{STACK}-broker-{id}", f"/earshot/{STACK}/broker-{id}") for id in (1, 2, 3)
    ]
    assert requests == [(STACK, nodes)]
    assert all(it.inputs["in_turn"] is not bool(down) for it in engine.of(READY).values())
    others = [len(it.inputs["others"]) for it in engine.of(TURN).values()]
    assert others == ([0, 0, 0] if down else [2, 2, 2])
    requests.clear()
    deployed(tmp_path, Answers(), brokers=3)
    assert requests == [], "a new cluster"
