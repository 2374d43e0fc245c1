"""A lack of the machine skips a test, but fails it in CI; no test avoids that."""

import re
from typing import Any

import pytest

from tests import skips
from toolchain.paths import ROOT

RAW = re.compile(
    r"pytest\.(?:skip\(|mark\.skip|importorskip|xfail|mark\.xfail|exit\()|from pytest import"
    r"|unittest\.(?:case|skip)|SkipTest"
)

OURS = ("skips.py", "test_skips.py")


@pytest.mark.parametrize(
    ("ci", "outcome"),
    [
        *((ci, pytest.fail.Exception) for ci in ("true", "1", "True")),
        *((ci, pytest.skip.Exception) for ci in (None, "", "false")),
    ],
)
def test_a_lack_skips_a_test_and_fails_it_in_ci(
    ci: str | None, outcome: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    if ci is not None:
        monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="no kcat"):
        skips.lacking("no kcat")


def test_no_test_is_skipped_in_another_way() -> None:
    files = [path for path in (ROOT / "tests").rglob("*.py") if path.name not in OURS]
    assert [str(path) for path in files if RAW.search(path.read_text())] == []
