"""The page about costs says what the templates make."""

from __future__ import annotations

from earshot.placement.cost_page import cost_page
from tests.goldens import is_golden
from tests.placement.test_aws_templates import NAMES, filled
from toolchain.paths import ROOT

PAGE = ROOT / "docs" / "aws-costs.md"


def test_the_page_on_disk_is_current() -> None:
    text = cost_page({name: filled(name) for name in NAMES})
    is_golden(text, PAGE)


def test_every_price_that_a_formula_takes_has_its_page() -> None:
    text = cost_page({name: filled(name) for name in NAMES})
    assert "| broker instances | 1 | `1 x 730 h x broker-hour` |" in text
    assert "| NAT gateways | 3 | `3 x 730 h x nat-hour` |" in text
    assert "| `nat-hour` | NAT gateway, an hour | <https://aws.amazon.com/vpc/pricing/> |" in text
    assert "| validator instances | 1 | `1 x 730 h x validator-hour` |" in text
    assert "io2-gib-month" not in text
