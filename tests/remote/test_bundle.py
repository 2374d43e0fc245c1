"""The bundle of a validator: its content, and that equal inputs give the same bundle."""

import hashlib
import tarfile
from pathlib import Path

from earshot.remote.image import bundle


def test_it_holds_the_library_its_jars_and_its_locks(tmp_path: Path) -> None:
    new_bundle = bundle(tmp_path)
    with tarfile.open(new_bundle.file) as archive:
        names = archive.getnames()
        assert {member.mode for member in archive.getmembers()} == {0o644}
        assert {member.mtime for member in archive.getmembers()} == {0}
    assert {"requirements.lock", "builders.lock", "app/earshot/cli/run_order.py"} <= set(names)
    assert any(name.startswith("jars/spark-sql-kafka") for name in names)
    assert names == sorted(names) and "Dockerfile" not in names


def test_it_is_named_by_its_content_and_replaces_older_ones(tmp_path: Path) -> None:
    old_bundle = tmp_path / "validator-000000000000.tar"
    old_bundle.write_text("old")
    new_bundle = bundle(tmp_path)
    assert new_bundle.sha256 == hashlib.sha256(new_bundle.file.read_bytes()).hexdigest()
    assert (
        new_bundle.file.name == f"validator-{new_bundle.sha256[:12]}.tar"
        and not old_bundle.exists()
    )
    old_time = new_bundle.file.stat().st_mtime_ns
    assert bundle(tmp_path) == new_bundle
    assert new_bundle.file.stat().st_mtime_ns == old_time
