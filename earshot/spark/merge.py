"""Combines the results of the doctor and of the Spark job. No input or output.

A cell passes only if both proved it: its records were acknowledged, and all records of its broker
came back through its listener. Records that one listener lost and another returned are the failure
of the reading listener; records that no listener returned, of the writing one.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from earshot.spark.attempts import Key, RouteFailure
from earshot.spark.cluster import is_other_cluster, other_cluster_keys
from earshot.spark.job import JobResult
from earshot.validation.causes import FailedStage, explain
from earshot.validation.result import Cause, Cell, Delivery, ReachedAddress, StageResult, Vantage
from earshot.validation.terms import Stage, Verdict


def merge(
    cells: Sequence[Cell], job_result: JobResult, cluster_id: str | None = None
) -> tuple[Cell, ...]:
    """The doctor's ``cells`` with Spark's results added, then the cells of each executor.

    ``cluster_id`` is the contract's, or None.
    """
    proofs = _Proofs(job_result, cluster_id)
    driver_cells = tuple(_driver_cell(cell, proofs) for cell in cells)
    models = {(cell.listener, cell.broker): cell for cell in cells}
    return driver_cells + tuple(
        _executor_cell(models[target.listener, target.broker], executor, target, proofs)
        for executor in job_result.executors
        for target in executor.reached
    )


def without_spark(
    cells: Sequence[Cell], reason: str, cause: Cause | None = None
) -> tuple[Cell, ...]:
    """The doctor's ``cells`` if the job could not run: passed cells become inconclusive."""

    def undecided(cell: Cell) -> Cell:
        return _copy(cell, Verdict.INCONCLUSIVE, reason=reason, cause=cause)

    return tuple(undecided(cell) if cell.verdict is Verdict.PASS else cell for cell in cells)


class _Proofs:
    """Spark's results by (listener, broker)."""

    def __init__(self, job_result: JobResult, cluster_id: str | None) -> None:
        self.cluster_id = cluster_id
        self.other_cluster_keys = other_cluster_keys(job_result.executors, cluster_id)
        self.blamed_deliveries = blame(job_result.deliveries)
        self.acknowledged: dict[Key, int] = defaultdict(int)
        self.readers: dict[Key, list[str]] = defaultdict(list)
        for delivery in job_result.deliveries:
            key = (delivery.written_through, delivery.broker)
            self.acknowledged[key] = delivery.acknowledged
            self.readers[key].append(delivery.read_through)
        # the stage and reason of Spark's failures
        self.problems = {
            key: (Stage.CONSUME, problem) for key, problem in job_result.unread.items()
        }
        self.problems |= {
            key: (Stage.PRODUCE, problem) for key, problem in job_result.unwritten.items()
        }


def blame(deliveries: Collection[Delivery]) -> dict[Key, list[Delivery]]:
    """The failed deliveries, by the (listener, broker) that is to blame."""
    by_writer: dict[Key, list[Delivery]] = defaultdict(list)
    for delivery in deliveries:
        by_writer[delivery.written_through, delivery.broker].append(delivery)
    by_culprit: dict[Key, list[Delivery]] = defaultdict(list)
    for (writer, broker), group in by_writer.items():
        failed_deliveries = [delivery for delivery in group if delivery.verdict is Verdict.FAIL]
        for delivery in failed_deliveries:
            culprit = writer if len(failed_deliveries) == len(group) else delivery.read_through
            by_culprit[culprit, broker].append(delivery)
    return dict(by_culprit)


def _driver_cell(cell: Cell, proofs: _Proofs) -> Cell:
    if cell.verdict is not Verdict.PASS:
        return cell
    spark_cell = _cell_failed_by_spark(cell, proofs)
    if spark_cell is not None:
        return spark_cell
    key = (cell.listener, cell.broker)
    if key not in proofs.acknowledged:
        observed = "no Spark executor could reach it"
        if key in proofs.other_cluster_keys:
            observed = "an executor reached another cluster there"
        reason = f"{observed}, so Spark proved nothing"
        return _copy(cell, Verdict.INCONCLUSIVE, reason=reason)
    details = {
        Stage.PRODUCE: f"Spark: {proofs.acknowledged[key]} records acknowledged",
        Stage.CONSUME: f"Spark: all read back through {', '.join(proofs.readers[key])}",
    }
    stages = []
    for stage in cell.stages:
        details_shown = filter(None, (stage.detail, details.get(stage.stage)))
        stages.append(stage.model_copy(update={"detail": "; ".join(details_shown)}))
    return _copy(cell, Verdict.PASS, stages=tuple(stages))


def _cell_failed_by_spark(cell: Cell, proofs: _Proofs) -> Cell | None:
    """``cell`` with Spark's failure; None if Spark reports none."""
    key = (cell.listener, cell.broker)
    stage_problem = proofs.problems.get(key)
    if stage_problem is None:
        deliveries = proofs.blamed_deliveries.get(key)
        return (
            _failed_cell(cell, Stage.CONSUME, _delivery_cause(deliveries)) if deliveries else None
        )
    stage, problem = stage_problem
    if problem.failure is RouteFailure.TIMED_OUT:
        return _copy(cell, Verdict.INCONCLUSIVE, reason=f"Spark: {problem.reason}")
    if problem.failure is RouteFailure.RESOURCE_LIMIT:
        reason = f"Spark reached a limit of the machine that it runs on: {problem.reason}"
        return _copy(cell, Verdict.INCONCLUSIVE, reason=reason)
    if problem.failure is RouteFailure.OTHER_CLUSTER:
        return _other_cluster_cell(cell, problem.reason, proofs)
    if problem.failure is RouteFailure.REFUSED:
        return _cell_failed_at(cell, Stage.TCP, "refused", problem.reason)
    outcome = "were not acknowledged" if stage is Stage.PRODUCE else "could not be read back"
    return _cell_failed_at(cell, stage, "spark", f"Spark's records {outcome}: {problem.reason}")


