"""Failures of containers, their engine and the CLI: clear errors, fixed by the next update.

One broker on its own engine has its data on a small file system. Each test breaks
something, reads the output of `pulumi up`, and leaves the broker up with its record.
"""

import contextlib
import errno
import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import docker
import psutil
import pytest
from earshot_pulumi.docker import labels

from earshot.config.docker import DockerSpec
from earshot.config.document import read_spec
from earshot.placement.docker import plan_docker
from tests.e2e.cluster import CLUSTER_ID
from tests.e2e.docker_engine import Engine
from tests.e2e.docker_hosts import Host, copy_images, docker_network
from tests.e2e.docker_stack import DockerStack, docker_cluster, docker_deployment
from tests.e2e.engine import FEW_PARTITIONS
from tests.e2e.images.load import validator_images
from toolchain.state_files import recover

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(900)]

DISK_MIB = 200
RECORD = "was here before"
PATIENCE = 600.0
GONE_SECONDS = 8.0
"""After its CLI was killed, a plugin has to be gone within these."""


@dataclass
class LoneStack:
    """The stack of one broker, the Docker host that it is on, the disk that its data is on."""

    stack: DockerStack
    host: Host
    disk: Path

    @property
    def name(self) -> str:
        """The name of the broker's container."""
        return self.stack.names[1]

    @property
    def running(self) -> str:
        """The id of the broker's container, or nothing where it does not run."""
        output = self.stack.engine.run(
            "ps", "--quiet", "--no-trunc", "--filter", f"name=^/{self.name}$"
        )
        return output.strip()

    def change(self) -> None:
        """Something that makes the next update replace the container."""
        self.stack.cluster["heap"] = "264m" if self.stack.cluster["heap"] == "256m" else "256m"

    def output_when_disturbed(self, disturb: Callable[[], object], *flags: str) -> str:
        """What `pulumi up` says while it replaces the container, and ``disturb`` happens as soon as
        the new one has begun to start. It must fail."""
        old_container = self.running
        self.change()
        client = self.host.engine.client()
        with ThreadPoolExecutor(1) as pool, contextlib.closing(client):
            update = pool.submit(
                self.stack.pulumi, "up", "--yes", "--skip-preview", *flags, timeout=PATIENCE
            )
            while not self._starts(client, old_container):
                assert not update.done(), update.result().stdout
                time.sleep(0.1)
            disturb()
            completed = update.result()
        assert completed.returncode != 0, completed.stdout
        assert "Traceback" not in completed.stdout
        return completed.stdout

    def recover(self, *, repair: bool = True) -> str:
        """The output of the next update, which must succeed and find the data."""
        output = self.stack.up(repair=repair)
        assert self.stack.containers() == {1: self.running}
        assert self.kcat("-C", "-e", "-q") == f"{RECORD}\n"
        return output

    def kcat(self, *arguments: str, record: str = "") -> str:
        """kcat in the broker's container, on the topic that holds the record."""
        port = self.stack.cluster["listeners"][0]["port"]
        line = f"printf '%s' '{record}' | kcat -b localhost:{port} -t kept {' '.join(arguments)}"
        return self.stack.engine.run("exec", self.name, "bash", "-c", line)

    def cli(self) -> psutil.Process:
        """The CLI's process of the running update."""
        (update_process,) = (
            process for process in psutil.Process().children() if process.name() == "pulumi"
        )
        return update_process

    def plugins(self) -> list[psutil.Process]:
        """Processes of the Docker plugin of the stack's PULUMI_HOME."""
        plugin_processes = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if str(self.stack.folder / "home" / "plugins") in " ".join(process.cmdline()):
                    plugin_processes.append(process)
        return plugin_processes

    def _starts(self, client: docker.DockerClient, old_container: str) -> bool:
        """True if a container other than ``old_container`` runs and has written its first lines."""
        for container in client.api.containers(filters={"name": f"^/{self.name}$"}):
            with contextlib.suppress(docker.errors.APIError):  # gone meanwhile
                return container["Id"] != old_container and b"INFO" in client.api.logs(self.name)
        return False


