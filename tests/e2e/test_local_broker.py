"""One real broker where paths are odd, in a locale that knows no letters beyond ASCII."""

import shutil
from pathlib import Path

import pytest
from earshot_pulumi.local.process import stop
from earshot_pulumi.local.process_record import running

from earshot.jvm.jars import kafka_broker_jars
from earshot.listeners.properties import read_properties
from tests.e2e.cluster import Cluster, local_plan
from tests.rest import with_combinations

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

FOLDER = "jürgen's ${user.home} 100%d #1=a:b\\c 👂"


@pytest.mark.parametrize("version", with_combinations("3.9.2", ["3.9.2", "4.1.1"]))
def test_a_broker_keeps_its_data_wherever_its_directory_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    _, plan = local_plan(1, kafka_version=version)
    cluster = Cluster(plan, tmp_path / FOLDER, kafka_broker_jars(version))
    original, copy = cluster.node_directory(1), tmp_path / "copy" / "node-1"
    try:
        cluster.start()
        meta = (original / "log" / "meta.properties").read_text()
        copy.parent.mkdir()
        shutil.copytree(original, copy)
        assert stop(copy) is False
        assert running(original) is not None
        cluster.stop(1)
        assert running(original) is None
        cluster.start()
        assert (original / "log" / "meta.properties").read_text() == meta
        assert {path.name for path in tmp_path.iterdir()} == {FOLDER, "copy"}
        assert {path.name for path in original.parent.iterdir()} == {"node-1"}
        read = read_properties((original / "server.properties").read_text())
        assert read.values["log.dirs"] == str(original / "log")
    finally:
        stop(original, grace=1.0)
