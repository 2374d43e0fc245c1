"""What a release needs: a dated heading, and all that git tracks."""

from pathlib import Path

import pytest

from earshot import __version__
from earshot.errors import EarshotError
from tests.raised import raised
from tests.release import complete, dated, in_wheel, pinned
from toolchain.paths import ROOT


def test_this_version_is_dated() -> None:
    dated((ROOT / "CHANGELOG.md").read_text(), __version__)


@pytest.mark.parametrize(
    "text", ["", "## [0.1.0]\n", "## [0.1.00] - 2026-01-01\n", " ## [0.1.0] - 2026-01-01\n"]
)
def test_a_version_without_a_day_is_refused(text: str) -> None:
    assert raised(EarshotError, dated, text, "0.1.0").line == (
        "CHANGELOG.md: has no dated heading for 0.1.0; allowed: ## [0.1.0] - YYYY-MM-DD"
    )


def test_what_an_archive_lacks_is_counted_and_the_first_named() -> None:
    complete(Path("a.whl"), ["x.py", "y.py", "more"], ["x.py", "y.py"])
    error = raised(EarshotError, complete, Path("a.whl"), ["x.py"], ["z.py", "x.py", "y.py"])
    assert error.line.startswith("a.whl: lacks 2 files, y.py first")


def test_a_file_of_each_package_has_its_name_in_the_wheel() -> None:
    names = (
        "earshot/api.py",
        "components/earshot_pulumi/gate.py",
        "policies/earshot_policies/pack.py",
    )
    assert [in_wheel(name) for name in names] == [
        "earshot/api.py",
        "earshot_pulumi/gate.py",
        "earshot_policies/pack.py",
    ]


def test_constraints_are_the_lock_s_versions_without_hashes() -> None:
    lock = "# made by uv\na.b==1.0 ; python_version < '3.12' \\\n    --hash=sha256:00\nc==2 \\\n"
    assert pinned(lock) == "a.b==1.0 ; python_version < '3.12'\nc==2\n"
