"""Inputs of `Proof`: wrong ones are refused before the update begins."""

import socket
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.given import proof
from earshot_pulumi.given.proof import DEFAULTS, ProofKind
from earshot_pulumi.provider.kind import (
    UNKNOWN,
    FailedUpdate,
    InvalidInputs,
    Operation,
    OperationFailed,
)

from tests.doubles.peer import Peer, listening
from tests.raised import raised

CONTRACT: dict[str, Any] = {
    "cluster": "kafka",
    "placement": "given",
    "kafka_version": "4.1.1",
    "listeners": [{"name": "HOST", "protocol": "PLAINTEXT", "scopes": ["host"],
                   "bootstrap": "localhost:9092"}],
    "brokers": [{"id": 1, "advertised": {"HOST": {"host": "localhost", "port": 9092}}}],
}  # fmt: skip


def checked(**inputs: Any) -> dict[str, Any]:
    return ProofKind().check(Operation("urn:a::b::c::proof"), {}, {"contract": CONTRACT, **inputs})


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"record": 3000}, "record: is no key that earshot knows; did you mean records?; allowed"),
        ({"contract": None}, "contract: found nothing; allowed: a map of settings"),
        ({"contract": "x"}, "contract: found 'x'"),
        ({"contract": {**CONTRACT, "listeners": []}}, "contract: listeners: found"),
        ({"deadline": 0}, "deadline: found 0; allowed: 1 to 86400"),
        ({"deadline": "60"}, "deadline: found '60'"),
        ({"deadline": float("nan")}, "deadline: found nan"),
        ({"readySeconds": -1}, "ready_seconds: found -1; allowed: 0 to 86400"),
        ({"readySeconds": float("inf")}, "ready_seconds: found inf"),
        ({"deadline": 1e300}, "deadline: found 1e+300"),
        ({"records": -1}, "records: found -1"),
        ({"records": 10**8}, "records: found 100000000; allowed: 0 to 10000000"),
        ({"records": 2.5}, "records: found 2.5"),
        ({"records": True}, "records: found true"),
        ({"scopes": [None]}, "scopes: found nothing"),
        ({"scopes": ["\u202ex\n"]}, r"scopes: found '\u202ex\n'; allowed"),
        ({"scopes": 5}, "scopes: found 5; allowed: a list of internal, host, external"),
        ({"scopes": "external"}, "scopes: found 'external'; allowed: a list of"),
        ({"scopes": {"external": True}}, "scopes: found {'external': True}; allowed: a list of"),
        (
            {"scopes": ["host", "external"]},  # otherwise a pass would prove nothing of external
            "scopes: found external, and no listener of the contract serves it; allowed: host",
        ),
        ({"client": "x"}, "client: allowed: a map of Kafka client properties, each a text"),
        ({"client": {"request.timeout.ms": 3000}}, "client: allowed: a map"),
        ({"client": {"ssl.truststore.location": "x"}}, "client: client property ssl.truststore.l"),
        (
            {"client": {"scurity.protocol": "SASL_SSL"}},
            "client.scurity.protocol: is not a property of Kafka's clients; did you mean security",
        ),
    ],
)
def test_bad_inputs_are_refused_by_name(inputs: dict[str, Any], message: str) -> None:
    assert str(raised(InvalidInputs, checked, **inputs)).startswith(f"\n- {message}")


def test_all_problems_are_in_one_message() -> None:
    client = {"scurity.protocol": "SSL", "sl.truststore.location": "x"}
    wrong = {"record": 1, "scopes": ["x", "y"], "deadline": 0, "client": client, "contract": {}}
    (reason,) = raised(InvalidInputs, checked, **wrong).reasons.values()
    problems = [line.partition(": ")[0] for line in reason.splitlines()]
    assert {
        "- record",
        "- deadline",
        "- client.scurity.protocol",
        "- client.sl.truststore.location",
    } <= {*problems}
    assert problems.count("- scopes") == 2 and problems.count("- contract") > 1


def test_only_records_need_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for records in (0, None, UNKNOWN):
        checked(records=records)
    assert raised(InvalidInputs, checked, records=300).reasons == {
        "": "\n- records: needs the package pyspark, which is not installed; fix: pip install "
        "'earshot[spark]', or leave out `records`: the doctor needs no Spark"
    }


def test_a_null_is_the_default() -> None:
    inputs = checked(deadline=None, records=None, readySeconds=None, client=None)
    assert {key: inputs[key] for key in DEFAULTS} == DEFAULTS
    assert "client" not in inputs


@pytest.mark.parametrize(
    "inputs",
    [
        {"contract": UNKNOWN},
        {"contract": {**CONTRACT, "cluster_id": UNKNOWN}},
        {"client": UNKNOWN, "scopes": [UNKNOWN], "records": UNKNOWN},
        {"scopes": UNKNOWN},
        {"client": {"sasl.jaas.config": UNKNOWN}},
    ],
)
def test_an_unknown_input_is_not_refused(inputs: dict[str, Any]) -> None:
    assert checked(**inputs)["deadline"] == 60


def close_at_once(connection: socket.socket, peer: Peer, number: int) -> None:
    """A published port whose container does not listen yet."""


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_broker_that_is_waited_for_is_named_once(
    protocol: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(proof, "validate", lambda *arguments: (1, "it failed"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    of_killed = tmp_path / "earshot-proof-killed"
    of_killed.mkdir()
    (of_killed / "lock").touch()
    (of_killed / "client.properties").touch()
    with listening(close_at_once) as peer:
        address = {"host": peer.address.host, "port": peer.address.port}
        listener = {
            **CONTRACT["listeners"][0],
            "protocol": protocol,
            "bootstrap": str(peer.address),
        }
        contract = {**CONTRACT, "listeners": [listener],
                    "brokers": [{"id": 1, "advertised": {"HOST": address}}]}  # fmt: skip
        lines: list[str] = []
        operation = Operation("urn:a::b::c::proof", log=lines.append)
        inputs = ProofKind().check(operation, {}, {"contract": contract, "readySeconds": 1.2})
        with pytest.raises(OperationFailed, match="it failed"):
            ProofKind().create(operation, inputs)
        assert lines == [f"waiting for {peer.address}"]
        assert list(tmp_path.iterdir()) == [], "nothing is left, of a killed proof either"


def test_a_proof_that_fails_replaces_the_former_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "_wait_until_up", lambda *arguments: None)
    monkeypatch.setattr(proof, "validate", lambda *arguments: (1, "it failed"))
    kind, operation = ProofKind(), Operation("urn:a::b::c::proof")
    former = {**checked(), "verdict": "pass", "report": "PASS", "unproved": ["X"]}
    assert not kind.diff(operation, former, checked()).changed
    error = raised(FailedUpdate, kind.update, operation, former, checked(after=["2"]))
    assert "it failed" in str(error) and error.outputs["report"] == str(error)
    assert error.outputs | {"report": ""} == {
        **checked(after=["2"]),
        "verdict": "fail",
        "report": "",
        "unproved": [],
    }
    for inputs in (checked(), checked(after=["2"])):
        assert kind.diff(operation, error.outputs, inputs).changed
