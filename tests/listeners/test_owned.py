"""The broker properties that a stack file may not set, and those that it may."""

import re
from pathlib import Path
from typing import Any

import pytest

from earshot.listeners.owned import OWNED, check_property, owner_of
from tests.goldens import is_golden


def test_what_earshot_computes_is_as_on_disk() -> None:
    text = "".join(f"{key}: {owner}\n" for key, owner in OWNED.items())
    is_golden(text, Path(__file__).parent / "owned.txt")


@pytest.mark.parametrize("key", OWNED)
def test_each_is_refused_with_the_way_to_set_it(key: str) -> None:
    for written in (key, key.upper()):
        with pytest.raises(ValueError, match="computed") as caught:
            check_property(written, "1")
        assert str(caught.value) == f"{written} is computed by earshot; {OWNED[key]}"
    assert owner_of(f" {key} ") == OWNED[key]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (7, "7"),
        (0.5, "0.5"),
        ("", ""),
        ("a b", "a b"),
        ("~", "~"),
    ],
)
def test_others_are_free(value: object, text: str) -> None:
    assert owner_of("log.retention.hours") == ""
    assert check_property("log.retention.hours", value) == text


@pytest.mark.parametrize("value", ["a\\b", "ä"])
def test_what_a_file_holds_as_an_escape_is_free(value: str) -> None:
    assert check_property("log.retention.hours", value) == value


HOURS = "log.retention.hours"


@pytest.mark.parametrize(("key", "value", "reason"), [
    *((HOURS, text, "allowed: printable text without line breaks")
      for text in ("a\nb", " a", "a ", "\t")),
    *((HOURS, value, "allowed: one line of text, or a number")
      for value in (None, ["a"], {"a": 1})),
    *((key, "1", "is no property name; allowed: letters") for key in ("", "a b", "a=b", 7, "ä")),
])  # fmt: skip
def test_a_property_that_a_file_would_not_give_back_is_refused(
    key: Any, value: Any, reason: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        check_property(key, value)


@pytest.mark.parametrize("value", ["hush\n", " hush", ["hush"], {"hush": "hush"}, b"hush"])
def test_a_refused_value_is_not_repeated(value: object) -> None:
    with pytest.raises(ValueError, match="allowed: ") as caught:
        check_property("sasl.jaas.config", value)
    assert "hush" not in str(caught.value)
