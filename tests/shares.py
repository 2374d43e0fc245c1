"""Distributes test files over several processes (`pytest -n`); a file stays in one process."""

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
"""Every test file that uses the engine contains one of these words."""


def in_order(lengths: Mapping[str, float], root: Path = ROOT) -> list[str]:
    """Files in the order in which they start, from the seconds of each file.

    Files with real parts come first, the longest of each kind before shorter ones. Files that use
    the Docker engine alternate with the others, so that one process builds images while the other
    runs tests without them.
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
    """Gives each idle process the next file, the longest first."""

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
