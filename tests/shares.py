"""Who runs what where several processes share the tests (`pytest -n 2`): a file stays together, and
all files that use Docker are one share, for they have one engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from toolchain.paths import ROOT

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

DOCKER = "docker"


def share_of(nodeid: str, root: Path = ROOT) -> str:
    """The share that a test belongs to: its file, or that of all which use an engine."""
    file = nodeid.partition("::")[0]
    path = root / file
    on_docker = path.name.startswith("test_docker_") or "docker_engine" in path.read_text()
    return DOCKER if on_docker else file


class Shares(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """The longest share first; the others go to whoever is free."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        self._known: dict[str, str] = {}

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file not in self._known:
            self._known[file] = share_of(nodeid)
        return self._known[file]

    def _assign_work_unit(self, node: WorkerController) -> None:
        if DOCKER in self.workqueue:
            self.workqueue.move_to_end(DOCKER, last=False)
        super()._assign_work_unit(node)
