"""Waiting for images that a host pulls by its own role."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import ImageNotFound
from earshot_pulumi.docker_hosts import engine_ready
from earshot_pulumi.docker_hosts.engine_ready import DockerHostImagesKind

from earshot.aws.ecr import EXAMPLE
from earshot.errors import EarshotError
from tests.components.called import Called
from tests.raised import raised

KIND = Called(DockerHostImagesKind())
REPORT = "/earshot/s-m/docker/a/report"


class World:
    """An engine that lacks the image for some looks, and the report of its host."""

    def __init__(self) -> None:
        self.looks = 0
        self.missing_looks = 0
        self.parameters = {REPORT: '{"instance": "i-1", "state": "prepared", "detail": ""}'}

    def report(self, detail: str, instance: str = "i-1") -> None:
        self.parameters[REPORT] = (
            f'{{"instance": "{instance}", "state": "prepared", "detail": "{detail}"}}'
        )

    @contextmanager
    def connected(self, where: Any) -> Iterator[SimpleNamespace]:
        assert where.engine == "tcp://10.0.0.1:2376"

        def inspect(name: str) -> None:
            assert name == EXAMPLE
            self.looks += 1
            if self.looks <= self.missing_looks:
                raise ImageNotFound(name)

        yield SimpleNamespace(api=SimpleNamespace(inspect_image=inspect))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr("earshot_pulumi.docker.container_address.connect", world.connected)
    monkeypatch.setattr(engine_ready, "reader", lambda *_: lambda names: world.parameters)
    monkeypatch.setattr(engine_ready, "described", lambda *_: {})
    monkeypatch.setattr("earshot_pulumi.docker_hosts.clusters.here", Path)
    monkeypatch.setattr(engine_ready, "POLL_SECONDS", 0.01)
    return world


def props(**changes: Any) -> dict[str, Any]:
    inputs: dict[str, Any] = {"name": "a", "engine": "tcp://10.0.0.1:2376", "cert_path": "/client"}
    inputs |= {"instance": "i-1", "images": [EXAMPLE], "parameter": "/earshot/s-m/docker/images"}
    return {**inputs, "seconds": 5.0, "report": REPORT, "region": "eu-central-1", **changes}


def test_it_waits_until_all_images_are_there(world: World) -> None:
    world.missing_looks = 3
    assert KIND.create(props()).outs["images"] == [EXAMPLE]
    assert world.looks == 4


def test_an_image_that_does_not_come_is_named_with_what_the_host_reports(world: World) -> None:
    world.missing_looks = 10_000
    world.report(f"cannot pull {EXAMPLE}: manifest unknown")
    error = raised(EarshotError, KIND.create, props(seconds=0.1))
    text = str(error)
    assert f"image {EXAMPLE} on Docker host a: is missing after 0 s" in text
    assert "the host reports: cannot pull" in text and "manifest unknown" in text
    assert "that a repository of another account admits this one" in text


def test_a_problem_that_stays_is_not_waited_for_to_the_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_ready, "IMAGE_PATIENCE", 0.05)
    world.missing_looks = 10_000
    world.report("cannot pull it: denied")
    with pytest.raises(EarshotError, match="denied"):
        KIND.create(props(seconds=900.0))
    world.report("cannot pull it: denied", instance="i-0")
    with pytest.raises(EarshotError, match="the host reports no problem"):
        KIND.create(props(seconds=0.2))


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({"images": [f"{EXAMPLE}-1"]}, True),
        ({"instance": "i-2"}, True),
        ({"seconds": 7.0}, False),
        ({"cert_path": "/elsewhere"}, False),
    ],
)
def test_other_images_and_another_instance_are_waited_for(
    changes: dict[str, Any], differs: bool
) -> None:
    assert KIND.differs(props(), props(**changes)) is differs
