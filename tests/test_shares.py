"""Who runs which tests where several processes share them."""

from __future__ import annotations

from pathlib import Path

from tests.shares import in_order

ON_DOCKER = "def test_it(docker_engine: object) -> None: ...\n"


def test_long_ones_come_first_and_docker_takes_turns(tmp_path: Path) -> None:
    (tmp_path / "tests" / "e2e").mkdir(parents=True)
    files = {
        "tests/test_pure.py": "",
        "tests/e2e/test_a.py": "",
        "tests/e2e/test_box.py": ON_DOCKER,
        "tests/e2e/test_docker.py": ON_DOCKER,
        "tests/e2e/test_vantages.py": ON_DOCKER,
        "tests/test_ssh.py": ON_DOCKER,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert (
        in_order(files, tmp_path)
        == in_order(list(files)[::-1], tmp_path)
        == [
            "tests/e2e/test_box.py",
            "tests/e2e/test_a.py",
            "tests/e2e/test_docker.py",
            "tests/e2e/test_vantages.py",
            "tests/test_ssh.py",
            "tests/test_pure.py",
        ]
    )


def test_nothing_is_left_out(tmp_path: Path) -> None:
    assert in_order([], tmp_path) == []
