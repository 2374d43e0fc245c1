"""A stack of placement docker: the real program and CLI, the provider double, a real engine.

Containers, networks and volumes have names of their own, because engines are shared.
"""

import contextlib
import json
import os
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import docker
import yaml
from earshot_pulumi.docker import labels, make

from earshot.config.docker import DockerSpec
from earshot.config.document import read_spec
from tests.doubles.docker.install import install_docker_plugin
from tests.e2e.docker_engine import Engine
from tests.e2e.engine import FEW_PARTITIONS, Deployment, deployment
from tests.e2e.outside import Outside
from tests.e2e.ports import consecutive_ports
from toolchain.paths import ROOT

TEMPLATE = ROOT / "stacks" / "Pulumi.docker.yaml"


@dataclass(frozen=True)
class ContainerEvent:
    """An event of the container of node ``id``: "die" or "start"."""

    when: float
    """Seconds since the epoch, by the engine's clock."""
    action: str
    id: int


@dataclass
class DockerStack(Deployment):
    """One stack and the engine of its containers."""

    engine: Engine = field(kw_only=True)

    def up(self, *flags: str, repair: bool = True, refresh: bool = True) -> str:
        """Runs the steps of `make up`, or some of them. Returns their output."""
        repair_output = self.repair() if repair else ""
        flags = (*flags, "--refresh") if refresh else flags
        completed = self.pulumi("up", "--yes", "--skip-preview", *flags, timeout=600)
        assert completed.returncode == 0, self.with_logs(repair_output + completed.stdout)
        return repair_output + completed.stdout

    def repair(self) -> str:
        """Runs the step of `make up` before Pulumi's refresh. Returns its output."""
        spec = read_spec(self.cluster, "the cluster")
        assert isinstance(spec, DockerSpec)
        lines: list[str] = []
        with mock.patch.dict(os.environ, self.engine.environment):
            state = self.root.parent
            make.repair(spec, self.stack, state, lines.append)
        return "".join(f"{line}\n" for line in lines)

    def with_logs(self, output: str) -> str:
        """``output`` and the end of the double's log."""
        logs = self.folder.glob("home/plugins/*/double.log")
        return output + "".join(path.read_text()[-3000:] for path in logs)

    @property
    def names(self) -> dict[int, str]:
        """The names of containers, by node id."""
        return {int(id): name for id, name in self.cluster["names"].items()}

    def containers(self) -> dict[int, str]:
        """The ids of existing containers, by node id."""
        with contextlib.closing(self.engine.client()) as client:
            # the list alone: one of them may be gone before it is looked at
            containers = client.api.containers(all=True, filters=self._own_containers())
            return {
                int(container["Labels"][labels.NODE]): str(container["Id"])
                for container in containers
            }

    def volumes(self) -> dict[int, str]:
        """The names of existing volumes, by node id."""
        with contextlib.closing(self.engine.client()) as client:
            volumes = client.volumes.list(filters=self._own_containers())
            by_node = {volume.attrs["Labels"].get(labels.NODE): volume.name for volume in volumes}
        return {int(node): name for node, name in by_node.items() if node is not None}

    def inspect(self, id: int) -> dict[str, Any]:
        """The engine's description of the container of node ``id``."""
        container: dict[str, Any] = json.loads(self.engine.run("inspect", self.names[id]))[0]
        return container

    @contextlib.contextmanager
    def recorded_events(self) -> Iterator[list[ContainerEvent]]:
        """The events of the stack's containers within the block; the list is filled at the end.

        Events are read as they happen, because an engine keeps only its last 256.
        """
        events: list[ContainerEvent] = []
        node = f'{{{{index .Actor.Attributes "{labels.NODE}"}}}}'
        command = [
            "docker", "--host", self.engine.address, "events", "--since", str(int(time.time())),
            "--filter", "type=container", "--filter", "event=start", "--filter", "event=die",
            "--filter", f"label={labels.STACK}={self.stack}",
            "--format", f"{{{{.TimeNano}}}} {{{{.Action}}}} {node}",
        ]  # fmt: skip
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listening:
            try:
                yield events
            finally:
                listening.terminate()
                event_lines, _ = listening.communicate()
        for line in event_lines.splitlines():
            when, action, id = line.split()
            events.append(ContainerEvent(int(when) / 1e9, action, int(id)))

    def kafka(self, id: int, script: str, *arguments: str) -> str:
        """Runs one of Kafka's scripts in the container of node ``id``, on its INTERNAL listener."""
        words = [f"/opt/kafka/bin/{script}.sh", "--bootstrap-server", self.inside]
        return self.engine.run("exec", self.names[id], *words, *arguments)

    def produce(self, topic: str, record: str) -> None:
        """Writes a record from the first container with acks=all; the topic is created."""
        command = f"printf %s '{record}' | kcat -b {self.inside} -P -t {topic} -X acks=all"
        self.engine.run("exec", self.names[1], "bash", "-c", command)

    def first_record(self, topic: str) -> str:
        """The first record of a topic, from within the first container."""
        words = ["kcat", "-b", self.inside, "-C", "-t", topic, "-o", "beginning", "-c", "1", "-q"]
        return self.engine.run("exec", self.names[1], "timeout", "60", *words).strip()

    @property
    def inside(self) -> str:
        """The address of the INTERNAL listener within the broker's own container."""
        return f"localhost:{self.inside_port}"

    @property
    def inside_port(self) -> int:
        listeners = self.cluster["listeners"]
        return next(
            int(listener["port"]) for listener in listeners if listener["name"] == "INTERNAL"
        )

    def report(self) -> dict[str, Any]:
        """The report of the last validation."""
        file = self.folder / ".earshot" / "stacks" / self.stack / "report.json"
        report: dict[str, Any] = json.loads(file.read_text())
        return report

    def remove_all(self) -> None:
        """Removes all parts of the stack from the engine."""
        with contextlib.closing(self.engine.client()) as client:
            for container in client.containers.list(all=True, filters=self._own_containers()):
                with contextlib.suppress(docker.errors.NotFound):
                    container.remove(force=True, v=True)
            for network in client.networks.list(filters=self._own_containers()):
                network.remove()
            for volume in client.volumes.list(filters=self._own_containers()):
                volume.remove()

    def _own_containers(self) -> dict[str, str]:
        return {"label": f"{labels.STACK}={self.stack}"}


