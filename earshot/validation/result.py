"""The results of a validation: cells, vantages, and the delivery of records.

The JSON report is this model, and the other formats print it.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, FailFast, Field, PlainSerializer, PlainValidator

from earshot.listeners.address import Address, read_address
from earshot.listeners.listed import clipped
from earshot.listeners.model import Frozen
from earshot.listeners.problems import shown
from earshot.listeners.terms import Scope
from earshot.validation.terms import Stage, Verdict

MAX_CELLS = 50_000
"""The maximum number of cells: five listeners of a thousand brokers, from ten vantages."""
MAX_TEXT = 4000
MAX_NAME = 300
Text = Annotated[str, AfterValidator(lambda text: clipped(text, MAX_TEXT))]
"""A sentence, shortened if it is long: it may contain text from a peer."""
Name = Annotated[str, AfterValidator(lambda text: clipped(text, MAX_NAME))]
Number = Annotated[float, Field(allow_inf_nan=False)]
"""A number that JSON has: neither infinite nor NaN."""


def _check_moment(value: datetime) -> datetime:
    try:
        if value.tzinfo is not None:
            value.astimezone(UTC)
    except OverflowError:
        observed = f"found {value.isoformat()}"
        raise ValueError(f"{observed}; allowed: a time in the years 1 to 9999 of UTC") from None
    return value


def _read_observed(value: object) -> Address:
    if isinstance(value, Address):
        return value
    if not isinstance(value, str):
        raise ValueError(f"found {shown(value)}; allowed: host:port or [ipv6]:port")
    if len(value) > MAX_NAME:
        raise ValueError(f"found an address of {len(value):,} characters")
    try:
        return read_address(value)
    except ValueError as error:
        raise ValueError(f"found {shown(value)}; {error}") from None


Observed = Annotated[
    Address, PlainValidator(_read_observed), PlainSerializer(str, return_type=str, when_used="json")
]
"""An address in a broker's answer, even an invalid one; text in JSON."""


class StageResult(Frozen):
    """The result of one stage of a cell. For a skipped stage, `detail` is the reason."""

    stage: Stage
    verdict: Verdict
    detail: Text = ""
    seconds: Number | None = None


class Cause(Frozen):
    """Why a cell failed: the observed value, the expected value, and the remedy."""

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
    """The address in the contract; without a contract, the advertised address."""
    verdict: Verdict
    stages: Annotated[tuple[StageResult, ...], FailFast()] = Field(default=(), max_length=20)
    cause: Cause | None = None
    reason: Text = ""
    """Why the cell was skipped or is inconclusive."""
    latency_ms: Number | None = None
    """The shortest time from sending to acknowledgement (acks=all), of the doctor's records after
    the first."""

    @property
    def failed_stage(self) -> Stage | None:
        return next((stage.stage for stage in self.stages if stage.verdict == Verdict.FAIL), None)


class ReachedAddress(Frozen):
    """The result of one Spark executor (or the driver) for one advertised address."""

    listener: Name
    broker: int
    address: Observed
    resolved: Annotated[tuple[Name, ...], FailFast()] = Field(default=(), max_length=1000)
    reached: bool
    error: Text = ""
    cluster_id: Name = ""
    """The id of the cluster that answered; empty if unknown, or not asked (TLS, SASL)."""


class Vantage(Frozen):
    """A place from which a client connected."""

    name: Name
    kind: Literal["host", "executor", "container", "remote"] = "host"
    where: Name = ""
    """The machine's host name."""
    resolvers: Annotated[tuple[Name, ...], FailFast()] = Field(default=(), max_length=1000)
    reached: Annotated[tuple[ReachedAddress, ...], FailFast()] = Field(
        default=(), max_length=MAX_CELLS
    )
    verdict: Verdict = Verdict.PASS
    reason: Text = ""


class Delivery(Frozen):
    """The counts of the records written through one listener and read through another."""

    written_through: Name
    read_through: Name
    broker: int
    acknowledged: int
    """Records of writes that returned."""
    unknown: int = 0
    """Records of failed writes, which may exist or not. They never count as lost."""
    read: int
    lost: int = 0
    duplicated: int = 0
    out_of_order: int = 0
    corrupt: int = 0
    misrouted: int = 0
    foreign: int = 0
    """Records of other runs, which are counted but not checked."""
    examples: Annotated[tuple[Text, ...], FailFast()] = Field(default=(), max_length=100)
    """At most 20 sentences for a report."""

    @property
    def verdict(self) -> Verdict:
        # Spark's sink promises at-least-once: a duplicate is reported, but is not a failure
        is_bad = self.lost or self.out_of_order or self.corrupt or self.misrouted
        if is_bad:
            return Verdict.FAIL
        return Verdict.PASS if self.acknowledged else Verdict.INCONCLUSIVE


class Replication(Frozen):
    """The result for one pair of brokers: whether the follower copies records of the leader."""

    leader: int
    follower: int
    listener: Name = ""
    """The inter-broker listener; empty if its name is unknown."""
    verdict: Verdict
    cause: Cause | None = None
    reason: Text = ""
    """Why the result is inconclusive."""


class Report(Frozen):
    """One run of the doctor or of the whole validation."""

    version: Literal[1] = 1
    kind: Literal["doctor", "validation"]
    run: Name
    """The run's id, which every record of the run contains."""
    cluster: Name
    cluster_id: Name = ""
    """Kafka's id of the cluster: the contract's, else that of most answers; empty if unknown."""
    placement: Name = ""
    kafka_version: Name = ""
    started: Annotated[datetime, AfterValidator(_check_moment)]
    seconds: Number
    cells: tuple[Cell, ...] = Field(max_length=MAX_CELLS)
    vantages: tuple[Vantage, ...] = Field(default=(), max_length=1000)
    delivery: tuple[Delivery, ...] = Field(default=(), max_length=MAX_CELLS)
    replication: tuple[Replication, ...] = Field(default=(), max_length=MAX_CELLS)
    """A result per pair of brokers. Empty for a single broker, and for the doctor."""
    incarnations: dict[Name, Name] = Field(default_factory=dict, max_length=MAX_CELLS)
    notes: tuple[Text, ...] = Field(default=(), max_length=1000)

    @property
    def verdict(self) -> Verdict:
        results: list[Cell | Delivery | Replication | Vantage]
        results = [*self.cells, *self.delivery, *self.replication, *self.vantages]
        no_cells = [] if self.cells else [Verdict.INCONCLUSIVE]
        return combine([*no_cells, *(result.verdict for result in results)])

    @property
    def exit_code(self) -> int:
        """0: everything passed; 1: a result failed; 3: inconclusive."""
        return {Verdict.PASS: 0, Verdict.FAIL: 1}.get(self.verdict, 3)


def combine(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a run: fail if any failed, pass if all passed (at least one), else
    inconclusive."""
    distinct = set(verdicts)
    if Verdict.FAIL in distinct:
        return Verdict.FAIL
    return Verdict.PASS if distinct == {Verdict.PASS} else Verdict.INCONCLUSIVE
