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
    """What `earshot` is called with."""
    found: list[list[str]] = []

    def called(arguments: list[str]) -> int:
        found.append(arguments)
        return 3

    monkeypatch.setattr(cli, "run", called)
    return found


@pytest.mark.parametrize("client", [[], ["client.properties"]])
def test_it_is_a_validation_of_what_the_order_says(
    commands: list[list[str]], client: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "order.json"
    file.write_text(order(incarnations={"1": "i-1"}).to_json())
    assert run_order.main([str(file), "report.json", "/jars", *client]) == 3
    ((command, *arguments),) = commands
    given = dict(zip(arguments[::2], arguments[1::2], strict=True))
    assert command == "validate"
    assert given.pop("--contract") == str(tmp_path / "contract.json")
    assert json.loads(given.pop("--incarnations")) == {"1": "i-1"}
    assert given.pop("--client-config", None) == (client[0] if client else None)
    assert given == {
        "--vantage": "internal",
        "--records": "300",
        "--deadline": "60.0",
        "--jars-dir": "/jars",
        "--format": "json",
        "--output": "report.json",
    }
    written = (tmp_path / "contract.json").read_text()
    assert read_contract(written, "contract") == docker_contract()


def test_what_is_no_order_is_told_in_one_line(
    commands: list[list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "order.json"
    file.write_text("{")
    assert run_order.main([str(file), "report.json", "/jars"]) == 2
    assert commands == [] and "is not JSON" in capsys.readouterr().err
