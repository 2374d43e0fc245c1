"""From what the doctor and the Spark job found to one report. Pure.

A cell passes only where both proved it: its records were acknowledged, and all that its broker
holds came back through its listener. What one listener lost and another gave back is the reader's
failure; what none gave back is the writer's.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from earshot.spark.attempts import Key, RouteFailure
from earshot.spark.cluster import foreign, met_strangers
from earshot.spark.job import Findings
from earshot.validation.causes import FailedStage, explain
from earshot.validation.result import Cause, Cell, Delivery, ReachedAddress, StageResult, Vantage
from earshot.validation.terms import Stage, Verdict


def merge(
    cells: Sequence[Cell], findings: Findings, cluster_id: str | None = None
) -> tuple[Cell, ...]:
    """The doctor's ``cells`` with Spark's part in them, then those of each executor.

    ``cluster_id`` is the contract's, where it names one.
    """
    proofs = _Proofs(findings, cluster_id)
    here = tuple(_driver(cell, proofs) for cell in cells)
    models = {(cell.listener, cell.broker): cell for cell in cells}
    return here + tuple(
        _executor(models[target.listener, target.broker], executor, target, proofs)
        for executor in findings.executors
        for target in executor.reached
    )


def without_spark(
    cells: Sequence[Cell], reason: str, cause: Cause | None = None
) -> tuple[Cell, ...]:
    """The doctor's ``cells`` where the job could not run: nothing that passed is proven."""

    def undecided(cell: Cell) -> Cell:
        return _changed(cell, Verdict.INCONCLUSIVE, reason=reason, cause=cause)

    return tuple(undecided(cell) if cell.verdict is Verdict.PASS else cell for cell in cells)


class _Proofs:
    """What Spark says of each (listener, broker)."""

    def __init__(self, findings: Findings, cluster_id: str | None) -> None:
        self.cluster_id = cluster_id
        self.strange_there = met_strangers(findings.executors, cluster_id)
        self.blamed = blame(findings.deliveries)
        self.acknowledged: dict[Key, int] = defaultdict(int)
        self.readers: dict[Key, list[str]] = defaultdict(list)
        for delivery in findings.deliveries:
            key = (delivery.written_through, delivery.broker)
            self.acknowledged[key] = delivery.acknowledged
            self.readers[key].append(delivery.read_through)
        # where and why Spark could not do its part
        self.problems = {key: (Stage.CONSUME, problem) for key, problem in findings.unread.items()}
        self.problems |= {
            key: (Stage.PRODUCE, problem) for key, problem in findings.unwritten.items()
        }


def blame(deliveries: Collection[Delivery]) -> dict[Key, list[Delivery]]:
    """The failed deliveries by the (listener, broker) that they speak against."""
    read: dict[Key, list[Delivery]] = defaultdict(list)
    for delivery in deliveries:
        read[delivery.written_through, delivery.broker].append(delivery)
    blamed: dict[Key, list[Delivery]] = defaultdict(list)
    for (writer, broker), group in read.items():
        bad = [delivery for delivery in group if delivery.verdict is Verdict.FAIL]
        for delivery in bad:
            culprit = writer if len(bad) == len(group) else delivery.read_through
            blamed[culprit, broker].append(delivery)
    return dict(blamed)


def _driver(cell: Cell, proofs: _Proofs) -> Cell:
    if cell.verdict is not Verdict.PASS:
        return cell
    checked = _by_spark(cell, proofs)
    if checked is not None:
        return checked
    key = (cell.listener, cell.broker)
    if key not in proofs.acknowledged:
        why = "no Spark executor could reach it"
        if key in proofs.strange_there:
            why = "an executor met another cluster there"
        reason = f"{why}, so Spark proved nothing"
        return _changed(cell, Verdict.INCONCLUSIVE, reason=reason)
    details = {
        Stage.PRODUCE: f"Spark: {proofs.acknowledged[key]} records acknowledged",
        Stage.CONSUME: f"Spark: all read back through {', '.join(proofs.readers[key])}",
    }
    stages = []
    for stage in cell.stages:
        details_shown = filter(None, (stage.detail, details.get(stage.stage)))
        stages.append(stage.model_copy(update={"detail": "; ".join(details_shown)}))
    return _changed(cell, Verdict.PASS, stages=tuple(stages))


def _by_spark(cell: Cell, proofs: _Proofs) -> Cell | None:
    """``cell`` where Spark has something to say against it."""
    key = (cell.listener, cell.broker)
    met = proofs.problems.get(key)
    if met is None:
        blamed = proofs.blamed.get(key)
        return _failed(cell, Stage.CONSUME, _delivered(blamed)) if blamed else None
    stage, problem = met
    if problem.trouble is RouteFailure.LATE:
        return _changed(cell, Verdict.INCONCLUSIVE, reason=f"Spark: {problem.reason}")
    if problem.trouble is RouteFailure.LIMITED:
        reason = f"Spark reached a limit of the machine that it runs on: {problem.reason}"
        return _changed(cell, Verdict.INCONCLUSIVE, reason=reason)
    if problem.trouble is RouteFailure.STRANGER:
        return _stranger(cell, problem.reason, proofs)
    if problem.trouble is RouteFailure.REFUSED:
        return _failed_at(cell, Stage.TCP, "refused", problem.reason)
    outcome = "were not acknowledged" if stage is Stage.PRODUCE else "could not be read back"
    return _failed_at(cell, stage, "spark", f"Spark's records {outcome}: {problem.reason}")


