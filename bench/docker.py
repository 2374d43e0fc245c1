"""Three brokers in containers from nothing: by `pulumi up`, and by Docker's command line alone.

The engine is the one that answers. Image and plugin are the official ones if this machine has them,
otherwise the doubles of the tests; `Bench.note` names them.
"""

import contextlib
import json
import os
import shlex
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from earshot_pulumi.docker import labels
from earshot_pulumi.docker.container_address import ContainerAddress

from bench.figures import console, measure_in_turn, show
from earshot.config.docker import DockerSpec
from earshot.config.document import read_spec
from earshot.engine.connection import DEFAULT, VARIABLE
from earshot.listeners.terms import Scope
from earshot.placement.docker import DockerPlan, plan_docker
from earshot.placement.node_container import DATA, NodeContainer
from earshot.placement.standpoint import BASE
from earshot.remote.image import ensure_image
from earshot.validation.contract import Contract
from tests.doubles.docker.install import VERSION, install_docker_plugin
from tests.e2e.docker_engine import Engine, answers, named_address
from tests.e2e.docker_stack import DockerStack, docker_cluster, docker_deployment
from tests.e2e.images import base
from tests.e2e.images.load import base_image, kafka_image
from toolchain.paths import PULUMI_HOME

PLUGIN = "pulumi-resource-docker"
RECORDS = 300
PATIENCE = 180.0
"""Seconds for brokers that only `kcat` waits for."""


def hindrance() -> str | None:
    """Why there is nothing to measure here, or None."""
    engine_address = named_address()
    if not answers(engine_address):
        return f"no Docker engine answers at {engine_address} ({VARIABLE}; by default {DEFAULT})"
    for tool, package in (("docker", "docker.io"), ("kcat", "kcat")):
        if shutil.which(tool) is None:
            return f"{tool} is missing (apt-get install {package})"
    return None if _official_image(Engine(engine_address)) else base.hindrance()


