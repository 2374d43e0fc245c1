"""The XML, checked against the common core of JUnit's schema and against the verdicts."""

import xml.etree.ElementTree as ET

import pytest

from earshot.listeners.address import Address
from earshot.report.junit import junit
from earshot.validation.result import ReachedAddress, Vantage
from earshot.validation.terms import Verdict
from tests.report import samples

# element: (its attributes, required first; its children in their order)
SHAPE = {
    "testsuites": ({"name", "tests", "failures", "errors", "skipped", "time"}, set(),
                   ["testsuite"]),
    "testsuite": ({"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
                  {"hostname"}, ["properties", "testcase"]),
    "properties": (set(), set(), ["property"]),
    "property": ({"name", "value"}, set(), []),
    "testcase": ({"classname", "name", "time"}, set(), ["skipped", "error", "failure"]),
    "failure": ({"message", "type"}, set(), []),
    "error": ({"message", "type"}, set(), []),
    "skipped": ({"message"}, set(), []),
}  # fmt: skip


def check(element: ET.Element) -> None:
    required, optional, children = SHAPE[element.tag]
    assert required <= set(element.attrib) <= required | optional, element.tag
    order = [children.index(child.tag) for child in element]
    assert order == sorted(order), element.tag
    for child in element:
        check(child)


@pytest.mark.parametrize("name", samples.ALL)
def test_the_document_has_the_common_shape_and_counts_of_its_cases(name: str) -> None:
    root = ET.fromstring(junit(samples.ALL[name]()).encode())
    assert root.tag == "testsuites"
    check(root)
    assert all(len(case) <= 1 for case in root.iter("testcase"))
    for holder in [root, *root.iter("testsuite")]:
        assert int(holder.attrib["tests"]) == len(list(holder.iter("testcase")))
        for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(holder.attrib[count]) == len(list(holder.iter(tag)))


def test_inconclusive_is_an_error_and_a_skip_keeps_its_reason() -> None:
    root = ET.fromstring(junit(samples.inconclusive()).encode())
    assert root.attrib["errors"] == "4"
    reasons = {skipped.attrib["message"] for skipped in root.iter("skipped")}
    assert reasons == {"its clients stand elsewhere"}


def test_a_lost_record_fails_the_case_of_its_pair() -> None:
    root = ET.fromstring(junit(samples.dead_broker()).encode())
    case = next(
        test_case
        for test_case in root.iter("testcase")
        if test_case.get("name") == "INTERNAL to EXTERNAL"
    )
    failure = case.find("failure")
    assert failure is not None
    assert "10 lost" in failure.attrib["message"]
    assert "sequence 4 never came back" in (failure.text or "")


@pytest.mark.parametrize(
    ("reason", "error", "message", "text"),
    [
        ("no resolver", "refused", "no resolver", "E, broker 1 (h:1): not resolved; refused"),
        ("", "refused", "E, broker 1 (h:1): not resolved; refused", None),
        ("", None, "the vantage is fail", ""),
        ("no resolver", None, "no resolver", ""),
    ],
)
def test_a_vantage_has_the_reason_of_its_failure(
    reason: str, error: str | None, message: str, text: str | None
) -> None:
    at = Address("h", 1)
    unreached = ReachedAddress(listener="E", broker=1, address=at, reached=False, error=error or "")
    reached = (unreached,) if error else ()
    vantage = Vantage(name="host", verdict=Verdict.FAIL, reason=reason, reached=reached)
    root = ET.fromstring(junit(samples.report([], vantages=[vantage])).encode())
    (failure,) = root.iter("failure")
    assert failure.attrib == {"message": message, "type": vantage.kind}
    assert failure.text == (message if text is None else text or None)