@pytest.fixture(scope="module")
def lone(
    docker_engine: Engine, kafka_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LoneStack]:
    folder = tmp_path_factory.mktemp("lone")
    base, validator = validator_images(docker_engine)
    with docker_network() as network, small_disk(folder / "disk") as disk:
        host = network.host()
        copy_images(docker_engine, [host.engine], kafka_image, validator)
        cluster = docker_cluster(kafka_image, brokers=1, validator={"base": base})
        cluster["listeners"] = cluster["listeners"][:1]
        cluster["validation"] = {"records": 0, "deadline": 300}
        cluster["cluster_id"] = CLUSTER_ID
        with docker_deployment(folder / "p", host.engine, cluster, {}) as stack:
            lone_broker = LoneStack(stack, host, disk)
            put_data_on(disk, stack)
            stack.up()
            lone_broker.kcat("-P", record=RECORD)
            yield lone_broker


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A small separate file system, which fills up without harm to others."""
    folder.mkdir()
    options = f"size={DISK_MIB}m,mode=777"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "earshot-test", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def put_data_on(disk: Path, stack: DockerStack) -> None:
    """Creates the broker's volume before the stack does. So a user chooses the place of data."""
    spec = read_spec(stack.cluster, "the cluster")
    assert isinstance(spec, DockerSpec)
    docker_plan = plan_docker(spec, stack.stack)
    volume_labels = labels.of_volume(
        stack.stack, CLUSTER_ID, docker_plan.plan, docker_plan.plan.node(1)
    )
    flags = [f"--label={key}={value}" for key, value in volume_labels.items()]
    flags += ["--opt=type=none", "--opt=o=bind", f"--opt=device={disk}"]
    stack.engine.run("volume", "create", "--driver=local", *flags, docker_plan.containers[1].volume)


@contextlib.contextmanager
def full_disk(disk: Path) -> Iterator[None]:
    """Within, a file takes all free space of the disk, also that of a stopping broker."""
    filler, has_ended, is_filled = disk / "filler", threading.Event(), threading.Event()

    def fill() -> None:
        with filler.open("wb", buffering=0) as file:
            while not has_ended.wait(0.02):
                try:
                    while not has_ended.is_set():
                        file.write(b"\0" * 4096)
                except OSError as reason:
                    assert reason.errno == errno.ENOSPC, reason
                    is_filled.set()

    thread = threading.Thread(target=fill)
    thread.start()
    try:
        assert is_filled.wait(60)
        yield
    finally:
        has_ended.set()
        thread.join()
        filler.unlink()


@contextlib.contextmanager
def foreign_container(engine: Engine, name: str, image: str) -> Iterator[str]:
    """Creates a foreign container ``name``. Yields its id."""
    id = engine.run("create", "--name", name, image).strip()
    try:
        yield id
    finally:
        engine.run("rm", "--force", "--volumes", id)


DISTURBANCES = {
    "kill": ("ended with status 137", "its log"),
    "rm --force": ("was removed by hand; its volume still exists", "`pulumi up --refresh`"),
    "network disconnect": ("was disconnected from its network", "run the same command again"),
}  # fmt: skip


@pytest.mark.parametrize("disturbance", DISTURBANCES)
def test_a_container_disturbed_during_an_update(lone: LoneStack, disturbance: str) -> None:
    network_argument = (f"earshot-{lone.stack.stack}",) if disturbance.startswith("network") else ()
    output = lone.output_when_disturbed(
        lambda: lone.host.engine.run(*disturbance.split(), *network_argument, lone.name)
    )
    assert f"container {lone.name} on Docker host local" in output
    for words in DISTURBANCES[disturbance]:
        assert words in output, output
    lone.recover()


def test_a_container_removed_and_its_name_taken(lone: LoneStack) -> None:
    lone.host.engine.run("rm", "--force", "--volumes", lone.name)
    image = lone.stack.cluster["image"]
    with foreign_container(lone.host.engine, lone.name, image) as foreign_id:
        output = lone.stack.refusal("--skip-preview", "--refresh")
        assert f"the name {lone.name} of node 1 is taken on Docker host local" in output
        assert f"docker rm --force {lone.name}" in output
        assert lone.stack.inspect(1)["Id"] == foreign_id
    lone.recover()


def test_an_image_that_is_missing(lone: LoneStack) -> None:
    old_container, image = lone.running, lone.stack.cluster["image"]
    lone.stack.cluster["image"] = missing_image = image.rpartition(":")[0] + ":none"
    try:
        output = lone.stack.refusal("--skip-preview")
    finally:
        lone.stack.cluster["image"] = image
    assert (
        output.count(f"image {missing_image} on Docker host local: is missing, and its engine") == 1
    ), output
    assert "unable to pull" not in output and "docker save" in output, output
    assert lone.running == old_container
    lone.recover()
    assert lone.running == old_container


def test_a_full_disk(lone: LoneStack) -> None:
    lone.change()
    with full_disk(lone.disk):
        output = lone.stack.refusal("--skip-preview")
        assert f"container {lone.name} on Docker host local" in output
        assert "restarts in a loop" in output, output
        assert "the disk of its data seems to be full; free space there" in output, output
    lone.recover()


def test_the_engine_stopped_in_the_middle_of_an_update(lone: LoneStack) -> None:
    try:
        output = lone.output_when_disturbed(lone.host.stop_engine)
    finally:
        lone.host.start_engine()
    assert f"Docker engine at {lone.host.engine.address}: does not answer" in output, output
    assert "start it" in output
    lone.recover()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_cli_ended_in_the_middle_of_an_update(lone: LoneStack, number: signal.Signals) -> None:
    def end() -> None:
        """Ctrl-C reaches all that the terminal has started; SIGKILL one process."""
        cli = lone.cli()
        everyone = cli.children(recursive=True) if number == signal.SIGINT else []
        for process in (cli, *everyone):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    lone.output_when_disturbed(end)
    until = time.monotonic() + GONE_SECONDS
    while lone.plugins():
        assert time.monotonic() < until, "the plugin outlives its CLI"
        time.sleep(0.1)
    recover(lone.stack.environment, lone.stack.stack)  # as `make up` does before it calls the CLI
    lone.recover()


