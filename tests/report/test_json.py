"""A saved report is read back, or refused with one clear message."""

from __future__ import annotations

import pytest

from earshot.errors import EarshotError
from earshot.report.json import json, read_report
from tests.report import samples


@pytest.mark.parametrize(
    ("text", "observed"),
    [
        (b"", "is no JSON"),
        (b"\x00\xff", "is no JSON"),
        (b"[]", r"a report of version 1\): found \[\]; allowed: "),
        (b'{"version": 2}', r"- version: found 2; allowed: 1"),
        (b'{"version": 1}', r"- cells: is missing"),
    ],
)
def test_each_fault_has_its_message(text: bytes, observed: str) -> None:
    with pytest.raises(EarshotError, match=observed) as found:
        read_report(text, "r.json")
    assert str(found.value).startswith("r.json")


def test_a_key_that_is_not_known_is_named() -> None:
    text = json(samples.drift()).replace('"run"', '"ran"')
    with pytest.raises(
        EarshotError, match=r"- ran: is no key that earshot knows; did you mean run\?"
    ):
        read_report(text, "r.json")
