"""Updates go on with states of release 0.1.0, on every placement: real CLI and plugin."""

import json
import socket
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.aws.server import MotoServer
from tests.e2e.aws_stack import aws_stack
from tests.e2e.docker_engine import Engine
from tests.e2e.docker_stack import docker_cluster, docker_deployment
from tests.e2e.engine import deployment, local_cluster
from tests.e2e.former_state import FormerState
from tests.e2e.images.load import validator_images

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900), pytest.mark.combination]
GATE = {"GateSeal", "pulumi-python"}
"""Resources that the first update deletes: the approval and its provider."""
MERGED = {"aws": {"AwsPreflight"}, "docker": {"ClusterIdentity", "DockerPreflight"}}
"""What a placement's one preflight does now."""
INSTANCE = "aws:ec2/instance:Instance"


def types_by_operation(preview: str) -> dict[str, set[str]]:
    """The last words of the types, by operation."""
    types_by_operation = defaultdict(set)
    for step in json.loads(preview[preview.index("{") :])["steps"]:
        kind = step["urn"].split("::")[2].rpartition("$")[2]
        types_by_operation[step["op"]].add(kind.replace("/", ":").rpartition(":")[2])
    return types_by_operation


def import_state(run_pulumi: Callable[..., str], state: Mapping[str, Any], folder: Path) -> None:
    file = folder / "former.json"
    file.write_text(json.dumps(state))
    run_pulumi("stack", "import", "--force", "--file", str(file))


def with_user_data_of(live: Mapping[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    """``state`` with the instances' user data of ``live``."""
    live_instances = {instance["urn"].rpartition("::")[2]: instance for instance in instances(live)}
    for instance in instances(state):
        for group in ("inputs", "outputs"):
            for key in ("userData", "userDataBase64"):
                if key in instance[group]:
                    instance[group][key] = live_instances[instance["urn"].rpartition("::")[2]][
                        group
                    ][key]
    return state


def instances(state: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        resource for resource in state["deployment"]["resources"] if resource["type"] == INSTANCE
    ]


def test_on_aws(server: MotoServer, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    former = FormerState.of("aws", folder=str(folder), endpoint=server.url)
    with aws_stack(server, tmp_path) as stack:
        run_pulumi = stack.project.run
        stack.configure(former.cluster)
        stack.project.up()
        live = json.loads(run_pulumi("stack", "export", "--show-secrets"))
        names, volumes = set(stack.instances()), stack.volumes()
        old_instances = {instance["InstanceId"] for instance in stack.instances().values()}

        # user data differs in this release: instances are replaced, and no other resource
        import_state(run_pulumi, former.with_live_ids(live), tmp_path)
        planned_steps = types_by_operation(run_pulumi("preview", "--json"))
        assert planned_steps["replace"] == {"Instance", "VolumeAttachment"}
        assert planned_steps["delete"] == GATE | MERGED["aws"]

        # with the same user data nothing is
        import_state(run_pulumi, with_user_data_of(live, former.with_live_ids(live)), tmp_path)
        planned_steps = types_by_operation(run_pulumi("preview", "--json"))
        assert not planned_steps["replace"] and planned_steps["delete"] == GATE | MERGED["aws"]
        stack.project.up()
        assert {instance["InstanceId"] for instance in stack.instances().values()} == old_instances
        assert (set(stack.instances()), stack.volumes()) == (names, volumes)
        stack.project.destroy()


def test_on_this_machine(tmp_path: Path) -> None:
    cluster = local_cluster(1)
    ports = {
        f"port of {listener['name']}": str(listener["port"]) for listener in cluster["listeners"]
    }
    ports["port of CONTROLLER"] = str(cluster["controllers"]["port"])
    folder = tmp_path / "p"
    former = FormerState.of("local", folder=str(folder), machine=socket.gethostname(), **ports)

    with deployment(folder, former.cluster) as stack:

        def run_pulumi(*words: str) -> str:
            completed = stack.pulumi(*words)
            assert completed.returncode == 0, completed.stdout
            return completed.stdout

        stack.up()
        old_pids = stack.pids()
        import_state(
            run_pulumi,
            former.with_live_ids(json.loads(run_pulumi("stack", "export", "--show-secrets"))),
            folder,
        )
        planned_steps = types_by_operation(run_pulumi("preview", "--json"))
        assert not planned_steps["replace"] and planned_steps["delete"] == GATE
        assert "LocalNode" not in planned_steps["update"] | planned_steps["create"]
        stack.up("--refresh")
        assert stack.pids() == old_pids


def test_in_containers(docker_engine: Engine, kafka_image: str, tmp_path: Path) -> None:
    base, folder = validator_images(docker_engine)[0], tmp_path / "p"
    cluster_settings = docker_cluster(kafka_image, 1, validator={"base": base})
    texts = {
        f"port of {listener['name']}": str(listener["port"])
        for listener in cluster_settings["listeners"][:1]
    }
    texts |= {"folder": str(folder), "image": kafka_image, "base": base}
    texts["engine"] = docker_engine.address
    texts["mark"] = cluster_settings["names"][1].partition("-")[2]
    cluster = FormerState.of("docker", **texts).cluster
    with docker_deployment(folder, docker_engine, cluster, {}) as stack:
        former = FormerState.of("docker", **texts, stack=stack.stack)

        def run_pulumi(*words: str) -> str:
            completed = stack.pulumi(*words)
            assert completed.returncode == 0, stack.with_logs(completed.stdout)
            return completed.stdout

        stack.up()
        old_containers = stack.containers()
        import_state(
            run_pulumi,
            former.with_live_ids(json.loads(run_pulumi("stack", "export", "--show-secrets"))),
            folder,
        )
        planned_steps = types_by_operation(run_pulumi("preview", "--json"))
        assert not planned_steps["replace"] and planned_steps["delete"] == GATE | MERGED["docker"]
        stack.up()
        assert stack.containers() == old_containers
