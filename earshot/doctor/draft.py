"""The partial report of a run, which another thread may read at any time."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from earshot.doctor.diagnosis import undecided
from earshot.doctor.observation import CellTarget
from earshot.names.configured import nameservers
from earshot.validation.contract import Contract
from earshot.validation.result import Cell, Report, Vantage
from earshot.validation.terms import Verdict
from earshot.validation.topic import run_id
from earshot.validation.wire import MAX_BROKERS

OWN_THREADS: Final = 400
"""Threads that do not depend on the cluster: lookups, workers, the Python side of Spark."""
MAX_CLIENTS: Final = 40
"""The maximum number of librdkafka clients at the same time."""


@dataclass
class Draft:
    """The results so far; `examine` fills them in."""

    vantage: str = "host"
    contract: Contract | None = None
    run: str = field(default_factory=run_id)
    cluster_id: str = ""
    """The cluster id of most answers, if there is no contract."""
    targets: Sequence[CellTarget] = ()
    cells: dict[int, Cell] = field(default_factory=dict)
    """Decided cells, by the index of their target."""
    notes: list[str] = field(default_factory=list)
    vantage_failure: str = ""
    """Why this vantage is broken, so that no cell can be decided; empty if it works."""
    brokers: int = MAX_BROKERS
    """The largest number of brokers in an answer or the contract. Before the first answer: the
    maximum that one may list."""
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    _start: float = field(default_factory=time.monotonic)

    def report(self, unfinished: str = "") -> Report:
        """The report. Targets without a cell are inconclusive for the reason ``unfinished``."""
        unknown = Verdict.INCONCLUSIVE
        cells, contract = dict(self.cells), self.contract
        place = Vantage(name=self.vantage, where=socket.gethostname(), resolvers=nameservers())
        if reason := self.vantage_failure or unfinished:
            place = place.model_copy(update={"verdict": unknown, "reason": reason})
        return Report(
            kind="doctor",
            run=self.run,
            cluster=contract.cluster if contract else self.cluster_id or "unknown",
            cluster_id=(contract.cluster_id if contract else self.cluster_id) or "",
            placement=contract.placement if contract else "",
            kafka_version=contract.kafka_version if contract else "",
            started=self.started,
            seconds=self.seconds,
            cells=tuple(
                cells.get(index) or undecided(target, self.vantage, unfinished, unknown)
                for index, target in enumerate(self.targets)
            ),
            vantages=(place,),
            notes=tuple(self.notes),
        )

    @property
    def seconds(self) -> float:
        """Seconds since the start of the run."""
        return time.monotonic() - self._start

    @property
    def most_threads(self) -> int:
        """The maximum number of threads of this process. librdkafka starts one per broker and
        client."""
        listeners = len({target.listener for target in self.targets}) or 1
        return OWN_THREADS + min(MAX_CLIENTS, 4 * listeners + 8) * (self.brokers + 3)
