"""What a validation found: cells, the vantage they were seen from, and the delivery of records.

Reporters print these and compute nothing; the JSON report is this model.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, FailFast, Field, PlainSerializer, PlainValidator

from earshot.listeners.address import Address, read_address
from earshot.listeners.listed import clipped
from earshot.listeners.model import Frozen
from earshot.listeners.problems import shown
from earshot.listeners.terms import Scope
from earshot.validation.terms import Stage, Verdict

MOST_CELLS = 50_000
"""Cells of a report: five listeners of a thousand brokers, from ten vantages."""
MOST_TEXT = 4000
MOST_NAME = 300
Text = Annotated[str, AfterValidator(lambda text: clipped(text, MOST_TEXT))]
"""A sentence; a longer one is shortened, as part of it is what a peer has sent."""
Name = Annotated[str, AfterValidator(lambda text: clipped(text, MOST_NAME))]


def _observed(value: Any) -> Address:
    if isinstance(value, Address):
        return value
    if not isinstance(value, str):
        raise ValueError(f"found {shown(value)}; allowed: host:port or [ipv6]:port")
    if len(value) > MOST_NAME:
        raise ValueError(f"found an address of {len(value):,} characters")
    try:
        return read_address(value)
    except ValueError as error:
        raise ValueError(f"found {shown(value)}; {error}") from None


Observed = Annotated[
    Address, PlainValidator(_observed), PlainSerializer(str, return_type=str, when_used="json")
]
"""An address as a broker gave it, be it one that earshot would refuse; text in JSON."""


class StageResult(Frozen):
    """One stage of one cell; a skip carries its reason in `detail`."""

    stage: Stage
    verdict: Verdict
    detail: Text = ""
    seconds: float | None = None


class Cause(Frozen):
    """Why a cell failed: what was observed, what was expected, what to do."""

    kind: Name
    """A stable word to search for: unresolvable, refused, timeout, drift, missing, …"""
    observed: Text
    expected: Text
    remedy: Text


class Cell(Frozen):
    """One (vantage, listener, broker) of the matrix."""

    vantage: Name
    listener: Name
    broker: int
    scopes: tuple[Scope, ...] = ()
    address: Observed
    """What the broker should advertise here (the contract), or does (without one)."""
    verdict: Verdict
    stages: Annotated[tuple[StageResult, ...], FailFast()] = Field(default=(), max_length=20)
    cause: Cause | None = None
    reason: Text = ""
    """Why the cell was skipped or is inconclusive."""
    latency_ms: float | None = None
    """Send to acknowledgement (acks=all) of the quickest record after the first, by the doctor."""

    @property
    def failed_stage(self) -> Stage | None:
        return next((stage.stage for stage in self.stages if stage.verdict == Verdict.FAIL), None)


class ReachedAddress(Frozen):
    """What one Spark executor (or the driver) made of one advertised address."""

    listener: Name
    broker: int
    address: Observed
    resolved: Annotated[tuple[Name, ...], FailFast()] = Field(default=(), max_length=1000)
    reached: bool
    error: Text = ""
    cluster_id: Name = ""
    """Of the cluster that answered there; empty if it was not asked (TLS, SASL) or said none."""


class Vantage(Frozen):
    """A place from which a client really connected."""

    name: Name
    kind: Literal["host", "executor", "container", "remote"] = "host"
    where: Name = ""
    """The machine's own name, as it calls itself."""
    resolvers: Annotated[tuple[Name, ...], FailFast()] = Field(default=(), max_length=1000)
    reached: Annotated[tuple[ReachedAddress, ...], FailFast()] = Field(
        default=(), max_length=MOST_CELLS
    )
    verdict: Verdict = Verdict.PASS
    reason: Text = ""


class Delivery(Frozen):
    """The fate of the records written through one listener and read back through another."""

    written_through: Name
    read_through: Name
    broker: int
    acknowledged: int
    """Records of writes that returned."""
    unknown: int = 0
    """Records of a write that failed: perhaps there, perhaps not; never lost."""
    read: int
    lost: int = 0
    duplicated: int = 0
    out_of_order: int = 0
    corrupt: int = 0
    misrouted: int = 0
    foreign: int = 0
    """Records of other runs: counted, never checked."""
    examples: Annotated[tuple[Text, ...], FailFast()] = Field(default=(), max_length=100)
    """At most 20, in the words of a report."""

    @property
    def verdict(self) -> Verdict:
        # at-least-once is what Spark's sink promises: a duplicate is reported, not failed
        bad = self.lost or self.out_of_order or self.corrupt or self.misrouted
        if bad:
            return Verdict.FAIL
        return Verdict.PASS if self.acknowledged else Verdict.INCONCLUSIVE


class Replication(Frozen):
    """Whether one broker gets the records that another one leads, as its follower."""

    leader: int
    follower: int
    listener: Name = ""
    """The listener between brokers; empty if its name is unknown."""
    verdict: Verdict
    cause: Cause | None = None
    reason: Text = ""
    """Why nothing is known."""


class Report(Frozen):
    """One run of the doctor or of the whole validation."""

    version: Literal[1] = 1
    kind: Literal["doctor", "validation"]
    run: Name
    """The run id that every record of this run carries."""
    cluster: Name
    cluster_id: Name = ""
    """Kafka's own id: the contract's, or, without a contract, what most addresses said; may be
    empty."""
    placement: Name = ""
    kafka_version: Name = ""
    started: datetime
    seconds: float
    cells: tuple[Cell, ...] = Field(max_length=MOST_CELLS)
    vantages: tuple[Vantage, ...] = Field(default=(), max_length=1000)
    delivery: tuple[Delivery, ...] = Field(default=(), max_length=MOST_CELLS)
    replication: tuple[Replication, ...] = Field(default=(), max_length=MOST_CELLS)
    """Pairs of brokers, all or a ring of them; none of a single broker, and none by the doctor."""
    incarnations: dict[Name, Name] = Field(default_factory=dict, max_length=MOST_CELLS)
    notes: tuple[Text, ...] = Field(default=(), max_length=1000)

    @property
    def verdict(self) -> Verdict:
        parts: list[Cell | Delivery | Replication | Vantage]
        parts = [*self.cells, *self.delivery, *self.replication, *self.vantages]
        nothing_seen = [] if self.cells else [Verdict.INCONCLUSIVE]
        return combine([*nothing_seen, *(part.verdict for part in parts)])

    @property
    def exit_code(self) -> int:
        """0 all well, 1 a cell failed, 3 inconclusive."""
        return {Verdict.PASS: 0, Verdict.FAIL: 1}.get(self.verdict, 3)


def combine(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a run: failed beats inconclusive, a skip is no pass, nothing is neither."""
    seen = set(verdicts)
    if Verdict.FAIL in seen:
        return Verdict.FAIL
    return Verdict.PASS if seen == {Verdict.PASS} else Verdict.INCONCLUSIVE
