"""From what the doctor and the Spark job found to one report. Pure.

A cell passes only where both proved it: its records were acknowledged, and all that its broker
holds came back through its listener. What one listener lost and another gave back is the reader's
failure; what none gave back is the writer's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from earshot.listeners.address import Address, parse_address
from earshot.validation.causes import Trouble, explain
from earshot.validation.result import (
    Cause,
    Cell,
    Delivery,
    Reached,
    Stage,
    StageResult,
    Vantage,
    Verdict,
)
from earshot.validation.spark_job import Findings

Key = tuple[str, int]


def merge(cells: Sequence[Cell], findings: Findings) -> tuple[Cell, ...]:
    """The doctor's ``cells`` with Spark's part in them, then those of each executor."""
    proofs = _Proofs(findings)
    here = tuple(_driver(cell, proofs) for cell in cells)
    models = {(cell.listener, cell.broker): cell for cell in cells}
    return here + tuple(
        _executor(models[item.listener, item.broker], executor, item, proofs)
        for executor in findings.executors
        for item in executor.reached
    )


def without_spark(cells: Sequence[Cell], reason: str) -> tuple[Cell, ...]:
    """The doctor's ``cells`` where the job could not run: nothing that passed is proven."""
    return tuple(
        _changed(cell, Verdict.INCONCLUSIVE, reason=reason)
        if cell.verdict is Verdict.PASS
        else cell
        for cell in cells
    )


class _Proofs:
    """What Spark says of each (listener, broker)."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.blamed = blame(findings.deliveries)
        self.acknowledged: dict[Key, int] = defaultdict(int)
        self.readers: dict[Key, list[str]] = defaultdict(list)
        for item in findings.deliveries:
            key = (item.written_through, item.broker)
            self.acknowledged[key] = item.acknowledged
            self.readers[key].append(item.read_through)

    def failure(self, cell: Cell) -> tuple[Stage, Cause] | None:
        key = (cell.listener, cell.broker)
        if key in self.findings.unwritten:
            said = f"Spark's records were not acknowledged: {self.findings.unwritten[key]}"
            return Stage.PRODUCE, _explained(cell, Stage.PRODUCE, said)
        if key in self.findings.unread:
            said = f"Spark could not read the records back: {self.findings.unread[key]}"
            return Stage.CONSUME, _explained(cell, Stage.CONSUME, said)
        if key in self.blamed:
            return Stage.CONSUME, _delivered(self.blamed[key])
        return None

    def proven(self, key: Key) -> bool:
        return key in self.acknowledged


def blame(deliveries: Collection[Delivery]) -> dict[Key, list[Delivery]]:
    """The failed deliveries by the (listener, broker) that they speak against."""
    readers: dict[Key, list[Delivery]] = defaultdict(list)
    for item in deliveries:
        readers[item.written_through, item.broker].append(item)
    blamed: dict[Key, list[Delivery]] = defaultdict(list)
    for (writer, broker), group in readers.items():
        bad = [item for item in group if item.verdict is Verdict.FAIL]
        for item in bad:
            culprit = writer if len(bad) == len(group) else item.read_through
            blamed[culprit, broker].append(item)
    return dict(blamed)


def _driver(cell: Cell, proofs: _Proofs) -> Cell:
    if cell.verdict is not Verdict.PASS:
        return cell
    key = (cell.listener, cell.broker)
    failure = proofs.failure(cell)
    if failure is not None:
        return _failed(cell, *failure)
    if not proofs.proven(key):
        reason = "no Spark executor could reach it, so Spark proved nothing"
        return _changed(cell, Verdict.INCONCLUSIVE, reason=reason)
    details = {
        Stage.PRODUCE: f"Spark: {proofs.acknowledged[key]} records acknowledged",
        Stage.CONSUME: f"Spark: all read back through {', '.join(proofs.readers[key])}",
    }
    stages = tuple(
        stage.model_copy(update={"detail": "; ".join(filter(None, (stage.detail, said)))})
        if (said := details.get(stage.stage))
        else stage
        for stage in cell.stages
    )
    return _changed(cell, Verdict.PASS, stages=stages)


def _executor(model: Cell, executor: Vantage, seen: Reached, proofs: _Proofs) -> Cell:
    """The cell of one executor: what it saw itself, and whether the executors' job succeeded."""
    cell = _changed(
        model,
        Verdict.PASS,
        vantage=executor.name,
        stages=(),
        cause=None,
        reason="",
        latency_ms=None,
    )
    if not seen.resolved:
        cause = _explained(cell, Stage.RESOLVE, f"{executor.name} ({executor.where}): {seen.error}")
        return _failed(cell, Stage.RESOLVE, cause)
    resolved = StageResult(
        stage=Stage.RESOLVE, verdict=Verdict.PASS, detail=", ".join(seen.resolved)
    )
    if not seen.reached:
        cell = _changed(cell, Verdict.PASS, stages=(resolved,))
        cause = _explained(cell, Stage.TCP, f"{executor.name} ({executor.where}): {seen.error}")
        return _failed(cell, Stage.TCP, cause)
    stages = (resolved, StageResult(stage=Stage.TCP, verdict=Verdict.PASS))
    cell = _changed(cell, Verdict.PASS, stages=stages)
    failure = proofs.failure(cell)
    if failure is not None:
        return _failed(cell, *failure)
    if not proofs.proven((cell.listener, cell.broker)):
        reason = "the driver could not reach it, so the job left it out"
        return _changed(cell, Verdict.SKIP, reason=reason)
    together = tuple(
        StageResult(stage=stage, verdict=Verdict.PASS, detail="by the executors together")
        for stage in (Stage.PRODUCE, Stage.CONSUME)
    )
    return _changed(cell, Verdict.PASS, stages=stages + together)


