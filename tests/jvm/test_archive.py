"""The class-data archive: bound to its sources, and used by a real JVM."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from earshot.jvm import archive


@pytest.fixture
def java(tmp_path: Path) -> Path:
    (executable := tmp_path / "java").touch()
    return executable


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    (path := tmp_path / "one.jar").touch()
    return path


@pytest.fixture(autouse=True)
def scratch_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if "e2e" not in request.keywords:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def record_into(recording: archive.ArchiveRecorder | None) -> None:
    """Writes the archive that a JVM with the options of ``recording`` would write."""
    assert recording is not None
    (option,) = (
        jvm_option for jvm_option in recording.options if "ArchiveClassesAtExit" in jvm_option
    )
    Path(option.partition("=")[2]).touch()
    assert recording.keep()


def record_archive(java: Path, *jars: Path) -> Path:
    """The folder of an archive that was just recorded."""
    recording = archive.ArchiveRecorder(java, jars)
    record_into(recording)
    return next(path.parent for path in recording.folder.parent.glob(f"*/{archive.FILE}"))


def used_archive(java: Path, *jars: Path) -> Path | None:
    """The archive that the options name."""
    for option in archive.start_options(java, jars):
        if option.startswith("-XX:SharedArchiveFile="):
            return Path(option.partition("=")[2])
    return None


def test_without_an_archive_one_tier_of_compilation_is_all(java: Path, jar: Path) -> None:
    assert not archive.is_made(java, (jar,))
    assert archive.start_options(java, (jar,)) == archive.QUICK_START


def test_what_a_jvm_recorded_is_in_the_options_of_the_next(java: Path, jar: Path) -> None:
    folder = record_archive(java, jar)
    assert archive.is_made(java, (jar,))
    assert used_archive(java, jar) == folder / archive.FILE
    assert [path.name for path in folder.parent.glob(f"{archive.RECORDING}*")] == [], (
        "nothing is left"
    )


def test_each_kind_of_work_has_an_archive_of_its_own(java: Path, jar: Path) -> None:
    record_into(archive.recording(java, (jar,)))
    assert archive.recording(java, (jar,)) is None, "it is recorded once"
    assert not archive.is_made(java, (jar,), "secured")
    assert archive.start_options(java, (jar,), "secured") == archive.QUICK_START
    record_into(archive.recording(java, (jar,), "secured"))
    assert archive.recording(java, (jar,), "secured") is None
    options = {archive.start_options(java, (jar,), kind)[0] for kind in ("", "secured")}
    assert len(options) == 2, "neither has taken the other's place"


def test_of_two_recordings_at_a_time_one_is_kept(java: Path, jar: Path) -> None:
    recordings = [archive.ArchiveRecorder(java, (jar,)) for _ in range(2)]
    for recording in recordings:
        record_into(recording)
    for recording in recordings:
        recording.discard()
    assert len(list(recordings[0].folder.parent.glob(f"*/{archive.FILE}"))) == 1


def test_a_jvm_that_left_no_archive_leaves_none_to_use(java: Path, jar: Path) -> None:
    recording = archive.ArchiveRecorder(java, (jar,))
    assert not recording.keep()
    recording.discard()
    assert used_archive(java, jar) is None
    assert not recording.folder.exists()


def test_a_recording_of_a_killed_process_goes_when_it_is_a_day_old(java: Path, jar: Path) -> None:
    old_folder, recent_folder = (archive.ArchiveRecorder(java, (jar,)).folder for _ in range(2))
    os.utime(old_folder, (1, 1))
    archive.ArchiveRecorder(java, (jar,)).discard()
    assert (old_folder.exists(), recent_folder.exists()) == (False, True)


def test_an_archive_that_is_cut_short_is_not_used_and_made_anew(java: Path, jar: Path) -> None:
    folder = record_archive(java, jar)
    with (folder / archive.FILE).open("wb") as file:
        file.write(b"what a power cut has left")
    assert used_archive(java, jar) is None, "its JVM would die"
    assert record_archive(java, jar) == folder
    assert used_archive(java, jar) is not None


@pytest.mark.parametrize(
    ("record", "removed"),
    [("{}", True), ("[]", True), ("", True), ('{"files": 1}', True), ('{"files": {}}', False)],
)
def test_an_archive_with_an_unknown_record_is_not_used(
    java: Path, jar: Path, tmp_path: Path, record: str, removed: bool
) -> None:
    folder = record_archive(java, jar)
    (folder / archive.SOURCES).write_text(record)
    assert used_archive(java, jar) is None
    (other_jar := tmp_path / "other.jar").touch()
    record_archive(java, other_jar)
    assert folder.exists() is not removed


def test_nothing_is_recorded_in_a_path_with_a_separator(
    java: Path, jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = record_archive(java, jar)
    taken_apart = tmp_path / "a:b"
    shutil.copytree(folder.parents[1], taken_apart / "earshot")
    monkeypatch.setenv("XDG_CACHE_HOME", str(taken_apart))
    assert used_archive(java, jar) is None
    with pytest.raises(OSError, match="splits this path"):
        archive.ArchiveRecorder(java, (jar,))


def test_stale_archive_may_be_gone(java: Path, jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stale = record_archive(java, jar)
    os.utime(jar, (1, 1))
    remove = shutil.rmtree

    def after_another(path: Path, **options: Any) -> None:
        remove(path, ignore_errors=True)
        remove(path, **options)

    monkeypatch.setattr(shutil, "rmtree", after_another)
    assert record_archive(java, jar) != stale
    assert not stale.exists()


def test_changed_jar_makes_it_stale(java: Path, jar: Path) -> None:
    old_folder = record_archive(java, jar)
    os.utime(jar, (1, 1))
    assert used_archive(java, jar) is None
    assert record_archive(java, jar) != old_folder
    assert not old_folder.exists(), "a stale archive takes 160 MB"


def test_another_java_has_an_archive_of_its_own(java: Path, jar: Path) -> None:
    record_archive(java, jar)
    os.utime(java, (1, 1))
    assert used_archive(java, jar) is None


def test_nothing_is_recorded_without_a_folder(
    java: Path, jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert archive.recording(java, (jar,)) is None


def test_archive_of_other_jars_is_kept(java: Path, jar: Path, tmp_path: Path) -> None:
    (other_jar := tmp_path / "two.jar").touch()
    record_archive(java, jar)
    record_archive(java, other_jar)
    assert used_archive(java, jar) is not None and used_archive(java, other_jar) is not None
