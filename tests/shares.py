"""Who runs what where several processes share the tests (`pytest -n`): a file stays together."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.durations import REAL, read_table, seconds
from toolchain.paths import ROOT

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

ON_DOCKER = ("docker_engine", "tests.e2e.box")
"""A word of these is in every file of tests that use the engine."""


def in_order(lengths: Mapping[str, float], root: Path = ROOT) -> list[str]:
    """The files, of which ``lengths`` are known, in the order in which to begin them.

    Those with real parts come first, and of each kind the longest; those on the Docker engine take
    turns with the others, so that one process makes its images while the other has something else
    to do.
    """
    kinds: dict[str, list[str]] = {"docker": [], "real": [], "pure": []}
    for file in sorted(lengths, key=lambda file: (-lengths[file], file)):
        text = (root / file).read_text()
        if any(word in text for word in ON_DOCKER):
            kinds["docker"].append(file)
        else:
            kinds["real" if file.startswith(REAL) else "pure"].append(file)
    turns = chain.from_iterable(zip_longest(kinds["docker"], kinds["real"]))
    return [file for file in turns if file is not None] + kinds["pure"]


class Shares(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """The shares by file, the long ones first; each goes to whoever is free."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        self._sorted = False

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        if not self._sorted:
            self._sorted = True
            table = read_table()
            queued = {
                file: seconds(file, (nodeid.partition("::")[2] for nodeid in tests), table)
                for file, tests in self.workqueue.items()
            }
            for file in in_order(queued):
                self.workqueue.move_to_end(file)
        super()._assign_work_unit(node)
