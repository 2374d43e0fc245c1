"""Which cluster's data a stack has, as its checkout remembers."""

from pathlib import Path

import pytest
from earshot_pulumi.docker.identity import FILE, own_id, remember, remembered

from earshot.cluster_id import of_stack_name


def test_an_id_is_remembered_where_nothing_is_yet(tmp_path: Path) -> None:
    state = tmp_path / "stacks" / "s"
    for id in ("first", "second"):
        remember(state, id)
        assert remembered(state) == own_id("s", state) == id
        assert (state / FILE).read_text() == f"{id}\n"


@pytest.mark.parametrize("content", [None, b"", b" \n", b"\xff\xfe"])
def test_what_tells_no_id_is_none(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / FILE).write_bytes(content)
    assert remembered(tmp_path) is None
    assert own_id("s", tmp_path) is None


@pytest.mark.parametrize("left", ["contract.json", "report.json"])
def test_an_earlier_release_s_id_follows_from_the_stack_s_name(tmp_path: Path, left: str) -> None:
    (tmp_path / left).touch()
    assert own_id("s", tmp_path) == of_stack_name("s")
    remember(tmp_path, "kept")
    assert own_id("s", tmp_path) == "kept"
