"""What nodes' data directories (Kafka's `log.dirs`) hold: replicas, and the feature level.

Only the level `metadata.version` ties data to a release of Kafka. A KRaft cluster on a newer Kafka
can go back to the older one until a user raises the level (`kafka-features upgrade`); earshot never
does. Formatting writes the level beside the metadata log; later changes of it are in the log.
"""

import contextlib
import mmap
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from earshot.validation.cluster_state import METADATA_TOPIC

# FeatureLevelRecord as the log frames it: version 1, key 12, version 0; name; 16-bit level; no tags
_RECORD = re.compile(rb"\x01\x0c\x00\x11metadata\.version(..)\x00", re.DOTALL)
_FILES = ("bootstrap.checkpoint", f"{METADATA_TOPIC}-0/*.checkpoint", f"{METADATA_TOPIC}-0/*.log")


def replicas(names: Iterable[str]) -> list[str]:
    """The folders of a data directory that are `topic-partition`, without the metadata log."""
    parted = ((name, *name.rpartition("-")) for name in names)
    return sorted(
        name
        for name, topic, _, number in parted
        if topic and number.isdigit() and topic != METADATA_TOPIC
    )


def is_formatted(log_dirs: Iterable[Path]) -> bool:
    """Whether any node's data directory is formatted; one that may not be searched is none."""
    return any(os.access(folder / "meta.properties", os.F_OK) for folder in log_dirs)


def feature_level(log_dirs: Iterable[Path]) -> int | None:
    """The highest level found in any node's data, or None.

    For a level that was lowered later, the result is too high.
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
