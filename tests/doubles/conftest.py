"""One moto for the tests of the AWS double, and a world for each of them."""

from collections.abc import Callable, Iterator

import pytest

from tests.doubles.aws_world import World, aws_worlds


@pytest.fixture(scope="module")
def worlds() -> Iterator[Callable[[], World]]:
    with aws_worlds() as worlds:
        yield worlds


@pytest.fixture
def world(worlds: Callable[[], World]) -> World:
    return worlds()
