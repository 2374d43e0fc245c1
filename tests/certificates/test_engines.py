"""The folder with the certificates of Docker hosts, as an accident or a stranger leaves it."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from earshot.certificates.engines import EngineStore, new_engines_authority
from earshot.errors import EarshotError

NOW = datetime.now(UTC)


@pytest.fixture
def store(tmp_path: Path) -> EngineStore:
    found = EngineStore(tmp_path / "hosts")
    found.keep(new_engines_authority("s", NOW), NOW)
    return found


def test_an_authority_is_read_back(store: EngineStore) -> None:
    found = store.authority(None)
    assert found is not None and store.authority((store.folder / "authority.json").read_text())


def test_no_copy_is_no_authority(tmp_path: Path) -> None:
    assert EngineStore(tmp_path).authority(None) is None


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00", b"[" * 100_000, b"null", b'{"certificate": "x", "key": "y"}']
)
def test_a_damaged_copy_is_one_error(content: bytes, store: EngineStore) -> None:
    (store.folder / "authority.json").write_bytes(content)
    with pytest.raises(EarshotError, match="is damaged"):
        store.authority(None)


@pytest.mark.parametrize("make", [Path.mkdir, lambda file: file.symlink_to("/dev/zero")])
def test_a_copy_that_is_no_file_is_one_error(
    make: Callable[[Path], None], store: EngineStore
) -> None:
    (file := store.folder / "authority.json").unlink()
    make(file)
    with pytest.raises(EarshotError, match="cannot be read"):
        store.authority(None)


def test_damaged_files_of_the_client_are_made_again(store: EngineStore) -> None:
    authority = store.authority(None)
    assert authority is not None and not store.is_due(authority.certificate, NOW)
    (store.client / "cert.pem").write_bytes(b"\xff")
    assert store.is_due(authority.certificate, NOW)
    store.keep(authority, NOW)
    assert not store.is_due(authority.certificate, NOW)


def test_all_of_it_is_for_its_owner_alone(store: EngineStore) -> None:
    modes = {file.stat().st_mode & 0o777 for file in store.folder.rglob("*") if file.is_file()}
    assert modes == {0o600}
    assert {store.folder.stat().st_mode & 0o777, store.client.stat().st_mode & 0o777} == {0o700}
