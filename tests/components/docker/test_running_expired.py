"""Containers with expired certificates run on, and no node that is restarted reaches them."""

import io
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest
from docker.errors import APIError
from earshot_pulumi.docker import rolling_restart, running
from earshot_pulumi.docker.container_address import Engines

from earshot.placement.docker import plan_docker
from tests.components.docker.container_engine import ContainerEngine, listed_volume
from tests.components.docker.stacks import everything, spec_of, target_stack
from tests.components.secured_inputs import key_store

SECURED: dict[str, Any] = {"security": {}}
IN_CLEAR = {
    "listeners": [
        {"name": "INTERNAL", "port": 19092, "scopes": "internal"},
        {"name": "HOST", "port": 9092, "scopes": "host"},
    ]
}


def archive(text: str) -> Iterator[bytes]:
    """The archive of one file, as an engine sends it."""
    content, data = io.BytesIO(), text.encode()
    with tarfile.open(fileobj=content, mode="w") as tar:
        member = tarfile.TarInfo("node.pem")
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))
    yield content.getvalue()


@pytest.mark.parametrize(
    ("settings", "days", "first", "refused"),
    [
        (SECURED, {1: 5, 2: 5, 3: 5}, [], ""),
        (SECURED, {1: 5, 2: 5, 3: -1}, [3], ""),
        (SECURED, {1: -2, 2: 5, 3: -1}, [1, 3], "certificates of nodes 1, 3 expired"),
        (SECURED, {1: 5, 3: -1}, [2, 3], "certificates of node 3 expired"),
        (SECURED, {1: None, 2: None, 3: None}, [], ""),
        (IN_CLEAR, {1: -1, 2: -1, 3: -1}, [], ""),
    ],
)
def test_no_node_is_restarted_that_could_not_connect_to_the_others(
    settings: dict[str, Any],
    days: dict[int, int | None],
    first: list[int],
    refused: str,
    engine: ContainerEngine,
) -> None:
    target = target_stack(**settings)
    for id, planned in target.containers.items():
        variables = [f"{key}={text}" for key, text in planned.environment.items()]
        engine.containers[f"id-{id}"]["Config"]["Env"] += variables
        if id not in days:
            engine.kill(f"id-{id}")
    engine.volumes = [listed_volume(id) for id in target.containers]

    def get_archive(container: str, path: str) -> tuple[Iterator[bytes], dict[str, str]]:
        left = days[int(container.removeprefix("id-"))]
        if left is None or not path.endswith(".pem"):
            raise APIError("404", explanation=f"no {path}")
        return archive(key_store(left)), {}

    engine.api.get_archive = get_archive
    planned_stack = plan_docker(spec_of(**settings), "s")
    assert rolling_restart.unsettled("s", planned_stack, {}) == first
    objects = everything(target)
    nodes = [
        node
        for node in running.running(Engines(), target.hosts, objects, target.owns)
        if node.id in days
    ]
    problems = "".join(running.expired_problems(Engines(), target, objects, nodes))
    assert refused in problems and bool(refused) is bool(problems)