def _executor(model: Cell, executor: Vantage, seen: ReachedAddress, proofs: _Proofs) -> Cell:
    """The cell of one executor: what it saw itself, and whether the executors' job succeeded."""
    blank = {"stages": (), "cause": None, "reason": "", "latency_ms": None}
    cell = _changed(model, Verdict.PASS, vantage=executor.name, **blank)
    observed = f"{executor.name} on {executor.where}: {seen.error}"
    if not seen.resolved:
        return _failed_at(cell, Stage.RESOLVE, "nxdomain", observed)
    stages = [_passed(Stage.RESOLVE, ", ".join(seen.resolved))]
    if not seen.reached:
        cell = _changed(cell, Verdict.PASS, stages=tuple(stages))
        error = "refused" if "refused" in seen.error.lower() else "timeout"
        return _failed_at(cell, Stage.TCP, error, observed)
    if foreign(seen, proofs.cluster_id):
        observed = f"for {executor.name} on {executor.where}, {seen.address} belongs to cluster"
        return _stranger(cell, f"{observed} {seen.cluster_id}", proofs)
    stages.append(_passed(Stage.TCP))
    cell = _changed(cell, Verdict.PASS, stages=tuple(stages))
    key = (cell.listener, cell.broker)
    met = proofs.problems.get(key)
    if met is not None and met[1].trouble is RouteFailure.STRANGER:
        why = "the driver met another cluster there"
    elif (checked := _by_spark(cell, proofs)) is not None:
        return checked
    elif key in proofs.acknowledged:
        stages += [
            _passed(stage, "by the executors together") for stage in (Stage.PRODUCE, Stage.CONSUME)
        ]
        return _changed(cell, Verdict.PASS, stages=tuple(stages))
    elif key in proofs.strange_there:
        why = "another executor met another cluster there"
    else:
        why = "the driver could not prove it"
    return _changed(cell, Verdict.SKIP, reason=f"{why}, so the job left it out")


def _passed(stage: Stage, detail: str = "") -> StageResult:
    return StageResult(stage=stage, verdict=Verdict.PASS, detail=detail)


def _failed(cell: Cell, at: Stage, cause: Cause) -> Cell:
    """``cell`` failed ``at`` a stage; earlier stages are kept, later stages are skipped."""
    order = list(Stage)
    before = [stage for stage in cell.stages if order.index(stage.stage) < order.index(at)]
    later = [
        StageResult(stage=stage, verdict=Verdict.SKIP, detail=f"{at} failed")
        for stage in order[order.index(at) + 1 :]
    ]
    here = StageResult(stage=at, verdict=Verdict.FAIL, detail=cause.observed)
    return _changed(cell, Verdict.FAIL, stages=(*before, here, *later), cause=cause)


def _changed(cell: Cell, verdict: Verdict, **fields: Any) -> Cell:
    return cell.model_copy(update={"verdict": verdict, **fields})


def _stranger(cell: Cell, observed: str, proofs: _Proofs) -> Cell:
    expected = f"cluster {proofs.cluster_id} of the contract"
    return _failed_at(cell, Stage.METADATA, "not-the-contracts", observed, expected)


def _failed_at(cell: Cell, at: Stage, error: str, observed: str, expected: str = "") -> Cell:
    failed_stage = FailedStage(at, error, observed, expected)
    cause = explain(failed_stage, cell.listener, cell.broker, cell.address, cell.scopes)
    return _failed(cell, at, cause)


_WORDS: Final[Mapping[str, str]] = {
    "lost": "never came back",
    "corrupt": "came back changed",
    "misrouted": "came back from another partition",
    "out_of_order": "came back out of order",
}


def _delivered(bad: Sequence[Delivery]) -> Cause:
    observed = [
        f"of {cell.acknowledged} records written through {cell.written_through}, {count} {words} "
        f"through {cell.read_through}"
        for cell in bad
        for field, words in _WORDS.items()
        if (count := getattr(cell, field))
    ]
    kind = next(field for field in _WORDS if any(getattr(cell, field) for cell in bad))
    return Cause(
        kind=kind.replace("_", "-"),
        observed="; ".join(observed),
        expected="every acknowledged record comes back once, in order, unchanged, through every "
        "listener",
        remedy=f"see the log of broker {bad[0].broker} for this time, and the network between its "
        "listeners and their clients (proxies, port mappings)",
    )
