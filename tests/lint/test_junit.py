"""The XML against the common core of JUnit's shape, and against what a mistake means."""

import xml.etree.ElementTree as ET

import pytest

from earshot.lint.junit import junit
from earshot.lint.model import FileReport, Mistake
from tests.lint import samples
from tests.lint.samples import ERROR, IGNORED, NOTE, WARNING, outcome

OUTCOMES = {"failure", "error", "skipped", "system-out"}


def cases(*mistakes: Mistake) -> list[ET.Element]:
    root = ET.fromstring(junit(outcome(FileReport("compose.yml", "Compose file", mistakes))))
    return root.findall("testsuite/testcase")


@pytest.mark.parametrize("name", samples.ALL)
def test_numbers_are_those_of_the_cases(name: str) -> None:
    root = ET.fromstring(junit(samples.ALL[name]()))
    for element in (root, *root):
        for key, path in {
            "tests": "testcase",
            "failures": "failure",
            "errors": "error",
            "skipped": "skipped",
        }.items():
            assert int(element.attrib[key]) == len(list(element.iter(path)))
    for case in root.iter("testcase"):
        assert set(case.attrib) == {"classname", "name", "time"}
        assert len(case) <= 1 and {child.tag for child in case} <= OUTCOMES


@pytest.mark.parametrize(
    ("mistake", "tag"),
    [(ERROR, "failure"), (WARNING, "system-out"), (NOTE, "system-out"), (IGNORED, "skipped")],
)
def test_only_an_error_that_counts_fails(mistake: Mistake, tag: str) -> None:
    (case,) = cases(mistake)
    assert [child.tag for child in case] == [tag]


def test_a_message_is_one_line() -> None:
    (case,) = cases(Mistake(samples.finding(observed="one\n  two"), ERROR.place))
    message = case[0].attrib["message"]
    assert message == "container kafka, broker 1, listener EXTERNAL (scope host): one two"
