"""Who runs which tests where several processes share them."""

from pathlib import Path

from tests.shares import in_order

ON_DOCKER = "def test_it(docker_engine: object) -> None: ...\n"


def test_long_ones_come_first_and_docker_takes_turns(tmp_path: Path) -> None:
    (tmp_path / "tests" / "e2e").mkdir(parents=True)
    files = {
        "tests/test_pure.py": ("", 1.0),
        "tests/e2e/test_a.py": ("", 20.0),
        "tests/e2e/test_b.py": ("", 30.0),
        "tests/e2e/test_box.py": (ON_DOCKER, 9.0),
        "tests/e2e/test_docker.py": (ON_DOCKER, 40.0),
        "tests/e2e/test_vantages.py": (ON_DOCKER, 9.0),
        "tests/test_ssh.py": (ON_DOCKER, 3.0),
    }
    for name, (text, _) in files.items():
        (tmp_path / name).write_text(text)
    lengths = {name: length for name, (_, length) in files.items()}
    assert (
        in_order(lengths, tmp_path)
        == in_order(dict(reversed(lengths.items())), tmp_path)
        == [
            "tests/e2e/test_docker.py",
            "tests/e2e/test_b.py",
            "tests/e2e/test_box.py",
            "tests/e2e/test_a.py",
            "tests/e2e/test_vantages.py",
            "tests/test_ssh.py",
            "tests/test_pure.py",
        ]
    )


def test_nothing_is_left_out(tmp_path: Path) -> None:
    assert in_order({}, tmp_path) == []
