"""Inputs of `Listeners` that no value can mend later."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest
from earshot_pulumi.given.listeners import _check_words


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vantage": "moon"}, "vantage: found moon; allowed: machine, network, vpc, elsewhere"),
        ({"declared": {"x": "y"}}, "declared: found scope x; allowed: controller, internal"),
    ],
)
def test_each_problem_names_the_component_and_its_input(
    changes: dict[str, Any], message: str
) -> None:
    args: Any = {"nodes": {}, "listeners": [], **changes}
    with pytest.raises(pulumi.RunError) as caught:
        _check_words("kafka", args)
    assert str(caught.value).startswith(f"kafka: {message}")
