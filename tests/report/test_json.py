"""A saved report is read back, or refused with one clear message."""

import json as json_module
import re
from collections.abc import Callable

import pytest

from earshot.errors import EarshotError
from earshot.json_object import JsonObject
from earshot.report.json import json, read_report
from tests.report import samples


@pytest.mark.parametrize(
    ("text", "observed"),
    [
        (b"", "is not JSON"),
        (b"\x00\xff", "is not JSON"),
        (b"[]", r"a report of version 1\): found \[\]; allowed: "),
        (b'{"version": 2}', r"- version: found 2; allowed: 1"),
        (b'{"version": 1}', r"- cells: is missing"),
    ],
)
def test_each_fault_has_its_message(text: bytes, observed: str) -> None:
    with pytest.raises(EarshotError, match=observed) as caught:
        read_report(text, "r.json")
    assert str(caught.value).startswith("r.json")


def test_text_of_a_broker_reverses_no_line_of_the_document() -> None:
    text = json(samples.hostile())
    assert text.isascii() and "\\u202e" in text
    assert read_report(text, "r.json") == samples.hostile()


FINITE = r"{}: found -?(nan|inf); allowed: a finite number"


@pytest.mark.parametrize(
    ("written", "changed", "problem"),
    [
        ('"run"', '"ran"', r"- ran: is no key that earshot knows; did you mean run\?"),
        ("localhost:19092", "localhost", "found 'localhost'; allowed: host:port or"),
        *(
            (rf'"{key}": [\d.]+', f'"{key}": {number}', FINITE.format(key))
            for key in ("seconds", "latency_ms")
            for number in ("NaN", "-Infinity", "1e999")
        ),
        *(
            (r'"started": "[^"]+"', f'"started": "{text}"', f"started: found {re.escape(text)}; a")
            for text in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00")
        ),
    ],
)
def test_a_wrong_key_or_value_is_named(written: str, changed: str, problem: str) -> None:
    text = re.sub(written, changed, json(samples.all_pass()))
    with pytest.raises(EarshotError, match=problem):
        read_report(text, "r.json")


def test_addresses_are_text_in_the_document_as_they_ever_were() -> None:
    text = json(samples.all_pass())
    assert '"address": "localhost:19092"' in text
    for observed in ("my_kafka:9092", ":9092", "[kafka:9094]:30000", "localhost:-1"):
        report = read_report(text.replace("localhost:19092", observed), "r.json")
        assert str(report.cells[0].address) == observed


def test_of_many_problems_the_first_twenty_are_named() -> None:
    text = json(samples.all_pass()).replace("localhost:", "localhost;")
    with pytest.raises(EarshotError) as caught:
        read_report(text, "r.json")
    # six cells, and the first of what a vantage reached
    assert caught.value.observed.count("allowed: host:port or") == 7
    cells = samples.healthy_cells() * 4
    with pytest.raises(EarshotError) as caught:
        read_report(json(samples.report(cells)).replace("localhost:", "localhost;"), "r.json")
    assert caught.value.observed.count("allowed: host:port or") == 20


def _twice(key: str) -> Callable[[JsonObject], None]:
    return lambda report: report[key].append(report[key][0])


@pytest.mark.parametrize(
    ("change", "observed"),
    [
        (_twice("cells"), r"cells: listener .*broker 1 .*: found 2 times; allowed: once"),
        (_twice("replication"), r"replication: leader 1, follower 2: found 2 times"),
        (
            lambda report: report["cells"][0]["stages"][3].update(verdict="fail"),
            r"cells\.0: found pass, and its stage tcp failed",
        ),
        (
            lambda report: report["cells"][0].update(
                cause={"kind": "drift", "observed": "a", "expected": "b", "remedy": "c"}
            ),
            r"cells\.0: found pass, and it has the cause of a failure \(.*drift",
        ),
        (
            lambda report: report["cells"][0].update(stages=[]),
            r"cells\.0: found pass, and none of its stages passed",
        ),
        (
            lambda report: report["delivery"][0].update(read=0),
            r"delivery\.0: found \d+ acknowledged, 0 read and 0 lost; allowed: ",
        ),
        (
            lambda report: report["delivery"][0].update(lost=-1, unknown=-2),
            r"delivery\.0: found negative counts \(unknown, lost\)",
        ),
        (lambda report: report.update(version=True), "version: found true; allowed: a number"),
    ],
)
def test_a_report_that_contradicts_itself_is_refused(
    change: Callable[[JsonObject], None], observed: str
) -> None:
    report = json_module.loads(json(samples.all_pass()))
    change(report)
    with pytest.raises(EarshotError, match=observed):
        read_report(json_module.dumps(report), "r.json")
