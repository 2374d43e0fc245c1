"""Reports and the rules that answer them."""

import re

from earshot.rules.evaluate import RULES
from earshot.rules.reports import REPORTS, link


def test_every_rule_that_is_named_is_there_and_every_report_has_a_place() -> None:
    known = [rule.id for rule in RULES]
    for report in REPORTS:
        assert report.rules and set(report.rules) <= set(known), report.title
        assert list(report.rules) == sorted(report.rules)
        assert report.reported
        for text in report.reported:
            assert re.fullmatch(r"[\w.-]+/[\w.-]+#[0-9]+", text), text


def test_no_report_stands_twice() -> None:
    texts = [text for report in REPORTS for text in report.reported]
    assert len(set(texts)) == len(texts)


def test_a_link_leads_to_the_report() -> None:
    assert link("owner/name#12") == "https://github.com/owner/name/issues/12"
