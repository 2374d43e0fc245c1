"""Reading `metadata.version` from bytes as Kafka writes them."""

from pathlib import Path

import pytest
from earshot_pulumi.node_data import feature_level, is_formatted, replicas


def record(level: int, name: bytes = b"metadata.version") -> bytes:
    """A FeatureLevelRecord in its frame."""
    return b"\x01\x0c\x00" + bytes([len(name) + 1]) + name + level.to_bytes(2, "big") + b"\x00"


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    (tmp_path / "__cluster_metadata-0").mkdir()
    return tmp_path


FORMATTED, LOG = "bootstrap.checkpoint", "__cluster_metadata-0/00000000000000000000.log"
SNAPSHOT = "__cluster_metadata-0/00000000000000000123-0000000001.checkpoint"
RAISED = record(27) + b"more" + record(29)


@pytest.mark.parametrize(("files", "level"), [
    ({LOG: b"", FORMATTED: record(1, b"group.version") + b"metadata.version"}, None),
    ({FORMATTED: b"head" + record(27) + record(1, b"share.version")}, 27),
    # one that was raised later counts
    ({FORMATTED: record(25), LOG: RAISED}, 29),
    ({FORMATTED: record(25), SNAPSHOT: RAISED}, 29),
    ({FORMATTED: record(10)}, 10),  # no end of a line
    # a level that was removed is stored as a negative number
    ({FORMATTED: record(0).replace(b"\x00\x00\x00", b"\xff\xff\x00")}, -1),
])  # fmt: skip
def test_the_level_in_the_data(log_dir: Path, files: dict[str, bytes], level: int | None) -> None:
    for name, content in files.items():
        (log_dir / name).write_bytes(content)
    assert feature_level([log_dir / "gone", log_dir]) == level


def test_formatted_data_has_its_properties(log_dir: Path) -> None:
    assert not is_formatted([log_dir])
    (log_dir / "meta.properties").touch()
    assert is_formatted([log_dir / "gone", log_dir])


def test_which_folders_are_replicas() -> None:
    listing = (
        "a-0 my-topic-12 __consumer_offsets-3 __cluster_metadata-0 meta.properties x lost+found"
    )
    assert replicas(listing.split()) == ["__consumer_offsets-3", "a-0", "my-topic-12"]
