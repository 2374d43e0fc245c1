from tests.config.page import page
from toolchain.paths import ROOT

PAGE = ROOT / "docs" / "stack-file.md"


def test_the_page_on_disk_is_current() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.config.page > docs/stack-file.md"


def test_keys_of_every_placement_have_type_default_and_meaning() -> None:
    text = page()
    assert "| `region` | text | required | The AWS region, such as eu-central-1. |" in text
    assert "| `brokers` | integer ≥ 1 ≤ 1000 | `3` | The number of brokers." in text
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert all(cell.strip() for row in rows for cell in row.strip("|").split(" | ")), (
        "no empty cell"
    )


def test_links_lead_to_headings() -> None:
    text = page()
    headings = {line[3:].lower() for line in text.splitlines() if line.startswith("## ")}
    links = {part.split(")", 1)[0] for part in text.split("](#")[1:]}
    assert links and links <= headings
