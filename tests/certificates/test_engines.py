"""The folder with the certificates of Docker hosts: damaged, expired and lost files."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from earshot.certificates.engines import EngineStore, new_engines_authority
from earshot.errors import EarshotError
from tests.raised import raised

NOW = datetime.now(UTC)


@pytest.fixture
def store(tmp_path: Path) -> EngineStore:
    engine_store = EngineStore(tmp_path / "hosts")
    engine_store.keep(new_engines_authority("s", NOW), NOW)
    return engine_store


def test_an_authority_comes_from_folder_or_parameter(store: EngineStore, tmp_path: Path) -> None:
    authority = store.authority(None, NOW)
    assert authority is not None
    text = (store.folder / "authority.json").read_text()
    other_checkout = EngineStore(tmp_path / "other")
    assert other_checkout.authority(None, NOW) is None
    assert other_checkout.authority(text, NOW) == authority


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00", b"[" * 100_000, b"null", b'{"certificate": "x", "key": "y"}']
)
def test_a_damaged_copy_is_one_error(content: bytes, store: EngineStore) -> None:
    (store.folder / "authority.json").write_bytes(content)
    with pytest.raises(EarshotError, match="is damaged"):
        store.authority(None, NOW)


@pytest.mark.parametrize("make", [Path.mkdir, lambda file: file.symlink_to("/dev/zero")])
def test_an_unreadable_copy_is_one_error(make: Callable[[Path], None], store: EngineStore) -> None:
    (file := store.folder / "authority.json").unlink()
    make(file)
    with pytest.raises(EarshotError, match="cannot be read"):
        store.authority(None, NOW)


@pytest.mark.parametrize("from_parameter", [False, True])
@pytest.mark.parametrize("days", [-1, 3650])
def test_invalid_authority_is_refused(store: EngineStore, days: int, from_parameter: bool) -> None:
    """Clients of Docker check the validity of the authority, too."""
    file, now = store.folder / "authority.json", NOW + timedelta(days=days)
    text = file.read_text() if from_parameter else None
    error = raised(EarshotError, store.authority, text, now)
    assert str(file) in error.object and "is valid from" in error.observed
    assert error.allowed == "an authority that is valid now"
    assert f"delete the SSM parameter and {file}" in error.remedy
    authority = store.authority(text, NOW)
    assert authority is not None and store.is_due(authority.certificate, now)


def test_damaged_files_of_the_client_are_issued_again(store: EngineStore) -> None:
    authority = store.authority(None, NOW)
    assert authority is not None and not store.is_due(authority.certificate, NOW)
    (store.client / "cert.pem").write_bytes(b"\xff")
    assert store.is_due(authority.certificate, NOW)
    store.keep(authority, NOW)
    assert not store.is_due(authority.certificate, NOW)


def test_only_the_owner_can_read_the_files(store: EngineStore) -> None:
    modes = {file.stat().st_mode & 0o777 for file in store.folder.rglob("*") if file.is_file()}
    assert modes == {0o600}
    assert {store.folder.stat().st_mode & 0o777, store.client.stat().st_mode & 0o777} == {0o700}
