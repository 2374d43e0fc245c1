"""The layers of packages, which `make check` demands of imports."""

import pkgutil
import re

import earshot
from toolchain.architecture import layers_text
from toolchain.paths import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text()
PLACEHOLDER = re.compile("NAME|NNN")


def test_the_page_shows_the_layers() -> None:
    assert layers_text() in PAGE


def test_the_page_names_files_that_exist() -> None:
    named = {
        *re.findall(r"`([\w/]+/\w+\.py)`", PAGE.replace("PULUMI/", "components/earshot_pulumi/"))
    }
    folders = ROOT, ROOT / "earshot"
    missing = {file for file in named if not any((folder / file).exists() for folder in folders)}
    assert len(named) > 50
    assert {file for file in missing if not PLACEHOLDER.search(file)} == set()


def test_the_page_names_symbols_that_their_files_have() -> None:
    page = PAGE.replace("PULUMI/", "components/earshot_pulumi/")
    symbols = [
        (symbol, file)
        for words, file in re.findall(r"((?:`\w+`(?:, | and )?)+) \(`([\w/]+\.py)`\)", page)
        for symbol in re.findall(r"`(\w+)`", words)
    ]
    assert len(symbols) > 20
    texts = {file: _source(file) for _, file in symbols if not PLACEHOLDER.search(file)}
    missing = {
        (symbol, file)
        for symbol, file in symbols
        if file in texts and not re.search(rf"\b{symbol}\b", texts[file])
    }
    assert missing == set()


def _source(file: str) -> str:
    """The text of the file at a path of the page."""
    paths = [folder / file for folder in (ROOT, ROOT / "earshot")]
    return next(path for path in paths if path.exists()).read_text()


def test_every_package_is_in_a_layer() -> None:
    names = [name for row in layers_text().splitlines()[1:-1] for name in row.split("   ")]
    assert len(names) == len({*names})
    assert {*names} >= {it.name for it in pkgutil.iter_modules(earshot.__path__)} - {"__main__"}