def test_settings_that_kafka_refuses_stop_no_broker(lone: LoneStack) -> None:
    old_container = lone.running
    lone.stack.cluster["extra"] = FEW_PARTITIONS | {"background.threads": "abc"}
    try:
        refusals = [lone.stack.refusal("--skip-preview"), lone.stack.refusal(command="preview")]
    finally:
        lone.stack.cluster["extra"] = FEW_PARTITIONS
    for text in refusals:
        assert (
            "Kafka 4.1.1 refuses the settings of node 1: "
            "Invalid value abc for configuration background.threads: Not a number of type INT"
            in text
        ), text
        assert "map[" not in text, text
    assert lone.running == old_container


def test_a_change_that_only_a_start_can_refuse_is_taken_back(lone: LoneStack) -> None:
    old_container = lone.running
    lone.stack.cluster["extra"] = FEW_PARTITIONS | {"metric.reporters": "org.example.Absent"}
    try:
        output = lone.stack.refusal("--skip-preview")
    finally:
        lone.stack.cluster["extra"] = FEW_PARTITIONS
    message_start = output.index(f"container {lone.name} on Docker host local: ")
    assert "org.example.Absent" in output[message_start:].splitlines()[0], output
    assert (
        "it was made again with its former settings and serves; the nodes after it did not change"
        in output
    )
    assert lone.running not in ("", old_container), "as it was, and another container"
    failed_container = json.loads(lone.stack.engine.run("inspect", f"{lone.name}-failed"))[0]
    assert not failed_container["State"]["Running"]
    lone.recover()


def test_a_published_port_taken_by_another_process(lone: LoneStack) -> None:
    """The broker keeps a second listener, for later tests."""
    old_container = lone.running
    external = docker_cluster(lone.stack.cluster["image"])["listeners"][2]
    lone.stack.cluster["listeners"] = [*lone.stack.cluster["listeners"], external]
    lone.stack.cluster["hosts"] = [{"name": "local", "external": lone.host.address}]
    with port_holder(lone.host, external["port"]):
        for command in ("preview", "up"):
            output = lone.stack.refusal(command=command)
            assert (
                f"port {external['port']} of Docker host local, for node 1, is taken by" in output
            )
    assert lone.running == old_container
    lone.recover()


def test_what_was_killed_or_cut_off_keeps_its_container(lone: LoneStack) -> None:
    """A refresh reports a container with published ports only while it is connected."""
    old_container, network = lone.running, f"earshot-{lone.stack.stack}"
    lone.host.engine.run("network", "disconnect", network, lone.name)
    lone.host.engine.run("kill", lone.name)
    lone.recover(repair=False)
    assert lone.running == old_container, "also by plain `pulumi up --refresh`"
    lone.host.engine.run("network", "disconnect", network, lone.name)
    output = lone.recover()
    assert (
        f"container {lone.name} on Docker host local is not connected to its network {network}"
        in output
    )
    assert lone.running == old_container


def test_a_crash_loop_is_reported_and_keeps_its_container(lone: LoneStack) -> None:
    old_container, meta = lone.running, lone.disk / "meta.properties"
    text = meta.read_text()
    meta.write_text(text.replace(CLUSTER_ID, "b3RoZXItdGVzdHMtY2x1cw"))
    # from within: the engine does not restart a container that was killed by hand
    lone.host.engine.run("exec", lone.name, "bash", "-c", "kill 1")
    while not (state := lone.stack.inspect(1))["RestartCount"]:
        time.sleep(0.2)
    repair_output = lone.stack.repair()
    output = lone.stack.refusal("--skip-preview", "--refresh")
    assert "is restarted in a loop by its engine, and ended with status 1" in repair_output
    assert "cluster.id" in repair_output and "stopping it until its turn" in repair_output, (
        repair_output
    )
    assert "restarts in a loop" in output and "cluster.id" in output, output
    assert lone.stack.inspect(1)["Id"] == state["Id"] == old_container
    meta.write_text(text)
    lone.recover()
    assert lone.running == old_container


@contextlib.contextmanager
def port_holder(host: Host, port: int) -> Iterator[None]:
    """A process on ``host`` that has taken ``port``."""
    command = host.inside("python3", "-m", "http.server", str(port))
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            socket_query = host.inside("ss", "-Hltn", f"sport = :{port}")
            while not subprocess.run(socket_query, capture_output=True, check=True).stdout:
                assert server.poll() is None, server.communicate()[1]
                time.sleep(0.1)
            yield
        finally:
            server.terminate()
