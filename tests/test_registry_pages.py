"""The pages that a package registry of Pulumi shows, in the form that it asks for."""

import re
import tomllib
from pathlib import Path

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


@pytest.mark.parametrize(
    ("language", "file"),
    [
        ("python", "own-brokers/__main__.py"),
        ("typescript", "own-brokers-typescript/index.ts"),
        ("go", "own-brokers-go/main.go"),
        ("yaml", "own-brokers-yaml/Pulumi.yaml"),
    ],
)
def test_the_examples_are_the_programs_that_are_tested(language: str, file: str) -> None:
    page = (ROOT / "docs" / "_index.md").read_text()
    assert f"```{language}\n{(ROOT / 'examples' / file).read_text()}```" in page


def test_the_overview_names_every_resource() -> None:
    page = (ROOT / "docs" / "_index.md").read_text()
    names = [name for name in earshot_pulumi.__all__ if not name.endswith("Args")]
    assert names
    for name in names:
        assert f"`{name}`" in page


def test_the_installation_names_every_extra() -> None:
    page = (ROOT / "docs" / "installation-configuration.md").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for extra in project["optional-dependencies"].keys() - {"dev"}:
        assert f"| `{extra}` |" in page


@pytest.mark.parametrize(
    "page", sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")})
)
def test_every_extra_that_a_page_installs_exists(page: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = re.findall(r"earshot\[([a-z,]+)\]", page.read_text())
    assert {extra for names in extras for extra in names.split(",")} <= {
        *project["optional-dependencies"]
    }
