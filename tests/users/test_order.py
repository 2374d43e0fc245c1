"""The order with the desired users, and the program that carries it out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from earshot.errors import EarshotError
from earshot.listeners.terms import Mechanism
from earshot.users import __main__ as program
from earshot.users import order
from earshot.users.access import Login
from earshot.users.order import UsersOrder

SECRET = "not to be shown"
LOGIN = Login(
    broker=1, listener="CLIENTS", address="kafka-1:9092", mechanism=Mechanism.SCRAM_SHA_512
)


def an_order(**changes: Any) -> UsersOrder:
    return UsersOrder(
        bootstrap="kafka-1:19092",
        access={"ssl.key.pem": SECRET},
        allowed=(("app", "topic", "app-"),),
        mechanisms=(Mechanism.SCRAM_SHA_512,),
        passwords={"app": SECRET},
        gone=(("old", Mechanism.SCRAM_SHA_256),),
        logins=(LOGIN,),
        client={"sasl.password": SECRET},
        **changes,
    )


def test_an_order_shows_no_secret_and_comes_back_whole() -> None:
    order = an_order()
    assert SECRET not in repr(order)
    assert UsersOrder.model_validate_json(order.model_dump_json()) == order


def test_the_program_runs_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = an_order()
    carried_out_orders: list[UsersOrder] = []
    monkeypatch.setattr(program, "carry_out", carried_out_orders.append)
    (tmp_path / "order.json").write_text(order.model_dump_json())
    assert program.main(tmp_path / "order.json") == 0
    assert carried_out_orders == [order]
    assert not (tmp_path / "order.json").exists(), "it has passwords"


class UserAccessDouble:
    """Records the calls to the cluster."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, bootstrap: str, settings: object) -> UserAccessDouble:
        self.asked.append(bootstrap)
        return self

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.asked.append(name)


def test_removals_precede_grants_and_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    noted = UserAccessDouble()
    monkeypatch.setattr(order, "UserAccess", noted)
    monkeypatch.setattr(order, "await_logins", lambda *_: noted.asked.append("await_logins"))
    order.carry_out(an_order().model_copy(update={"logins": ()}))
    assert noted.asked == ["kafka-1:19092", "forbid", "allow"]
    noted.asked.clear()
    order.carry_out(an_order())
    assert noted.asked[1:] == ["forbid", "allow", "set_passwords", "disable_logins", "await_logins"]


def test_what_the_cluster_refuses_is_said_without_a_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(bootstrap: str, settings: object) -> None:
        raise EarshotError(bootstrap, observed="does not answer")

    monkeypatch.setattr(order, "UserAccess", refused)
    (tmp_path / "order.json").write_text(an_order().model_dump_json())
    assert program.main(tmp_path / "order.json") == 2
    assert capsys.readouterr().err == "kafka-1:19092: does not answer\n"


def test_the_program_needs_no_package_that_the_validator_lacks() -> None:
    """The image has what `earshot/remote/requirements.lock` names, and nothing for certificates."""
    code = "import sys; sys.modules['cryptography'] = None; import earshot.users.__main__"
    completed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (completed.returncode, completed.stderr) == (0, "")
