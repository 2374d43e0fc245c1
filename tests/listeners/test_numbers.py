import importlib
import pkgutil
from collections.abc import Iterator
from typing import Annotated, Any, get_args

import pytest
from pydantic import Field, ValidationError

import earshot
from earshot.listeners.model import Frozen
from earshot.names.policy import read_policy
from tests.raised import raised


class Inner(Frozen):
    number: int = 0


class Numbers(Frozen):
    """Numbers in every place in which a model may have one."""

    whole: int = 0
    fraction: float | None = None
    bounded: Annotated[int, Field(ge=0)] = 0
    listed: tuple[int, ...] = ()
    by_id: dict[int, str] = Field(default_factory=dict)
    inner: Inner | None = None
    free: dict[str, str | int | bool] = Field(default_factory=dict)


@pytest.mark.parametrize(
    "given",
    [
        {"whole": True},
        {"fraction": False},
        {"bounded": True},
        {"listed": [1, True]},
        {"by_id": {True: "a"}},
        {"inner": {"number": True}},
    ],
)
def test_a_truth_value_is_no_number(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"found (true|false); allowed: a number"):
        Numbers.model_validate(given)


def test_numbers_are_read_as_before() -> None:
    given = {"whole": "5", "fraction": 1, "listed": [1.0], "by_id": {"1": "a"}, "free": {"a": True}}
    found = Numbers.model_validate(given)
    assert (found.whole, found.fraction, found.listed, found.by_id) == (5, 1.0, (1,), {1: "a"})
    assert found.free == {"a": True}
    assert Numbers.model_validate_json('{"whole": 5}').whole == 5
    with pytest.raises(ValidationError, match="found true; allowed: a number"):
        Numbers.model_validate_json('{"whole": true}')
    assert Numbers.model_json_schema()["properties"]["whole"]["type"] == "integer"


def models() -> Iterator[type[Frozen]]:
    """Every model of the library."""
    for module in pkgutil.walk_packages(earshot.__path__, "earshot."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    ahead = [Frozen]
    while ahead:
        subclasses = ahead.pop().__subclasses__()
        ahead += subclasses
        yield from (it for it in subclasses if it.__module__.startswith("earshot."))


def is_number(annotation: object) -> bool:
    kinds = {annotation, *get_args(annotation)}
    return bool(kinds & {int, float}) and not kinds & {bool, str}


def test_no_model_takes_a_truth_value_for_a_number() -> None:
    accepted = []
    count = 0
    for model in models():
        for name, info in model.model_fields.items():
            if not is_number(info.annotation):
                continue
            count += 1
            key = info.alias or name
            error = raised(ValidationError, model.model_validate, {key: True})
            if not any(item["loc"][:1] == (key,) for item in error.errors()):
                accepted.append(f"{model.__name__}.{name}")
    assert accepted == []
    assert count > 30


@pytest.mark.parametrize("key", ["timeout", "retry"])
def test_seconds_of_lookups_are_no_truth_value(key: str) -> None:
    with pytest.raises(ValueError, match=f"{key}: found true; allowed: a number"):
        read_policy({key: True})
