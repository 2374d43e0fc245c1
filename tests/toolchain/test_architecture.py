"""The layers of packages, which `make check` demands of imports."""

import pkgutil

import earshot
from toolchain.architecture import layers_text
from toolchain.paths import ROOT


def test_the_page_shows_the_layers() -> None:
    assert layers_text() in (ROOT / "docs" / "architecture.md").read_text()


def test_every_package_is_in_a_layer() -> None:
    names = [name for row in layers_text().splitlines()[1:-1] for name in row.split("   ")]
    assert len(names) == len({*names})
    assert {*names} >= {it.name for it in pkgutil.iter_modules(earshot.__path__)} - {"__main__"}
