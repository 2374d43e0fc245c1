"""Goldens are compared whole, written only on request, and never in CI."""

from pathlib import Path

import pytest

from tests.goldens import VARIABLE, is_golden


@pytest.fixture(autouse=True)
def on_a_desk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv(VARIABLE, raising=False)


def test_another_text_fails(tmp_path: Path) -> None:
    path = tmp_path / "golden.txt"
    path.write_text("as it was\n")
    is_golden("as it was\n", path)
    with pytest.raises(AssertionError, match=VARIABLE):
        is_golden("as it was", path)
    assert path.read_text() == "as it was\n"


def test_a_golden_is_written_on_request_but_not_in_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "of" / "golden.txt"
    monkeypatch.setenv(VARIABLE, "1")
    is_golden("new", path)
    assert path.read_text() == "new"
    monkeypatch.setenv("CI", "true")
    for text in ("new", "newer"):
        with pytest.raises(pytest.fail.Exception, match=VARIABLE):
            is_golden(text, path)
    assert path.read_text() == "new"
