"""What README and docs tell a reader to type exists: commands, options, make targets, links."""

import re
from pathlib import Path

import pytest
import typer.main

from earshot.cli import lint_options
from earshot.cli.commands import app

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *DOCS]
LINKED = [
    *PAGES,
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
    *sorted(ROOT.glob("*/*/README.md")),
]
COMMAND = re.compile(r"earshot (plan|doctor|validate|report|rules|adopt|lint)\b([^`|\n]*)")


def options() -> dict[str, set[str]]:
    """By command, all of its options' names."""
    group = typer.main.get_group(app)
    names = {
        name: {option for parameter in command.params for option in parameter.opts}
        for name, command in group.commands.items()
    }
    return names | {"lint": {*lint_options.parser()._option_string_actions}}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_with_their_options_and_make_targets_exist(page: Path) -> None:
    text = page.read_text()
    allowed = options()
    for name, rest in COMMAND.findall(text):
        used = set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", rest))
        assert used <= allowed[name] | {"--help"}, f"earshot {name}{rest}"
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    used = set(re.findall(r"(?:^|[`(])make (?:-s )?([a-z-]+)", text, re.MULTILINE))
    assert used <= set(targets)


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", page.read_text()):
        if not link.startswith("https://"):
            target = page.parent / link if link else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target.read_text()), f"{link}#{anchor}"


def anchors(text: str) -> set[str]:
    """The anchors that GitHub makes of the headings of a page."""
    headings = re.findall(
        r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_index_leads_to_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    assert [
        page.name for page in DOCS if page.name != "README.md" and f"({page.name}" not in index
    ] == []