def _failed(cell: Cell, at: Stage, cause: Cause) -> Cell:
    """``cell`` failed ``at`` a stage; what stands before it is kept, what comes later skipped."""
    order = list(Stage)
    before = [it for it in cell.stages if order.index(it.stage) < order.index(at)]
    later = [
        StageResult(stage=it, verdict=Verdict.SKIP, detail=f"{at} failed")
        for it in order[order.index(at) + 1 :]
    ]
    here = StageResult(stage=at, verdict=Verdict.FAIL, detail=cause.observed)
    return _changed(cell, Verdict.FAIL, stages=(*before, here, *later), cause=cause)


def _changed(cell: Cell, verdict: Verdict, **fields: object) -> Cell:
    return cell.model_copy(update={"verdict": verdict, **fields})


def _explained(cell: Cell, stage: Stage, observed: str) -> Cause:
    address: Address = parse_address(cell.address)
    error = "timeout" if "timed out" in observed or "Expiring" in observed else "spark"
    if stage is Stage.TCP and "refused" in observed.lower():
        error = "refused"
    trouble = Trouble(stage, error, observed)
    return explain(trouble, cell.listener, cell.broker, address, cell.scopes)


_WORDS: Mapping[str, str] = {
    "lost": "never came back",
    "corrupt": "came back changed",
    "misrouted": "came back from another partition",
    "out_of_order": "came back out of order",
}


def _delivered(bad: Sequence[Delivery]) -> Cause:
    said = [
        f"of {item.acknowledged} records written through {item.written_through}, {count} {words} "
        f"through {item.read_through}"
        for item in bad
        for field, words in _WORDS.items()
        if (count := getattr(item, field))
    ]
    kind = next(field for field in _WORDS if any(getattr(item, field) for item in bad))
    return Cause(
        kind=kind.replace("_", "-"),
        observed="; ".join(said),
        expected="every acknowledged record comes back once, in order, unchanged, through every "
        "listener",
        remedy=f"see the log of broker {bad[0].broker} for this time, and what stands between its "
        "listeners and their clients (proxies, port mappings)",
    )
