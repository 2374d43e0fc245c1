"""Previews of a program with many containers: with earshot's policy pack, and with an empty one.

Nothing is made, so that no Docker engine is needed: forty brokers, and forty clients that begin
with them. A second program has a mistake in every broker.
"""

import contextlib
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.doubles.docker.install import install_docker_plugin
from tests.e2e import project
from toolchain.paths import POLICIES

EACH = 40
"""So many brokers, and so many clients."""
_EMPTY = """
from pulumi_policy import EnforcementLevel, PolicyPack, ResourceValidationPolicy

def validate(args, report):
    pass

PolicyPack("empty", [ResourceValidationPolicy("none", "-", validate, EnforcementLevel.ADVISORY)])
"""
_PROGRAM = '''"""Brokers and clients in containers."""

import pulumi_docker as docker

network = docker.Network("kafka", name="kafka")
VOTERS = "1@kafka1:9093,2@kafka2:9093,3@kafka3:9093"


def container(name, image, ports, **variables):
    docker.Container(
        name,
        name=name,
        image=image,
        envs=[f"{{key}}={{value}}" for key, value in variables.items()],
        networks_advanced=[docker.ContainerNetworksAdvancedArgs(name="kafka", aliases=[name])],
        ports=ports,
    )


for id in range(1, {brokers} + 1):
    is_controller = id <= 3
    host = "{host}" or f"kafka{{id}}"
    listeners = "INTERNAL://:9092,HOST://:19092" + (",CONTROLLER://:9093" if is_controller else "")
    container(
        f"kafka{{id}}",
        "apache/kafka:4.1.1",
        [docker.ContainerPortArgs(internal=19092, external=19091 + id)],
        KAFKA_NODE_ID=id,
        KAFKA_PROCESS_ROLES="broker,controller" if is_controller else "broker",
        KAFKA_LISTENERS=listeners,
        KAFKA_ADVERTISED_LISTENERS=f"INTERNAL://{{host}}:9092,HOST://localhost:{{19091 + id}}",
        KAFKA_INTER_BROKER_LISTENER_NAME="INTERNAL",
        KAFKA_CONTROLLER_LISTENER_NAMES="CONTROLLER",
        KAFKA_CONTROLLER_QUORUM_VOTERS=VOTERS,
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=(
            "INTERNAL:PLAINTEXT,HOST:PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
    )
    servers = f"kafka{{id}}:9092"
    container(f"client{{id}}", "example/client", [], KAFKA_BOOTSTRAP_SERVERS=servers)
'''


@dataclass(frozen=True)
class Previews:
    """Two programs in a project of their own, and an empty pack."""

    project: project.Project
    empty: Path

    def with_none(self, *, well: bool) -> float:
        """Seconds of a preview with the empty pack."""
        return self._seconds(self.empty, well=well, ends_with=0)

    def with_ours(self, *, well: bool) -> float:
        """Seconds of a preview with earshot's pack, which stops the program that is not well."""
        return self._seconds(POLICIES, well=well, ends_with=0 if well else 1)

    def _seconds(self, pack: Path, *, well: bool, ends_with: int) -> float:
        self.project.write(_PROGRAM.format(brokers=EACH, host="" if well else "localhost"))
        start_time = time.monotonic()
        preview = self.project.pulumi("preview", "--policy-pack", str(pack))
        seconds = time.monotonic() - start_time
        assert bool(preview.returncode) == bool(ends_with), preview.stdout[-3000:]
        return seconds


@contextlib.contextmanager
def previews() -> Iterator[Previews]:
    """A project with a Docker plugin; all of it is gone at the end."""
    with tempfile.TemporaryDirectory(prefix="earshot-bench-") as folder:
        home = Path(folder) / "p"
        environment = project.prepare_home(home, {})
        install_docker_plugin(home / "home")
        new_project = project.Project(home, "", environment)
        new_project.run("stack", "init", project.STACK)
        empty = Path(folder) / "empty"
        empty.mkdir()
        pack_document = yaml.safe_load((POLICIES / "PulumiPolicy.yaml").read_text())
        pack_document["runtime"]["options"]["virtualenv"] = str((POLICIES / "../.venv").resolve())
        (empty / "PulumiPolicy.yaml").write_text(yaml.safe_dump(pack_document))
        (empty / "__main__.py").write_text(_EMPTY)
        yield Previews(new_project, empty)
