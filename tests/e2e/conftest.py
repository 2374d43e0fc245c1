"""The common fixtures of tests with real parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # slow to import, where no test uses one
    from tests.doubles.aws.server import MotoServer
    from tests.e2e.box.cloud_box import CloudBox
    from tests.e2e.docker_engine import Engine


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MotoServer]:
    """A moto server in the place of AWS, for the tests of one file."""
    from tests.doubles.aws.server import moto_server

    with moto_server(tmp_path_factory.mktemp("moto")) as moto:
        yield moto


@pytest.fixture(scope="module")
def box(
    docker_engine: Engine, client_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CloudBox]:
    """An empty cloud in a box. The engine must have no part of it at the end."""
    from tests.e2e.box.cloud_box import cloud_box

    with cloud_box(docker_engine, tmp_path_factory.mktemp("box")) as new_box:
        yield new_box
    for kind in (("ps", "--all"), ("network", "ls")):
        assert docker_engine.run(*kind, "--quiet", "--filter", f"name={new_box.mark}") == ""