def template() -> dict[str, Any]:
    """`earshot:cluster` of the docker template."""
    settings: dict[str, Any] = yaml.safe_load(TEMPLATE.read_text())["config"]["earshot:cluster"]
    return settings


def docker_cluster(image: str, brokers: int = 3, **settings: Any) -> dict[str, Any]:
    """The template's cluster with the double of `apache/kafka`, with its own names and ports.

    ``settings`` replace those of the template. There are ports for nine brokers and for
    controllers.
    """
    mark = secrets.token_hex(3)
    document = template()
    for listener, port in zip(
        document["listeners"], consecutive_ports(9, len(document["listeners"])), strict=True
    ):
        listener["port"] = port
    ids = [*range(1, brokers + 1), *settings.pop("controller_ids", ())]
    return document | {
        "brokers": brokers,
        "names": {id: f"k{id}-{mark}" for id in ids},
        "image": image,
        "heap": "256m",
        "extra": FEW_PARTITIONS,
        "validation": {"records": 300, "deadline": 300},
        **settings,
    }


def with_outside_name(cluster: dict[str, Any], outside: Outside, base: str) -> dict[str, Any]:
    """``cluster`` with a name for outside clients, which containers can resolve."""
    name = outside.call(f"kafka-{secrets.token_hex(3)}.example.com")
    return cluster | {
        "hosts": [{"name": "local", "external": name}],
        "dns": [outside.address],
        "validator": {"base": base},
    }


def resolver_config(outside: Outside) -> dict[str, Any]:
    """The gate's configuration for names that only ``outside`` resolves."""
    return {"names": {"resolvers": {"external": [outside.address]}, "timeout": 5}}


@contextlib.contextmanager
def docker_deployment(
    folder: Path,
    engine: Engine,
    cluster: dict[str, Any],
    policy: dict[str, Any],
    install: Callable[[Path], object] = install_docker_plugin,
) -> Iterator[DockerStack]:
    """A stack without resources. All its parts on ``engine`` are removed at the end.

    ``install`` puts the plugin into a PULUMI_HOME.
    """
    stack = f"t{secrets.token_hex(4)}"
    with deployment(folder, cluster, stack) as local_stack:
        install(folder / "home")
        docker_stack = DockerStack(
            folder,
            local_stack.environment | engine.environment,
            local_stack.cluster,
            stack=stack,
            policy=policy,
            engine=engine,
        )
        try:
            yield docker_stack
        finally:
            docker_stack.remove_all()
