"""Orders, how a validator fares, and who they are meant for."""

from typing import Any

import pytest

from earshot.errors import EarshotError
from earshot.remote.orders import (
    Status,
    ValidationOrder,
    ValidatorState,
    answer_to,
    digest,
    read_order,
)
from tests.remote.contracts import docker_contract


def order(**changes: Any) -> ValidationOrder:
    values: dict[str, Any] = {
        "id": "0a",
        "vantage": "internal",
        "contract": docker_contract(),
        "records": 300,
        "deadline": 60.0,
    }
    return ValidationOrder.model_validate(values | changes)


def status(**changes: Any) -> Status:
    values = {"instance": "i-1", "state": "ready", "order": "", "detail": "", "at": "2026"}
    return Status.model_validate(values | changes)


def test_an_order_reads_back_as_it_was_written() -> None:
    written_order = order(incarnations={"1": "i-1"})
    assert read_order(written_order.to_json(), "order") == written_order


def test_each_order_has_an_answer_of_its_own() -> None:
    first_order, second_order = order().to_json(), order(id="0b").to_json()
    assert answer_to(first_order) != answer_to(second_order)
    assert answer_to(first_order) == f"reports/orders/{digest(first_order)}.json"


@pytest.mark.parametrize(
    ("text", "error_pattern"),
    [("{", "is not JSON"), ("{}", "contract"), (order().to_json().replace("300", "-1"), "records")],
)
def test_what_is_no_order_is_refused(text: str, error_pattern: str) -> None:
    with pytest.raises(EarshotError, match=error_pattern):
        read_order(text, "order.json")


@pytest.mark.parametrize("text", ["", "nothing", "{}", "[]"])
def test_what_is_no_status_is_none(text: str) -> None:
    assert Status.read(text) is None
    assert Status.read(status().model_dump_json()) == status()


@pytest.mark.parametrize(("changes", "final"), [
    ({"state": "failed"}, True),
    ({"state": "failed", "order": "mine"}, True),
    ({"state": "failed", "order": "another"}, False),
    ({"state": "failed", "instance": "i-0"}, False),
    *(({"state": state}, False) for state in ValidatorState if state is not ValidatorState.FAILED),
])  # fmt: skip
def test_waiting_ends_where_this_one_gave_up(changes: dict[str, str], final: bool) -> None:
    assert status(**changes).ends("mine", "i-1") is final


def test_a_status_tells_what_how_and_when() -> None:
    assert str(status(state="failed", detail="no disk")) == "failed: no disk (i-1, 2026)"
