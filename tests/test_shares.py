"""Who runs which tests where several processes share them."""

from __future__ import annotations

from pathlib import Path

from tests.shares import DOCKER, share_of


def test_a_file_stays_together(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("def test_it() -> None: ...\n")
    assert share_of("test_a.py::test_it", tmp_path) == "test_a.py"
    assert share_of("test_a.py::TestMore::test_it[x@y]", tmp_path) == "test_a.py"


def test_all_that_use_an_engine_are_one_share(tmp_path: Path) -> None:
    (tmp_path / "test_docker_x.py").write_text("")
    (tmp_path / "test_b.py").write_text("def test_it(docker_engine: object) -> None: ...\n")
    assert share_of("test_docker_x.py::test_it", tmp_path) == DOCKER
    assert share_of("test_b.py::test_it", tmp_path) == DOCKER
