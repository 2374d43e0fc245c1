"""``requires``: a missing tool skips a test, but fails it in CI."""

from typing import cast

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


@pytest.fixture
def present(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_packages.Tool, "is_there", lambda tool: request.param)


@pytest.mark.parametrize("present", [True], indirect=True)
def test_tool_that_is_there(present: None) -> None:
    set_up()


@pytest.mark.parametrize("present", [False], indirect=True)
def test_missing_tool_skips_with_the_command(
    present: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt-get install --yes kcat"):
        set_up()


@pytest.mark.parametrize("present", [False], indirect=True)
def test_missing_tool_fails_in_ci(present: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="kcat"):
        set_up()
