"""The cache of test images that take long to build."""

from pathlib import Path
from typing import Any, cast

import pytest

from tests.e2e.images import load

KAFKA, PACKAGES = "earshot-test/apache-kafka-double", "earshot-test/validator-packages"


class EngineDouble:
    """Docker's command line: `save` writes names into a file, `load` reads it."""

    def __init__(self) -> None:
        self.images: list[str] = []
        self.has_room = True

    def run(self, command: str, *arguments: str) -> str:
        file = Path(arguments[arguments.index(f"--{'out' if command == 'save' else 'in'}put") + 1])
        if command == "save":
            file.write_text(" ".join(arguments[2:]) if self.has_room else "earshot-te")
            assert self.has_room, "no space left on device"
        else:
            assert "damaged" not in file.read_text(), "unexpected EOF"
            self.images += file.read_text().split()
        return ""


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EngineDouble:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return EngineDouble()


def keep_stored(engine: EngineDouble, name: str, *names: str) -> Path:
    folder = load._stored_folder(name)
    load._keep(cast(Any, engine), folder, *names)
    return folder


def load_stored(engine: EngineDouble, folder: Path) -> bool:
    return load._load(cast(Any, engine), folder)


def test_an_image_takes_the_place_of_another_version_or_digest(engine: EngineDouble) -> None:
    packages = keep_stored(engine, f"{PACKAGES}:1", "python")
    for name in (f"{KAFKA}:4.1.1-1", f"{KAFKA}:4.1.1-2", f"{KAFKA}:4.3.1-1"):
        kafka = keep_stored(engine, name, name, "debian")
    (root,) = {folder.parents[1] for folder in (packages, kafka)}
    assert {path.parent for path in root.rglob("*.tar")} == {packages, kafka}
    assert load_stored(engine, kafka) and load_stored(engine, packages)
    assert engine.images == [f"{KAFKA}:4.3.1-1", "debian", "python"]
    assert not load_stored(engine, load._stored_folder(f"{KAFKA}:4.1.1-2"))


def test_a_damaged_image_is_removed(engine: EngineDouble) -> None:
    folder = keep_stored(engine, f"{KAFKA}:4.1.1-1", "damaged")
    assert not load_stored(engine, folder)
    assert not folder.exists()


def test_a_full_disk_keeps_nothing(engine: EngineDouble) -> None:
    engine.has_room = False
    folder = keep_stored(engine, f"{KAFKA}:4.1.1-1", "debian")
    assert not [path for path in folder.parent.rglob("*") if path.suffix != ".lock"]
    assert not load_stored(engine, folder)
