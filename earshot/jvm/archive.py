"""Class-data archives (AppCDS), which shorten the start of later JVMs.

Small Spark jobs and starting brokers spend most of their time on loading classes. A first JVM
records its classes (``-XX:ArchiveClassesAtExit``). An archive belongs to one Java, one class path
and one kind of work. A JVM ignores an archive that does not fit, but crashes on a truncated one.
Therefore the archive's size is recorded, too.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from earshot.files import cache

FILE = "classes.jsa"
SOURCES = "sources.json"
# only the first tier of compilation: short jobs and test brokers end before the second one pays
# one round of key derivation: each TLS client puts Kafka's PEM key into a key store in memory, and
# the default of 10,000 rounds would protect a file that is never written
QUICK_START = ("-XX:TieredStopAtLevel=1", "-Dkeystore.pkcs12.keyPbeIterationCount=1")
# an archive that does not fit is only a lost optimization
QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
# a JVM splits -XX:SharedArchiveFile at this character, and does not start
SEPARATOR = ":"
RECORDING = "recording-"
ABANDONED_SECONDS = 24 * 3600
"""Age in seconds at which a recording is from a killed process."""


def start_options(java: Path, class_path: Sequence[Path], work: str = "") -> tuple[str, ...]:
    """JVM options for a fast start, with the archive if there is one.

    ``class_path`` has jars and folders of jars. ``work`` is any name for the kind of work.
    """
    if not is_made(java, class_path, work):
        return QUICK_START
    archive = f"-XX:SharedArchiveFile={_folder(java, class_path, work) / FILE}"
    return (archive, *QUICK_START, "-Xshare:auto", *QUIET)


def is_made(java: Path, class_path: Sequence[Path], work: str = "") -> bool:
    """True if there is a complete archive for these arguments."""
    try:
        return _is_complete(_folder(java, class_path, work))
    except OSError:  # a missing jar, which the JVM reports
        return False


def recording(java: Path, class_path: Sequence[Path], work: str = "") -> ArchiveRecorder | None:
    """A new recording; None if there is an archive, or the cache cannot be written."""
    try:
        return None if is_made(java, class_path, work) else ArchiveRecorder(java, class_path, work)
    except OSError:
        return None


class ArchiveRecorder:
    """An archive that a JVM with `options` writes to `folder` when it exits."""

    def __init__(self, java: Path, class_path: Sequence[Path], work: str = "") -> None:
        """Raises OSError if the per-user cache cannot be written, or a JVM cannot read its path."""
        self._sources = _sources(java, class_path, work)
        self._target = _folder(java, class_path, work)
        home = self._target.parent
        home.mkdir(parents=True, exist_ok=True)
        for old_folder in home.glob(f"{RECORDING}*"):
            with contextlib.suppress(FileNotFoundError):  # another process may have moved it
                if time.time() - old_folder.stat().st_mtime > ABANDONED_SECONDS:
                    shutil.rmtree(old_folder, ignore_errors=True)
        self.folder = Path(tempfile.mkdtemp(prefix=RECORDING, dir=home))

    @property
    def options(self) -> tuple[str, ...]:
        """The options of the JVM that records, instead of `start_options`."""
        return (f"-XX:ArchiveClassesAtExit={self.folder / FILE}", *QUICK_START, *QUIET)

    def keep(self) -> bool:
        """Stores the archive of the ended JVM; False if it has written none.

        Removes archives of changed or removed files. Raises OSError if the archive cannot be
        stored.
        """
        if not (self.folder / FILE).is_file():
            return False
        with (self.folder / FILE).open("rb") as file:
            os.fsync(file.fileno())  # or a power cut may leave the size without the content
            size = os.fstat(file.fileno()).st_size
        record = json.dumps(self._sources | {"size": size}, indent=2)
        cache.write(self.folder / SOURCES, f"{record}\n")
        cache.ensure(self._target, lambda fresh: _move(self.folder, fresh), _is_complete)
        for other_sources in self._target.parent.glob(f"*/{SOURCES}"):
            if not _is_current(other_sources):
                shutil.rmtree(other_sources.parent, ignore_errors=True)
        self.discard()
        return True

    def discard(self) -> None:
        """Removes the recording."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _move(source: Path, target: Path) -> None:
    for name in (FILE, SOURCES):
        (source / name).rename(target / name)


def _folder(java: Path, class_path: Sequence[Path], work: str) -> Path:
    """The archive's folder. Raises OSError if a file is missing, or a JVM cannot read the path."""
    text = json.dumps(_sources(java, class_path, work), sort_keys=True)
    folder = cache.root() / "archives" / hashlib.sha256(text.encode()).hexdigest()[:16]
    if SEPARATOR in str(folder):
        raise OSError(errno.EINVAL, "a JVM splits this path", str(folder))
    return folder


def _sources(java: Path, class_path: Sequence[Path], work: str) -> dict[str, object]:
    """The files that an archive depends on, with their times, and the kind of work."""
    files = {str(path): path.stat().st_mtime_ns for path in (java, *class_path)}
    return {"files": files} | ({"work": work} if work else {})


def _is_current(record: Path) -> bool:
    """True if all files of an archive are unchanged."""
    try:
        files = json.loads(record.read_text())["files"]
        return all(Path(path).stat().st_mtime_ns == time for path, time in files.items())
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False


def _is_complete(folder: Path) -> bool:
    try:
        size = json.loads((folder / SOURCES).read_text())["size"]
        return bool((folder / FILE).stat().st_size == size)
    except (OSError, ValueError, LookupError, TypeError):
        return False
