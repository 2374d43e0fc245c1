"""The doctor where no broker is: what it says, and that only the user's errors are raised."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence

import pytest

from earshot.errors import EarshotError
from earshot.listeners.address import Address
from earshot.listeners.model import Protocol
from earshot.names.lookup import Diagnosis, Lookup
from earshot.validation import doctor, survey
from earshot.validation.client import Failure
from earshot.validation.diagnosis import Facts, Target
from earshot.validation.doctor import examine, without_topic
from earshot.validation.result import Cell, Stage, Verdict
from tests.doubles.answers import contract


@pytest.fixture
def closed() -> Iterator[int]:
    """A port that nobody else gets and nobody listens on."""
    with socket.socket() as item:
        item.bind(("127.0.0.1", 0))
        yield item.getsockname()[1]


def test_nobody_listens(closed: int) -> None:
    told: list[Cell] = []
    report = examine(contract(EXTERNAL=[f"127.0.0.1:{closed}"]), on_cell=told.append)
    (cell,) = report.cells
    assert report.exit_code == 1 and report.kind == "doctor" and report.cluster == "dev"
    assert cell.failed_stage is Stage.TCP and cell.cause is not None
    assert cell.cause.kind == "refused"
    assert told == [cell]
    assert report.vantages[0].verdict is Verdict.PASS
    assert report.notes == ()


def test_without_a_contract_the_listener_is_the_address(closed: int) -> None:
    report = examine([Address("127.0.0.1", closed)])
    (cell,) = report.cells
    assert (cell.listener, cell.broker) == (f"127.0.0.1:{closed}", -1)
    assert cell.failed_stage is Stage.TCP


def test_every_cell_is_judged_though_one_name_is_bad(closed: int) -> None:
    report = examine(contract(EXTERNAL=["nope.invalid:9092", f"127.0.0.1:{closed}"]))
    assert [cell.failed_stage for cell in report.cells] == [Stage.RESOLVE, Stage.TCP]


def test_a_silent_bootstrap_address_is_noted(closed: int) -> None:
    seed = Address("127.0.0.1", closed)
    report = examine(contract(EXTERNAL=["nope.invalid:9092"]), bootstrap=[seed])
    assert report.notes == (f"{seed} gave no metadata",)
    assert report.cells[0].failed_stage is Stage.RESOLVE


@pytest.mark.parametrize(
    ("error", "given", "verdict"),
    [("timeout", 10.0, "no-quorum"), ("timeout", 0.1, "skip"), ("authorization", 10.0, "skip")],
)
def test_only_a_cluster_that_had_time_has_no_quorum(error: str, given: float, verdict: str) -> None:
    at = Address("127.0.0.1", 9092)
    facts = Facts(Target("L", Protocol.PLAINTEXT, 1, at), None)
    found = without_topic(facts, Failure(error, "said so"), given)
    if verdict == "skip":
        assert found.prevented == "no topic could be created here: said so"
        assert found.produced is None
    else:
        assert isinstance(found.produced, Failure) and found.produced.error == verdict


def test_a_blind_vantage_is_inconclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(hosts: Sequence[str], limit: float = 1.0) -> dict[str, Lookup]:
        return {host: Lookup(host, "test", Diagnosis.TIMEOUT) for host in hosts}

    monkeypatch.setattr(survey, "resolve", nothing)
    monkeypatch.setattr(doctor, "vantage_resolves", lambda: False)
    report = examine(contract(EXTERNAL=["broker-1.example.com:9092"]))
    assert report.exit_code == 3
    assert report.vantages[0].verdict is Verdict.INCONCLUSIVE
    assert [cell.verdict for cell in report.cells] == [Verdict.INCONCLUSIVE]
    assert "localhost" in report.cells[0].reason


@pytest.mark.parametrize(
    ("client", "named"),
    [
        ({"security.protocol": "TLS"}, "security.protocol"),
        ({"no.such.property": "1"}, "no.such.property"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/ca.jks"}, "truststore"),
    ],
)
def test_bad_client_properties_are_one_error(client: dict[str, str], named: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        seed = Address("127.0.0.1", server.getsockname()[1])
        with pytest.raises(EarshotError, match=named) as caught:
            examine([seed], client=client)
    assert caught.value.exit_code == 2
