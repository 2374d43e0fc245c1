"""Class-data archives: the classes that a JVM has loaded, parsed and verified for those after it.

Most of the time of a small Spark job, and of a broker's start, goes into loading classes. A first
JVM records those that it has loaded (AppCDS, ``-XX:ArchiveClassesAtExit``). An archive is tied to
one Java, one class path and one kind of work, where kinds load other classes; the JVM itself
refuses one that does not fit and goes on without. One that is cut short it does not notice, and
dies: its size is kept beside it.
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
from typing import Any

from earshot import cache

FILE = "classes.jsa"
SOURCES = "sources.json"
# One tier of compilation: a short job, or a test's broker, is over before the second would pay.
# Kafka puts a key in PEM into a key store in memory, which each client of a listener with TLS makes
# again; Java derives a key for it by 10,000 rounds, which protect nothing that is never written.
QUICK_START = ("-XX:TieredStopAtLevel=1", "-Dkeystore.pkcs12.keyPbeIterationCount=1")
# No word about an archive that does not fit: it is an optimization, not a part.
QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
# A JVM takes apart at it what -XX:SharedArchiveFile names, and does not start.
SEPARATOR = ":"
RECORDING = "recording-"
ABANDONED_SECONDS = 24 * 3600
"""A recording of that age is of a process that was killed."""


def start_options(java: Path, class_path: Sequence[Path], work: str = "") -> tuple[str, ...]:
    """Options that let the ``java`` command start soon, the archive where it is there.

    ``class_path`` is of jars and of folders of jars, ``work`` any name.
    """
    if not is_made(java, class_path, work):
        return QUICK_START
    archive = f"-XX:SharedArchiveFile={_folder(java, class_path, work) / FILE}"
    return (archive, *QUICK_START, "-Xshare:auto", *QUIET)


def is_made(java: Path, class_path: Sequence[Path], work: str = "") -> bool:
    """Whether the archive for all three is there, and a JVM can use it."""
    try:
        return _is_complete(_folder(java, class_path, work))
    except OSError:  # no such jar: the start of the JVM reports it
        return False


def recording(java: Path, class_path: Sequence[Path], work: str = "") -> Recording | None:
    """What a first JVM records, None where that was done before or there is no place for it."""
    try:
        return None if is_made(java, class_path, work) else Recording(java, class_path, work)
    except OSError:
        return None


class Recording:
    """An archive on its way: a JVM with `options` writes it into `folder` when it exits."""

    def __init__(self, java: Path, class_path: Sequence[Path], work: str = "") -> None:
        """Raises OSError where the per-user cache cannot be written, or no JVM can read there."""
        self._sources = _sources(java, class_path, work)
        self._target = _folder(java, class_path, work)
        home = self._target.parent
        home.mkdir(parents=True, exist_ok=True)
        for old_file in home.glob(f"{RECORDING}*"):
            with contextlib.suppress(FileNotFoundError):  # another process may keep it just now
                if time.time() - old_file.stat().st_mtime > ABANDONED_SECONDS:
                    shutil.rmtree(old_file, ignore_errors=True)
        self.folder = Path(tempfile.mkdtemp(prefix=RECORDING, dir=home))

    @property
    def options(self) -> tuple[str, ...]:
        """For the JVM: what `start_options` are for one that finds an archive."""
        return (f"-XX:ArchiveClassesAtExit={self.folder / FILE}", *QUICK_START, *QUIET)

    def keep(self) -> bool:
        """Whether the JVM, which has exited well, has left an archive: later ones start with it.

        Archives of what is gone or has changed are removed. Raises OSError where it cannot be kept.
        """
        if not (self.folder / FILE).is_file():
            return False
        with (self.folder / FILE).open("rb") as file:
            os.fsync(file.fileno())  # or a power cut may leave its size alone
            size = os.fstat(file.fileno()).st_size
        # by its size an archive is known to be complete
        record = json.dumps(self._sources | {"size": size}, indent=2)
        cache.write(self.folder / SOURCES, f"{record}\n")
        cache.ensure(self._target, lambda fresh: _move(self.folder, fresh), _is_complete)
        for other_sources in self._target.parent.glob(f"*/{SOURCES}"):
            if not _is_current(other_sources):
                shutil.rmtree(other_sources.parent, ignore_errors=True)
        self.discard()
        return True

    def discard(self) -> None:
        """Remove what was not kept."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _move(source: Path, target: Path) -> None:
    for name in (FILE, SOURCES):
        (source / name).rename(target / name)


def _folder(java: Path, class_path: Sequence[Path], work: str) -> Path:
    """Raises OSError where there is no such file, and where no JVM can read an archive."""
    text = json.dumps(_sources(java, class_path, work), sort_keys=True)
    folder = cache.root() / "archives" / hashlib.sha256(text.encode()).hexdigest()[:16]
    if SEPARATOR in str(folder):
        raise OSError(errno.EINVAL, "a JVM takes this path apart", str(folder))
    return folder


def _sources(java: Path, class_path: Sequence[Path], work: str) -> dict[str, Any]:
    """What an archive depends on; the JVM compares the jars' times and sizes by itself as well."""
    files = {str(path): path.stat().st_mtime_ns for path in (java, *class_path)}
    return {"files": files} | ({"work": work} if work else {})


def _is_current(record: Path) -> bool:
    """Whether all that an archive was made from is still as it was."""
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
