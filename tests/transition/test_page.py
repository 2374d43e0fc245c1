"""docs/changes.md is generated from the function that plans changes."""

from tests.transition.page import CHANGES, page
from toolchain.paths import ROOT


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "changes.md").read_text() == page(), (
        "run: .venv/bin/python -m tests.transition.page > docs/changes.md"
    )


def test_every_change_has_its_section() -> None:
    sections = [line[4:] for line in page().splitlines() if line.startswith("### ")]
    assert sections == list(CHANGES)
