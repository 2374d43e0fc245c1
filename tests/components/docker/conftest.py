"""Fixtures of this folder."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi import driver

from tests.components.docker.container_engine import ContainerEngine
from tests.components.secured_inputs import cluster_folder

Connect = Callable[[Any], None]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cluster of stack `s`, in a project that is the working directory."""
    return cluster_folder(tmp_path, monkeypatch)


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    """Sets the client that every Docker host's engine has."""

    def set_client(client: Any) -> None:
        name = "earshot_pulumi.docker.container_address.connect"
        monkeypatch.setattr(name, lambda _host: nullcontext(client))

    return set_client


@pytest.fixture
def engine(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> ContainerEngine:
    """The one engine of every Docker host, with the containers of three brokers."""
    engine = ContainerEngine(1, 2, 3)
    connect(engine)
    monkeypatch.setattr(driver, "POLL", 0)
    return engine
