"""The job on a standalone cluster of two workers: what each executor resolves and reaches."""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import earshot
from earshot.jvm.jars import spark_connector_jars
from earshot.listeners.terms import Scope
from earshot.validation.result import Report
from earshot.validation.terms import Stage, Verdict
from tests.e2e.cluster import Cluster, local_plan, running_cluster
from tests.e2e.spark_standalone import Standalone, standalone, with_resolver
from tests.skips import lacking

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

NAME = "kafka.earshot.test"
"""The host that EXTERNAL advertises. It resolves only with the test's resolver."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    _, plan = local_plan(brokers=2, hosts={Scope.HOST: NAME}, controllers={"count": 1})
    with running_cluster(plan) as new_cluster:
        yield new_cluster


def submit(
    spark: Standalone, cluster: Cluster, *prefix: str, records: int = 400
) -> tuple[int, Report, str]:
    contract, output = spark.directory / "contract.json", spark.directory / "report.json"
    contract.write_text(cluster.contract.to_json())
    arguments = ["--contract", str(contract), "--output", str(output)]
    arguments += ["--records", str(records), "--deadline", "240"]
    script = Path(earshot.__file__).with_name("__main__.py")
    completed = spark.submit(script, ["validate", *arguments], spark_connector_jars(), *prefix)
    assert output.exists(), completed.stdout + completed.stderr
    return completed.returncode, Report.model_validate_json(output.read_text()), completed.stderr


def needs_own_resolvers() -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        lacking("a resolver per process takes root and unshare: sudo make test (util-linux)")


def failed_stages(report: Report, vantage: str) -> set[tuple[str, int, Stage | None]]:
    return {
        (cell.listener, cell.broker, cell.failed_stage)
        for cell in report.cells
        if cell.vantage == vantage and cell.verdict is not Verdict.PASS
    }


def executors(report: Report) -> Sequence[str]:
    return [vantage.name for vantage in report.vantages if vantage.kind == "executor"]


@pytest.mark.combination
def test_two_workers_prove_every_cell_and_say_what_they_reached(
    cluster: Cluster, tmp_path: Path
) -> None:
    needs_own_resolvers()
    resolver_command = with_resolver(tmp_path, "knowing", {NAME: "127.0.0.1"})
    with standalone(tmp_path, {"one": resolver_command, "two": resolver_command}) as spark:
        code, report, errors = submit(spark, cluster, *resolver_command)
    assert (code, report.verdict) == (0, Verdict.PASS), (report.cells, errors)
    assert executors(report) == ["executor-0", "executor-1"]
    for vantage in report.vantages[1:]:
        assert {(route.listener, route.broker) for route in vantage.reached} == {
            (listener, broker) for listener in ("INTERNAL", "EXTERNAL") for broker in (1, 2)
        }
        assert all(route.reached and route.resolved == ("127.0.0.1",) for route in vantage.reached)
    assert len(report.cells) == 3 * 4
    assert {
        (delivery.acknowledged, delivery.read, delivery.lost) for delivery in report.delivery
    } == {(100, 100, 0)}


def test_an_executor_that_cannot_resolve_is_named_and_only_its_cells_fail(
    cluster: Cluster, tmp_path: Path
) -> None:
    needs_own_resolvers()
    resolver_command = with_resolver(tmp_path, "knowing", {NAME: "127.0.0.1"})
    ignorant = with_resolver(tmp_path, "ignorant", {})
    with standalone(tmp_path, {"one": resolver_command, "two": ignorant}) as spark:
        code, report, _ = submit(spark, cluster, *resolver_command)
    assert code == 1
    assert failed_stages(report, "host") == set()
    blind = [name for name in executors(report) if failed_stages(report, name)]
    assert len(blind) == 1 and len(executors(report)) == 2
    assert failed_stages(report, blind[0]) == {
        ("EXTERNAL", 1, Stage.RESOLVE),
        ("EXTERNAL", 2, Stage.RESOLVE),
    }
    cause = next(cell.cause for cell in report.cells if cell.vantage == blind[0] and cell.cause)
    assert blind[0] in cause.observed and NAME in cause.observed
    assert {delivery.lost for delivery in report.delivery} == {0}
