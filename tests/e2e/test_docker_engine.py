"""The engine, the images and the hosts that Docker tests stand on."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests import shared_engine
from tests.e2e import docker_engine as engines
from tests.e2e.docker_engine import RECORD, Daemon, Engine, refusal
from tests.e2e.docker_hosts import NAMESPACES, Network, docker_network
from tests.e2e.images import base, load
from tests.e2e.packet_rules import saved_rules
from tests.skips import not_meant
from toolchain.paths import ROOT

e2e = pytest.mark.e2e
pytestmark = [pytest.mark.combination, pytest.mark.timeout(600)]
READY_SECONDS = 60


def container(engine: Engine, *arguments: str) -> str:
    """A started container, its id."""
    return engine.run("run", "--detach", *arguments).strip()


def test_no_engine_is_started_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = refusal({})
    assert reason is not None and "EARSHOT_TEST_DOCKER=1 make test" in reason
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    reason = refusal({"CI": "true"})
    assert reason is not None and "only root" in reason
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    reason = refusal({"EARSHOT_TEST_DOCKER": "1"})
    assert reason is not None and "apt-get install docker.io" in reason


def test_without_an_engine_a_test_is_skipped_and_in_ci_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(shared_engine.ADDRESS, raising=False)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    monkeypatch.setattr(engines, "refusal", lambda: "no engine")
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no engine"), engines.engine_for_tests():
        pass
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no engine"), engines.engine_for_tests():
        pass


def test_images_need_root_or_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    reason = base.hindrance()
    assert reason is not None and "only root" in reason
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    reason = base.hindrance()
    assert reason is not None and "apt-get install debootstrap" in reason
    (tmp_path / "earshot" / "docker" / f"debian-bookworm-{base.digest()}").mkdir(parents=True)
    assert base.hindrance() is None


@e2e
def test_an_engine_that_answers_is_used_as_it_is(
    docker_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(shared_engine.ADDRESS, raising=False)
    monkeypatch.setenv("DOCKER_HOST", docker_engine.address)
    with engines.engine_for_tests() as engine:
        assert engine == Engine(docker_engine.address, started=False)
    assert docker_engine.run("info", "--format", "{{.ID}}").strip()


@e2e
def test_two_engines_of_ours_are_refused(docker_engine: Engine) -> None:
    if not docker_engine.started:
        not_meant("the engine was there; ours is not running")
    with (
        pytest.raises(pytest.fail.Exception, match=f"DOCKER_HOST={docker_engine.address}"),
        engines.own_engine(),
    ):
        pass
    assert str(Path(docker_engine.address.removeprefix("unix://")).parent) in RECORD.read_text()


@e2e
def test_packet_rules_are_put_back(docker_engine: Engine) -> None:
    """The test has its own network namespace, so that no engine changes the rules in between."""
    if not docker_engine.started:
        not_meant("packet rules are ours to change only where the engine is")
    subprocess.run(
        ["unshare", "--net", sys.executable, "-c", CHANGE_PACKET_RULES], check=True, cwd=ROOT
    )
    assert "EARSHOT-TEST" not in saved_rules("filter")


CHANGE_PACKET_RULES = """
import subprocess
from tests.e2e.packet_rules import FORWARDING, restored_rules, saved_rules

def rules():
    return [line for line in saved_rules("filter").splitlines() if not line.startswith(("#", ":"))]

before, forwarding = rules(), FORWARDING.read_text()
with restored_rules():
    subprocess.run(["iptables", "-N", "EARSHOT-TEST"], check=True)
    subprocess.run(["iptables", "-A", "EARSHOT-TEST", "-j", "DROP"], check=True)
    FORWARDING.write_text("0" if forwarding.strip() == "1" else "1")
    assert rules() != before
assert rules() == before and FORWARDING.read_text() == forwarding
assert "EARSHOT-TEST" not in saved_rules("filter")
"""


@e2e
def test_the_stand_in_cannot_be_mistaken(docker_engine: Engine, kafka_image: str) -> None:
    assert kafka_image.startswith("earshot-test/apache-kafka-double:")
    with contextlib.closing(docker_engine.client()) as client:
        image = client.images.get(kafka_image)
        assert image.tags == [kafka_image]
        config = image.attrs["Config"]
    assert config["User"] == "appuser"
    assert set(config["ExposedPorts"]) == {"9092/tcp"}
    assert "/var/lib/kafka/data" in config["Volumes"]


def test_a_stand_in_for_an_old_kafka_is_refused() -> None:
    with pytest.raises(ValueError, match=r"only for 4\.0 and newer"):
        load.kafka_image(Engine("unix:///none"), "3.9.1")


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    with docker_network() as new_network:
        yield new_network


def reaches(command: list[str], address: str, port: int) -> bool:
    """True if a connection is accepted from the place where ``command`` runs."""
    probe = [*command, "bash", "-c", f"exec 3<>/dev/tcp/{address}/{port}"]
    return subprocess.run(probe, capture_output=True, timeout=20).returncode == 0


@e2e
def test_hosts_reach_each_others_published_ports_and_nothing_else(network: Network) -> None:
    first_host, second_host = network.host(), network.host()
    image = load.client_image(first_host.engine)
    load.client_image(second_host.engine)
    arguments = ("--publish=8080:80", image, "nc", "-lk", "-p", "80")
    id = container(first_host.engine, *arguments)
    wait_script = "until nc -z localhost 80; do sleep 0.1; done"
    first_host.engine.run("exec", id, "timeout", str(READY_SECONDS), "bash", "-c", wait_script)
    assert reaches([], first_host.address, 8080)
    assert reaches(second_host.inside(), first_host.address, 8080)
    second_host.engine.run("run", "--rm", image, "nc", "-z", "-w", "5", first_host.address, "8080")
    assert not reaches(second_host.inside(), first_host.address, 80)

    inner = first_host.engine.run("inspect", "-f", "{{.NetworkSettings.IPAddress}}", id).strip()
    first_host.engine.run("run", "--rm", image, "nc", "-z", "-w", "5", inner, "80")
    first_host.engine.run("network", "create", "elsewhere")
    connect = ("run", "--rm", "--network=elsewhere", image, "nc", "-z", "-w", "2")
    first_host.engine.run(*connect, first_host.address, "8080")
    with pytest.raises(AssertionError):
        first_host.engine.run(*connect, inner, "80")

    first_host.stop_engine()
    assert not reaches([], first_host.address, 8080)
    first_host.start_engine()
    assert first_host.engine.run("inspect", "-f", "{{.State.Running}}", id).strip() == "false"


@e2e
def test_a_network_of_hosts_leaves_nothing() -> None:
    with docker_network() as network:
        host = network.host()
        assert network.name in psutil.net_if_addrs()
        daemon: Daemon = host.daemon
        left_running = subprocess.Popen(host.inside("sleep", "600"))
        assert (NAMESPACES / host.namespace).exists()
        assert daemon.process() is not None
    left_running.wait(10)
    assert daemon.process() is None
    assert not daemon.run.exists() and not daemon.data_folder.exists()
    assert not (NAMESPACES / host.namespace).exists()
    assert network.name not in psutil.net_if_addrs()
    assert str(daemon.run) not in Path("/proc/mounts").read_text()
