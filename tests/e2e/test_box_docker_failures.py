"""Faults on the Docker hosts of a stack in a box, and the result of the next update.

Each test leaves the stack up, with every listener proved.
"""

from collections.abc import Iterator

import pytest

from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.command_stack import CommandStack, command_stack
from tests.e2e.box.stack import passed_cells

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(1500)]
FULL = "/var/lib/docker/full"


@pytest.fixture(scope="module")
def stack(
    box: CloudBox, kafka_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CommandStack]:
    with command_stack(box, kafka_image, tmp_path_factory.mktemp("made")) as stack:
        stack.up()
        yield stack


def test_no_host_changes_while_a_broker_on_another_is_down(stack: CommandStack) -> None:
    broker, host = "kafka-3", stack.host("c")
    old_ids = stack.ids()
    host.run("docker", "stop", broker)
    stack.cluster["hosts"]["aws"]["instances"] = {"a": {"type": "t4g.xlarge"}}
    stack.configure()
    try:
        output = stack.refusal()
    finally:
        host.run("docker", "start", broker)
        del stack.cluster["hosts"]["aws"]["instances"]
        stack.configure()
    assert "Docker host a would be restarted or replaced while c is down" in output, output
    assert f"c: container {broker}: it does not run" in output
    assert stack.ids() == old_ids


def test_an_engine_that_does_not_run_is_named_and_its_broker_comes_back(
    stack: CommandStack,
) -> None:
    host = stack.host("b")
    host.run("systemctl", "stop", "docker.service")
    try:
        output = stack.refusal()
    finally:
        host.run("systemctl", "start", "docker.service")
    assert "Docker engine at tcp://" in output and "it is on a host of this stack" in output
    stack.up()
    assert len(passed_cells(stack.report())) == 6


def test_a_full_volume_is_named_and_the_broker_comes_back_with_space(stack: CommandStack) -> None:
    host = stack.host("b")
    host.run("sh", "-c", f"cat /dev/zero >{FULL} || true")
    try:
        output = stack.refusal()
    finally:
        host.run("rm", FULL)
    assert "container kafka-2 on Docker host b: cannot be started" in output
    assert "no space left on device" in output
    stack.up()
    assert len(passed_cells(stack.report())) == 6
