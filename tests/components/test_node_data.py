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


def test_nothing_tells_of_a_level(log_dir: Path) -> None:
    (log_dir / "__cluster_metadata-0" / "00000000000000000000.log").touch()
    (log_dir / "bootstrap.checkpoint").write_bytes(
        record(1, b"group.version") + b"metadata.version"
    )
    assert feature_level([log_dir, log_dir / "gone"]) is None


def test_the_level_of_formatting_is_read(log_dir: Path) -> None:
    (log_dir / "bootstrap.checkpoint").write_bytes(
        b"head" + record(27) + record(1, b"share.version")
    )
    assert feature_level([log_dir]) == 27


@pytest.mark.parametrize(
    "name", ["00000000000000000000.log", "00000000000000000123-0000000001.checkpoint"]
)
def test_a_level_that_was_raised_later_counts(log_dir: Path, name: str) -> None:
    (log_dir / "bootstrap.checkpoint").write_bytes(record(25))
    (log_dir / "__cluster_metadata-0" / name).write_bytes(record(27) + b"more" + record(29))
    assert feature_level([log_dir / "gone", log_dir]) == 29


def test_a_level_of_ten_is_no_end_of_line(log_dir: Path) -> None:
    (log_dir / "bootstrap.checkpoint").write_bytes(record(10))
    assert feature_level([log_dir]) == 10


def test_formatted_data_has_its_properties(log_dir: Path) -> None:
    assert not is_formatted([log_dir])
    (log_dir / "meta.properties").touch()
    assert is_formatted([log_dir / "gone", log_dir])


def test_which_folders_are_replicas() -> None:
    listing = (
        "a-0 my-topic-12 __consumer_offsets-3 __cluster_metadata-0 meta.properties x lost+found"
    )
    assert replicas(listing.split()) == ["__consumer_offsets-3", "a-0", "my-topic-12"]


def test_a_level_is_a_signed_number(log_dir: Path) -> None:
    """A level that was taken away is told as one below zero."""
    content = record(0).replace(b"\x00\x00\x00", b"\xff\xff\x00")
    (log_dir / "bootstrap.checkpoint").write_bytes(content)
    assert feature_level([log_dir]) == -1
