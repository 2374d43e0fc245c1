"""The page of the rules, and the reports that it lists."""

import re
from pathlib import Path

from earshot.rules.evaluate import RULES
from earshot.rules.reports import REPORTS, link
from tests.goldens import is_golden
from tests.rules.page import page

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"


def test_the_page_on_disk_is_current() -> None:
    is_golden(page(), PAGE)


def test_the_page_holds_every_rule_with_its_source() -> None:
    text = page()
    for rule in RULES:
        assert f"## {rule.id} {rule.title}\n" in text
        assert rule.reason in text and rule.remedy in text and f"<{rule.source}>" in text


def test_links_lead_to_headings() -> None:
    (rule, *_) = RULES
    text = page([rule])
    anchor = text.split("](#", 1)[1].split(")", 1)[0]
    assert anchor == f"{rule.id} {rule.title}".lower().replace(" ", "-").replace(",", "")


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
