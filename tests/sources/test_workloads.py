from __future__ import annotations

import pytest

from earshot.sources.workloads import is_off


@pytest.mark.parametrize("value", [False, "false", "No", "off", "n"])
def test_a_boolean_is_off_in_every_spelling_of_yaml(value: object) -> None:
    assert is_off(value)


@pytest.mark.parametrize("value", [True, None, "", "yes", 0])
def test_what_is_not_there_or_is_true_is_not_off(value: object) -> None:
    assert not is_off(value)