def _executor_cell(
    model: Cell, executor: Vantage, address: ReachedAddress, proofs: _Proofs
) -> Cell:
    """The cell of one executor, from its own probe and the result of the executors' job."""
    no_result = {"stages": (), "cause": None, "reason": "", "latency_ms": None}
    cell = _copy(model, Verdict.PASS, vantage=executor.name, **no_result)
    observed = f"{executor.name} on {executor.where}: {address.error}"
    if not address.resolved:
        return _cell_failed_at(cell, Stage.RESOLVE, "nxdomain", observed)
    stages = [_pass_result(Stage.RESOLVE, ", ".join(address.resolved))]
    if not address.reached:
        cell = _copy(cell, Verdict.PASS, stages=tuple(stages))
        error = "refused" if "refused" in address.error.lower() else "timeout"
        return _cell_failed_at(cell, Stage.TCP, error, observed)
    if is_other_cluster(address, proofs.cluster_id):
        observed = f"for {executor.name} on {executor.where}, {address.address} belongs to cluster"
        return _other_cluster_cell(cell, f"{observed} {address.cluster_id}", proofs)
    stages.append(_pass_result(Stage.TCP))
    cell = _copy(cell, Verdict.PASS, stages=tuple(stages))
    key = (cell.listener, cell.broker)
    stage_problem = proofs.problems.get(key)
    if stage_problem is not None and stage_problem[1].failure is RouteFailure.OTHER_CLUSTER:
        reason = "the driver reached another cluster there"
    elif (spark_cell := _cell_failed_by_spark(cell, proofs)) is not None:
        return spark_cell
    elif key in proofs.acknowledged:
        stages += [
            _pass_result(stage, "by the executors together")
            for stage in (Stage.PRODUCE, Stage.CONSUME)
        ]
        return _copy(cell, Verdict.PASS, stages=tuple(stages))
    elif key in proofs.other_cluster_keys:
        reason = "another executor reached another cluster there"
    else:
        reason = "the driver could not prove it"
    return _copy(cell, Verdict.SKIP, reason=f"{reason}, so the job left it out")


def _pass_result(stage: Stage, detail: str = "") -> StageResult:
    return StageResult(stage=stage, verdict=Verdict.PASS, detail=detail)


def _failed_cell(cell: Cell, failed_stage: Stage, cause: Cause) -> Cell:
    """``cell`` as failed at ``failed_stage``. Earlier stages are kept, later ones are skipped."""
    order = list(Stage)
    stages_before = [
        stage for stage in cell.stages if order.index(stage.stage) < order.index(failed_stage)
    ]
    stages_after = [
        StageResult(stage=stage, verdict=Verdict.SKIP, detail=f"{failed_stage} failed")
        for stage in order[order.index(failed_stage) + 1 :]
    ]
    failure = StageResult(stage=failed_stage, verdict=Verdict.FAIL, detail=cause.observed)
    return _copy(cell, Verdict.FAIL, stages=(*stages_before, failure, *stages_after), cause=cause)


def _copy(cell: Cell, verdict: Verdict, **fields: object) -> Cell:
    return cell.model_copy(update={"verdict": verdict, **fields})


def _other_cluster_cell(cell: Cell, observed: str, proofs: _Proofs) -> Cell:
    expected = f"cluster {proofs.cluster_id} of the contract"
    return _cell_failed_at(cell, Stage.METADATA, "not-the-contracts", observed, expected)


def _cell_failed_at(
    cell: Cell, stage: Stage, error: str, observed: str, expected: str = ""
) -> Cell:
    failed_stage = FailedStage(stage, error, observed, expected)
    cause = explain(failed_stage, cell.listener, cell.broker, cell.address, cell.scopes)
    return _failed_cell(cell, stage, cause)


_WORDS: Final[Mapping[str, str]] = {
    "lost": "never came back",
    "corrupt": "came back changed",
    "misrouted": "came back from another partition",
    "out_of_order": "came back out of order",
}


def _delivery_cause(deliveries: Sequence[Delivery]) -> Cause:
    observed = [
        f"of {delivery.acknowledged} records written through {delivery.written_through}, {count} "
        f"{words} through {delivery.read_through}"
        for delivery in deliveries
        for field, words in _WORDS.items()
        if (count := getattr(delivery, field))
    ]
    kind = next(
        field for field in _WORDS if any(getattr(delivery, field) for delivery in deliveries)
    )
    return Cause(
        kind=kind.replace("_", "-"),
        observed="; ".join(observed),
        expected="every acknowledged record comes back once, in order, unchanged, through every "
        "listener",
        remedy=f"see the log of broker {deliveries[0].broker} for this time, and the network "
        "between its listeners and their clients (proxies, port mappings)",
    )
