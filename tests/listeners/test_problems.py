"""What is said of a document that pydantic refuses."""

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from earshot.listeners import problems as problems_module
from earshot.listeners.problems import describe, refuse, shown
from tests.raised import raised


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = "x"
    port: int = Field(default=1, ge=1, le=9)


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    inner: Inner | None = None
    listed: tuple[Inner, ...] = ()
    mapped: dict[str, int] = {}
    needed: str


def problems(document: object) -> list[str]:
    error = raised(ValidationError, Outer.model_validate, document)
    return describe(error, Outer, document)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, ["needed: is missing"]),
        ({"needed": 1}, ["needed: found 1; allowed: text (put it in quotes)"]),
        ({"needed": None}, ["needed: found nothing; allowed: text (put it in quotes)"]),
        ({"needed": "", "neded": ""},
         [("neded: is no key that earshot knows; did you mean needed?; allowed: inner, listed, "
          "mapped, needed")]),
        ({"needed": "", "inner": {"prt": 1}},
         ["inner.prt: is no key that earshot knows; did you mean port?; allowed: name, port"]),
        ({"needed": "", "inner": {"port": 0}}, ["inner.port: found 0; allowed: 1 or more"]),
        ({"needed": "", "inner": {"port": 10}}, ["inner.port: found 10; allowed: 9 or less"]),
        ({"needed": "", "listed": [{"name": "a", "port": 1.5}]},
         ["listed.a.port: found 1.5; allowed: a whole number"]),
        ({"needed": "", "listed": [{}, {"port": "x"}]},
         ["listed[1].port: found 'x'; allowed: a whole number"]),
        ({"needed": "", "listed": [{"name": "a b", "port": "x"}]},
         ["listed[0].port: found 'x'; allowed: a whole number"]),
        ({"needed": "", "listed": [{"zzzz": 1}]},
         ["listed[0].zzzz: is no key that earshot knows; allowed: name, port"]),
        ({"needed": "", "mapped": {"a b": "x"}},
         ["mapped['a b']: found 'x'; allowed: a whole number"]),
        ({"needed": "", "mapped": 1}, ["mapped: found 1; allowed: a map"]),
        ({"needed": "", "listed": 1}, ["listed: found 1; allowed: a list"]),
        ([], ["found []; allowed: a map of settings"]),
    ],
)  # fmt: skip
def test_a_problem_is_said_with_its_key_and_what_is_allowed(
    document: object, said: list[str]
) -> None:
    assert problems(document) == said


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "nothing"),
        (True, "true"),
        (1, "1"),
        ("a\nb", r"'a\nb'"),
        ("x" * 58, f"'{'x' * 58}'"),
        ("x" * 59, f"'{'x' * 56}..."),
        (object(), "an object of type object"),
    ],
)
def test_a_value_is_shown_short_and_on_one_line(value: object, text: str) -> None:
    assert shown(value) == text


def test_of_a_huge_value_only_the_beginning_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []

    def record(text: str) -> str:
        searched.append(text)
        return text

    monkeypatch.setattr(problems_module, "without_secrets", record)
    assert shown("x" * 10_000_000) == f"'{'x' * 56}..."
    assert len(searched[0]) <= 5_000


def test_a_number_that_python_does_not_write_is_shown_as_such() -> None:
    assert shown([10**5000]) == "a number that is too long to be shown"


def test_problems_are_refused_together_and_none_is_none() -> None:
    refuse([])
    with pytest.raises(ValueError, match=r"^a\nb$"):
        refuse(iter(["a", "b"]))
