"""What a machine lacks skips a test, but fails it in CI; no test goes round that."""

import re

import pytest

from tests import skips
from toolchain.paths import ROOT

RAW = re.compile(
    r"pytest\.(?:skip\(|mark\.skip|importorskip|xfail|mark\.xfail|exit\()|from pytest import"
    r"|unittest\.(?:case|skip)|SkipTest"
)

OURS = ("skips.py", "test_skips.py")


@pytest.mark.parametrize("ci", ["true", "1", "True"])
def test_what_is_lacking_fails_in_ci(ci: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(pytest.fail.Exception, match="no kcat"):
        skips.lacking("no kcat")


@pytest.mark.parametrize("ci", [None, "", "false"])
def test_what_is_lacking_skips_elsewhere(ci: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if ci is None:
        monkeypatch.delenv("CI", raising=False)
    else:
        monkeypatch.setenv("CI", ci)
    with pytest.raises(pytest.skip.Exception, match="no kcat"):
        skips.lacking("no kcat")


def test_no_test_is_skipped_in_another_way() -> None:
    files = [path for path in (ROOT / "tests").rglob("*.py") if path.name not in OURS]
    assert [str(path) for path in files if RAW.search(path.read_text())] == []
