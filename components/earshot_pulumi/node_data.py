"""Reads replicas and the feature level from nodes' data directories (Kafka's `log.dirs`).

Only the level `metadata.version` ties data to a release of Kafka. A KRaft cluster on a newer Kafka
can go back to the older one until a user raises the level (`kafka-features upgrade`); earshot never
does. Formatting writes the level into `bootstrap.checkpoint`; later changes are in the metadata
log.
"""

import contextlib
import mmap
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from earshot.validation.cluster_state import METADATA_TOPIC

# FeatureLevelRecord in the log: version 1, key 12, version 0; name; 16-bit level; no tags
_RECORD = re.compile(rb"\x01\x0c\x00\x11metadata\.version(..)\x00", re.DOTALL)
_FILES = ("bootstrap.checkpoint", f"{METADATA_TOPIC}-0/*.checkpoint", f"{METADATA_TOPIC}-0/*.log")


def replicas(names: Iterable[str]) -> list[str]:
    """The ``names`` of folders that are `topic-partition`, without the metadata log, sorted."""
    parts = ((name, *name.rpartition("-")) for name in names)
    return sorted(
        name
        for name, topic, _, number in parts
        if topic and number.isdigit() and topic != METADATA_TOPIC
    )


def is_formatted(log_dirs: Iterable[Path]) -> bool:
    """True if one of the data directories is formatted; one without access counts as empty."""
    return any(os.access(folder / "meta.properties", os.F_OK) for folder in log_dirs)


def feature_level(log_dirs: Iterable[Path]) -> int | None:
    """The highest feature level in the data directories, or None.

    If the level was lowered later, the result is too high.
    """
    files = (path for folder in log_dirs for pattern in _FILES for path in folder.glob(pattern))
    return max((level for path in files for level in _levels(path)), default=None)


def _levels(path: Path) -> Iterator[int]:
    # an empty file cannot be mapped, and a file may vanish meanwhile
    with (
        contextlib.suppress(OSError, ValueError),
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        for match in _RECORD.finditer(content):
            yield int.from_bytes(match[1], "big", signed=True)
