"""``requires``: a missing tool skips a test, but fails it in CI."""

from typing import Any, cast

import pytest

from tests.conftest import pytest_runtest_setup
from toolchain import system_packages


class ItemDouble:
    """A test that has the mark ``requires("kcat")``."""

    def iter_markers(self, name: str) -> list[pytest.Mark]:
        assert name == "requires"
        return [pytest.mark.requires("kcat").mark]


def set_up() -> None:
    pytest_runtest_setup(cast(pytest.Item, ItemDouble()))


@pytest.mark.parametrize(
    ("is_installed", "ci", "outcome"),
    [
        (True, "true", None),
        (False, "", pytest.skip.Exception),
        (False, "true", pytest.fail.Exception),
    ],
)
def test_a_missing_tool_skips_with_the_command_and_fails_in_ci(
    is_installed: bool, ci: str, outcome: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system_packages.Tool, "is_installed", lambda tool: is_installed)
    monkeypatch.setenv("CI", ci)
    if outcome is None:
        set_up()
    else:
        with pytest.raises(outcome, match="apt-get install --yes kcat"):
            set_up()