@dataclass
class Bench:
    """One stack, created and destroyed repeatedly, and the same containers made by hand."""

    stack: DockerStack
    planned: DockerPlan
    bootstrap: str
    note: str
    previews: list[float] = field(default_factory=list)
    """Seconds until `pulumi up` begins to change anything, of every run with a preview."""
    validations: list[float] = field(default_factory=list)
    """Seconds after all brokers are ready, of every run."""

    def up(self) -> float:
        """Seconds from `pulumi up` on nothing to the word that all brokers are ready; as `make up`
        runs it, without a preview."""
        return self._up("--skip-preview")

    def previewed_up(self) -> float:
        """Like `up`, with the preview that `pulumi up` makes by default."""
        return self._up()

    def _up(self, *options: str) -> float:
        try:
            start_time = time.monotonic()
            update_time, ready_time, end_time = self._watched_up(options)
            if not options:
                self.previews.append(update_time - start_time)
            self.validations.append(end_time - ready_time)
            return ready_time - start_time
        finally:
            self.stack.destroy()

    def _watched_up(self, options: Sequence[str]) -> tuple[float, float, float]:
        """When the preview was over, all brokers were ready, and all was done."""
        updating = ready = 0.0
        reported: list[str] = []
        with subprocess.Popen(
            ["pulumi", "up", "--yes", "--non-interactive", "--color", "never", *options],
            cwd=self.stack.folder,
            env=self.stack.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as running:
            assert running.stdout is not None
            for line in running.stdout:
                reported.append(line)
                if line.startswith("Updating"):
                    updating = time.monotonic()
                elif "DockerReadiness cluster created" in line:
                    ready = time.monotonic()
        # the preview announces creations in the same words, but before
        assert running.returncode == 0 and 0 < updating < ready, self.stack.with_logs(
            "".join(reported)
        )
        return updating, ready, time.monotonic()

    def by_hand(self) -> float:
        """Seconds until `kcat -L` lists every broker, after the commands of a plain script."""
        label = f"--label={labels.STACK}={self.stack.stack}"
        containers = list(self.planned.containers.values())
        engine = self.stack.engine
        try:
            start_time = time.monotonic()
            engine.run("network", "create", label, containers[0].network)
            for container in containers:
                engine.run("volume", "create", label, container.volume)
                engine.run("run", "--detach", label, *self._options(container), container.image)
            while self._listed_brokers() < len(self.planned.plan.brokers):
                assert time.monotonic() - start_time < PATIENCE, "kcat -L does not list all brokers"
            return time.monotonic() - start_time
        finally:
            self.stack.remove_all()

    def _options(self, container: NodeContainer) -> Sequence[str]:
        """Options of `docker run` that give the container the settings of the stack's component."""
        plan = self.planned.plan
        place = ContainerAddress.of(
            plan, plan.node(container.node_id), container, self.planned.hosts[container.host]
        )
        _, *health = place.endpoint.health()
        return [
            f"--name={container.name}", f"--hostname={container.name}",
            f"--network={container.network}", f"--network-alias={container.name}",
            f"--volume={container.volume}:{DATA}", "--restart=unless-stopped",
            f"--health-cmd={shlex.join(health)}", "--health-interval=10s",
            "--health-timeout=10s", "--health-start-period=1m", "--health-retries=3",
            *(f"--publish={port.host_port}:{port.container_port}" for port in container.ports),
            *(f"--env={key}={value}" for key, value in container.environment.items()),
        ]  # fmt: skip

    def _listed_brokers(self) -> int:
        """The number of brokers that `kcat -L` lists now."""
        command = ["kcat", "-L", "-J", "-m", "1", "-b", self.bootstrap]
        completed = subprocess.run(command, capture_output=True, text=True)
        return len(json.loads(completed.stdout)["brokers"]) if completed.returncode == 0 else 0


@contextlib.contextmanager
def docker_bench() -> Iterator[Bench]:
    """A stack of the template on nothing; whatever it has made is gone at the end."""
    engine = Engine(named_address())
    official = _official_image(engine)
    image = official or kafka_image(engine)
    cluster = docker_cluster(
        image,
        validator={"base": BASE if official else base_image(engine)},
        validation={"records": RECORDS, "deadline": 600},
        data="delete",
    )
    plugin = _official_plugin()
    note = f"image {image}, {'the official' if plugin else 'a test double of the'} plugin"
    with (
        tempfile.TemporaryDirectory(prefix="earshot-bench-") as folder,
        docker_deployment(
            Path(folder) / "p", engine, cluster, {}, install=_install_plugin
        ) as stack,
    ):
        spec = read_spec(stack.cluster, "bench")
        assert isinstance(spec, DockerSpec)
        with contextlib.closing(engine.client()) as client:
            # made once on every machine, and no part of any run
            ensure_image(client, spec.validator.base)
        docker_plan = plan_docker(spec, stack.stack)
        contract = Contract.of(docker_plan.plan, stack.stack, spec.placement)
        bootstrap = next(
            listener.bootstrap for listener in contract.listeners if Scope.HOST in listener.scopes
        )
        yield Bench(stack, docker_plan, bootstrap, note)


def _official_image(engine: Engine) -> str | None:
    """Apache's image of the template's version, where the engine has it."""
    spec = read_spec(docker_cluster("any:1"), "bench")
    name = f"apache/kafka:{spec.kafka_version}"
    return name if engine.run("images", "--quiet", name).strip() else None


def _official_plugin() -> Path | None:
    """The official plugin, where Pulumi would find it."""
    if (program := shutil.which(PLUGIN)) is not None:
        return Path(program)
    homes = (os.environ.get("PULUMI_HOME"), PULUMI_HOME, Path.home() / ".pulumi")
    folders = (Path(home) / "plugins" / f"resource-docker-v{VERSION}" for home in homes if home)
    return next((folder for folder in folders if (folder / PLUGIN).is_file()), None)


def _install_plugin(home: Path) -> None:
    """The plugin for a home of the bench's own."""
    plugin = _official_plugin()
    if plugin is None:
        install_docker_plugin(home)
    elif plugin.is_dir():  # otherwise PATH has it
        (home / "plugins").mkdir(parents=True, exist_ok=True)
        (home / "plugins" / plugin.name).symlink_to(plugin)


def measured(runs: int) -> None:
    """`pulumi up` on nothing against Docker's command line, until three brokers are there."""
    if (reason := hindrance()) is not None:
        console.print(f"docker: left out, for {reason}")
        return
    with docker_bench() as bench:
        console.print(f"docker: {bench.note}")
        seconds_by_name = measure_in_turn(
            {
                "make up's pulumi up, until all are ready": bench.up,
                "pulumi up with its preview": bench.previewed_up,
                "Docker CLI, until kcat -L lists all": bench.by_hand,
            },
            runs,
        )
    up_seconds, previewed, by_hand = map(statistics.median, seconds_by_name.values())
    least_up, _, least_by_hand = map(min, seconds_by_name.values())
    preview, validation = map(statistics.median, (bench.previews, bench.validations))
    show(
        "Three brokers in containers, from nothing",
        seconds_by_name,
        [
            ("plan, gate and Pulumi add", f"{up_seconds - by_hand:+.2f} s", "at most 4 s"),
            ("  in the quickest runs", f"{least_up - least_by_hand:+.2f} s", ""),
            ("  with a preview", f"{previewed - by_hand:+.2f} s", ""),
            ("  of which the preview", f"{preview:.2f} s", ""),
            ("validation, after that", f"{validation:.2f} s", ""),
        ],
    )
