"""Many nodes and names in one sentence."""

from collections.abc import Iterable

import pytest

from earshot.listeners.listed import briefly, numbered, several


@pytest.mark.parametrize(
    ("items", "text"),
    [
        (["a"], "container a"),
        (["a", "b"], "containers a, b"),
        (["a", "b", "c"], "containers a, b, c"),
        (["a", "b", "c", "d"], "containers a, b, c and 1 more"),
    ],
)
def test_so_many_are_named(items: list[str], text: str) -> None:
    assert several("container", items) == text


def test_few_are_all_named_and_many_are_not() -> None:
    assert briefly(["a", "b", "c", "d"]) == "a, b, c, d"
    assert briefly(["a"] * 4000) == "a, a, a and 3997 more"


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([7], "broker 7"),
        ([2, 1], "brokers 1, 2"),
        ([1, 2, 3], "brokers 1 to 3"),
        ([3, 3], "broker 3"),
        ([0, 1, 2, 4, 5], "brokers 0 to 2, 4, 5"),
        (range(1, 12, 2), "brokers 1, 3, 5, 7, 9, 11"),
    ],
)
def test_runs_of_at_least_three_ids_are_one(ids: Iterable[int], text: str) -> None:
    assert numbered("broker", ids) == text
