"""The pages that a package registry of Pulumi shows, in the form that it asks for."""

from __future__ import annotations

import tomllib

import earshot_pulumi
import pytest
import yaml

from toolchain.paths import ROOT

PAGES = ("_index.md", "installation-configuration.md")


@pytest.mark.parametrize("page", PAGES)
def test_the_front_matter_has_what_the_registry_asks_for(page: str) -> None:
    _, head, body = (ROOT / "docs" / page).read_text().split("---\n", 2)
    front = yaml.safe_load(head)
    assert front["layout"] == "package"
    assert front["title"].startswith("earshot") and len(front["meta_desc"]) < 160
    assert body.strip()


def test_the_example_is_the_program_that_is_tested() -> None:
    page = (ROOT / "docs" / "_index.md").read_text()
    program = (ROOT / "examples" / "own-brokers" / "__main__.py").read_text()
    assert f"```python\n{program}```" in page


def test_the_overview_names_every_resource() -> None:
    page = (ROOT / "docs" / "_index.md").read_text()
    names = [name for name in earshot_pulumi.__all__ if not name.endswith("Args")]
    assert names
    for name in names:
        assert f"`{name}`" in page


def test_the_installation_names_every_extra() -> None:
    page = (ROOT / "docs" / "installation-configuration.md").read_text()
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for extra in known["optional-dependencies"].keys() - {"dev"}:
        assert f"| `{extra}` |" in page
