"""`extends`: a stack file that has only what differs from another one."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from earshot.cli import run
from earshot.config.document import merged, read_spec, read_spec_text
from earshot.config.local import LocalSpec
from earshot.errors import EarshotError
from earshot.project import Project
from tests.raised import raised

BASE = {
    "placement": "local",
    "brokers": 3,
    "listeners": [
        {"name": "INTERNAL", "port": 19092, "scopes": ["internal"], "advertised": {2: "kafka"}},
        {"name": "EXTERNAL", "port": 9092, "scopes": ["host"]},
    ],
    "controllers": {"mode": "combined", "port": 29092},
    "extra": {"num.io.threads": "8", "num.network.threads": "3"},
    "external_host": "kafka.example.com",
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "Pulumi.yaml").write_text("name: any\nruntime: python\nstackConfigDir: stacks\n")
    (tmp_path / "stacks").mkdir()
    write(tmp_path, "base", BASE)
    return Project(tmp_path)


def write(root: Path, stack: str, cluster: object) -> None:
    file = root / "stacks" / f"Pulumi.{stack}.yaml"
    file.write_text(yaml.safe_dump({"config": {"earshot:cluster": cluster}}))


def refused(project: Project, cluster: dict[str, Any]) -> str:
    write(project.root, "big", cluster)
    error = raised(EarshotError, project.read_cluster, "big")
    return str(error)


def test_maps_are_merged_lists_replaced_and_null_removes(project: Project) -> None:
    cluster = {
        "extends": "base",
        "brokers": 5,
        "listeners": [{"name": "ONLY", "port": 9092, "scopes": ["internal"]}],
        "controllers": {"port": 39092},
        "extra": {"num.io.threads": "16"},
        "external_host": None,
    }
    write(project.root, "big", cluster)
    spec = project.read_cluster("big")
    assert isinstance(spec, LocalSpec)
    assert (spec.brokers, [listener.name for listener in spec.listeners]) == (5, ["ONLY"])
    assert (spec.controllers.mode, spec.controllers.port) == ("combined", 39092)
    assert spec.extra == {"num.io.threads": "16", "num.network.threads": "3"}
    assert spec.external_host is None
    assert project.read_cluster("base").brokers == 3
    # a program reads the same from its configuration
    assert read_spec_text(json.dumps(cluster), "big", project) == spec
    assert merged({1: "a", 2: "b"}, {"1": "c"}) == {1: "c", 2: "b"}, "JSON has texts as keys"


def test_files_may_extend_each_other_in_a_row(project: Project) -> None:
    write(project.root, "middle", {"extends": "base", "brokers": 5, "heap": "1g"})
    write(project.root, "big", {"extends": "middle", "heap": "2g"})
    spec = project.read_cluster("big")
    assert isinstance(spec, LocalSpec) and (spec.brokers, spec.heap) == (5, "2g")


def test_plan_shows_it(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listeners = [{"name": "ONLY", "port": 9092, "scopes": ["internal"]}]
    cluster = {"extends": "base", "brokers": 1, "external_host": None, "listeners": listeners}
    write(project.root, "big", cluster)
    monkeypatch.chdir(project.root)
    assert run(["plan", "--stack", "big"]) == 0
    assert "ONLY" in capsys.readouterr().out


def test_a_mistake_is_reported_with_every_file(project: Project) -> None:
    assert refused(project, {"extends": "base", "brokers": 0}) == (
        "stacks/Pulumi.big.yaml, earshot:cluster, which extends stacks/Pulumi.base.yaml: "
        "brokers: found 0; allowed: 1 or more"
    )


def test_a_base_without_a_file_or_a_cluster_is_named(project: Project) -> None:
    assert refused(project, {"extends": "bse"}) == (
        "stacks/Pulumi.big.yaml, earshot:cluster: extends: found 'bse'\n"
        "  allowed: a stack with a file: base, big"
    )
    for name in (3, None, ["base"], "../base", "organization/any/base"):
        assert "extends: found" in refused(project, {"extends": name})
    (project.root / "stacks" / "Pulumi.base.yaml").write_text("config: {}\n")
    assert refused(project, {"extends": "base"}).startswith("stacks/Pulumi.base.yaml: ")


def test_a_circle_is_refused(project: Project) -> None:
    write(project.root, "base", {"extends": "big"})
    assert refused(project, {"extends": "base"}) == (
        "stacks/Pulumi.big.yaml, earshot:cluster, which extends stacks/Pulumi.base.yaml, which "
        "extends stacks/Pulumi.big.yaml: extends: found base -> big -> base\n"
        "  allowed: files that do not extend each other in a circle"
    )


def test_only_a_stack_file_extends_another() -> None:
    error = raised(EarshotError, read_spec, {"extends": "base"}, "kafka")
    assert error.line == "kafka: extends: found 'base'; allowed: only in a stack file"
