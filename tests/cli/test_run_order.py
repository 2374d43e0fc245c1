"""From an order to a report: the command that a validator's timer runs."""

import json
from pathlib import Path

import pytest

from earshot import cli
from earshot.cli import run_order
from earshot.validation.contract import read_contract
from tests.remote.contracts import docker_contract
from tests.remote.test_orders import order


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The arguments of `earshot`, whose double exits with 3."""
    calls: list[list[str]] = []

    def run(arguments: list[str]) -> int:
        calls.append(arguments)
        return 3

    monkeypatch.setattr(cli, "run", run)
    return calls


@pytest.mark.parametrize("client", [[], ["client.properties"]])
def test_it_is_a_validation_with_the_options_of_the_order(
    commands: list[list[str]], client: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "order.json"
    file.write_text(order(incarnations={"1": "i-1"}).to_json())
    assert run_order.main([str(file), "report.json", "/jars", *client]) == 3
    ((command, *arguments),) = commands
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    assert command == "validate"
    assert json.loads(options.pop("--incarnations")) == {"1": "i-1"}
    assert options == {
        "--contract": str(tmp_path / "contract.json"),
        "--vantage": "internal",
        "--records": "300",
        "--deadline": "60.0",
        "--jars-dir": "/jars",
        "--format": "json",
        "--output": "report.json",
        **({"--client-config": client[0]} if client else {}),
    }
    contract = (tmp_path / "contract.json").read_text()
    assert read_contract(contract, "contract") == docker_contract()


def test_an_invalid_order_is_one_error(
    commands: list[list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "order.json"
    file.write_text("{")
    assert run_order.main([str(file), "report.json", "/jars"]) == 2
    assert commands == [] and "is not JSON" in capsys.readouterr().err
