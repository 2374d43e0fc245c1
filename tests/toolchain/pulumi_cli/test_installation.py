"""The choice of a CLI, which is recorded."""

from collections.abc import Callable
from pathlib import Path

import pytest

from earshot.errors import EarshotError
from toolchain.pulumi_cli import build, installation, official, wrapper
from toolchain.pulumi_cli.installation import Origin


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Sets the sources of a CLI; the returned list gets the calls of sources, in order."""

    def set_up(*, on_path: bool = False, built: bool = False, site: bool = False) -> list[str]:
        calls: list[str] = []
        directory = tmp_path / "bin"
        directory.mkdir()
        (directory / "pulumi").touch(0o755)

        def find(path: str) -> tuple[Path, str] | None:
            calls.append("path")
            return (directory, "3.300.0") if on_path else None

        def fetch(version: str) -> Path | None:
            calls.append("site")
            return directory if site else None

        def make(version: str, *, pip: Path) -> Path:
            calls.append("build")
            return directory

        monkeypatch.setattr(official, "find", find)
        monkeypatch.setattr(official, "download", fetch)
        monkeypatch.setattr(build, "is_done", lambda version: built)
        monkeypatch.setattr(build, "ensure", make)
        monkeypatch.setattr(wrapper, "install", lambda *_, **__: calls.append("wrapper"))
        monkeypatch.setattr(installation, "BIN", directory)
        monkeypatch.setattr(installation, "CLI_RECORD", tmp_path / "record.json")
        return calls

    return set_up


@pytest.mark.parametrize(("sources", "origin", "calls"), [
    ({"on_path": True, "built": True, "site": True}, Origin.INSTALLED, ["path"]),
    ({"site": True}, Origin.DOWNLOADED, ["path", "site"]),
    ({}, Origin.BUILT, ["path", "site", "build", "wrapper"]),
    ({"built": True, "site": True}, Origin.BUILT, ["path", "build", "wrapper"]),
], ids=["official on PATH", "from the site", "built", "built before"])  # fmt: skip
def test_the_first_source_of_a_cli_is_used_and_recorded(
    offer: Callable[..., list[str]],
    tmp_path: Path,
    sources: dict[str, bool],
    origin: Origin,
    calls: list[str],
) -> None:
    recorded_calls = offer(**sources)
    chosen = installation.ensure()
    assert (chosen.directory, chosen.origin) == (tmp_path / "bin", origin)
    assert recorded_calls == calls
    assert installation.recorded() == chosen
    assert chosen.version == ("3.300.0" if origin is Origin.INSTALLED else installation.VERSION)


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
