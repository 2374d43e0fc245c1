from pathlib import Path

from earshot.rules.evaluate import RULES
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
