"""The report of a run as far as it has come: another thread may ask for it at any time."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from earshot.doctor.diagnosis import CellTarget, undecided
from earshot.names.configured import nameservers
from earshot.validation.contract import Contract
from earshot.validation.result import Cell, Report, Vantage
from earshot.validation.terms import Verdict
from earshot.validation.topic import run_id
from earshot.validation.wire import MOST_BROKERS

OWN_THREADS: Final = 400
"""Threads that do not depend on the cluster: lookups, workers, Spark's side of this process."""
CLIENTS_AT_MOST: Final = 40
"""Clients of librdkafka that exist at the same time."""


@dataclass
class Draft:
    """What is known so far; `examine` fills it."""

    vantage: str = "host"
    contract: Contract | None = None
    run: str = field(default_factory=run_id)
    cluster_id: str = ""
    """What most addresses said, where no contract names it."""
    targets: Sequence[CellTarget] = ()
    cells: dict[int, Cell] = field(default_factory=dict)
    """Decided, by the place of their target."""
    notes: list[str] = field(default_factory=list)
    broken: str = ""
    """Why this vantage can decide nothing."""
    brokers: int = MOST_BROKERS
    """The most brokers that an answer, or the contract, has listed; until one has, all that one
    may list."""
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    _begun: float = field(default_factory=time.monotonic)

    def report(self, unfinished: str = "") -> Report:
        """The report; targets without a cell are inconclusive for the reason ``unfinished``."""
        unknown = Verdict.INCONCLUSIVE
        cells, contract = dict(self.cells), self.contract
        place = Vantage(name=self.vantage, where=socket.gethostname(), resolvers=nameservers())
        if reason := self.broken or unfinished:
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
        """Since it was begun."""
        return time.monotonic() - self._begun

    @property
    def most_threads(self) -> int:
        """Threads that this process may have: librdkafka starts one per broker and client."""
        listeners = len({target.listener for target in self.targets}) or 1
        return OWN_THREADS + min(CLIENTS_AT_MOST, 4 * listeners + 8) * (self.brokers + 3)
