"""Which CLI is settled on, and that the choice is kept."""

from collections.abc import Callable
from pathlib import Path

import pytest

from earshot.errors import EarshotError
from toolchain.pulumi_cli import build, installation, official, wrapper
from toolchain.pulumi_cli.installation import Installation, Origin


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Say what there is to choose from; the list returned names what was asked for, in order."""

    def set_up(*, on_path: bool = False, built: bool = False, site: bool = False) -> list[str]:
        asked: list[str] = []
        directory = tmp_path / "bin"
        directory.mkdir()
        (directory / "pulumi").touch(0o755)

        def find(path: str) -> tuple[Path, str] | None:
            asked.append("path")
            return (directory, "3.300.0") if on_path else None

        def fetch(version: str) -> Path | None:
            asked.append("site")
            return directory if site else None

        def make(version: str, *, pip: Path) -> Path:
            asked.append("build")
            return directory

        monkeypatch.setattr(official, "find", find)
        monkeypatch.setattr(official, "download", fetch)
        monkeypatch.setattr(build, "is_done", lambda version: built)
        monkeypatch.setattr(build, "ensure", make)
        monkeypatch.setattr(wrapper, "install", lambda *_, **__: asked.append("wrapper"))
        monkeypatch.setattr(installation, "BIN", directory)
        monkeypatch.setattr(installation, "CLI_RECORD", tmp_path / "record.json")
        return asked

    return set_up


def test_official_one_on_path_is_taken(offer: Callable[..., list[str]], tmp_path: Path) -> None:
    asked = offer(on_path=True, built=True, site=True)
    found = installation.ensure()
    assert found == Installation(tmp_path / "bin", "3.300.0", Origin.INSTALLED)
    assert asked == ["path"]


def test_else_the_site_is_asked(offer: Callable[..., list[str]]) -> None:
    asked = offer(site=True)
    assert installation.ensure().origin is Origin.DOWNLOADED
    assert asked == ["path", "site"]


def test_else_it_is_built(offer: Callable[..., list[str]]) -> None:
    asked = offer()
    assert installation.ensure().origin is Origin.BUILT
    assert asked == ["path", "site", "build", "wrapper"]


def test_once_built_the_site_is_left_alone(offer: Callable[..., list[str]]) -> None:
    asked = offer(built=True, site=True)
    assert installation.ensure().origin is Origin.BUILT
    assert "site" not in asked


def test_choice_is_recorded(offer: Callable[..., list[str]]) -> None:
    offer()
    settled = installation.ensure()
    assert installation.recorded() == settled


@pytest.mark.parametrize("damage", ["cli", "record", "rubbish"])
def test_cli_that_is_gone_is_no_cli(
    offer: Callable[..., list[str]], tmp_path: Path, damage: str
) -> None:
    offer()
    installation.ensure()
    if damage == "cli":
        (tmp_path / "bin" / "pulumi").unlink()
    elif damage == "record":
        (tmp_path / "record.json").unlink()
    else:
        (tmp_path / "record.json").write_text('{"origin": "stolen"}')
    with pytest.raises(EarshotError, match="make setup"):
        installation.recorded()
