"""What the preflight asks of engines and takes from them; engines here are doubles."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import DockerException, ImageNotFound, NotFound
from earshot_pulumi.docker import (
    identity,
    images,
    labels,
    on_engines,
    preflight,
    running,
    volume_data,
)
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.on_engines import EngineObjects, TargetStack
from earshot_pulumi.docker.preflight import EnginePreflightKind

from earshot.errors import EarshotError
from earshot.remote.leftovers import CLUSTER_LABEL
from tests.components.called import Called
from tests.components.docker.stacks import MINE, OWN_ID, target_stack
from tests.raised import raised

HOSTS = [{"name": "a", "engine": "tcp://a:1", "external": "a"}, {"name": "b", "external": "b"}]
OTHER = {"name": "c", "engine": "tcp://c:1", "external": "c"}


class EngineDouble:
    """Keeps what it is told to do with what it has."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.fails = False
        self.held = False
        self.containers = SimpleNamespace(list=self._containers)
        self.networks = SimpleNamespace(list=self._networks)
        self.volumes = SimpleNamespace(list=self._volumes)
        self.images_there = {"apache/kafka:4.1.1"}
        self.registry: Exception | None = None
        """Why nothing can be pulled."""
        self.images = SimpleNamespace(pull=self._pull)
        self.api = SimpleNamespace(inspect_image=self._inspect_image)

    def _pull(self, image: str) -> None:
        self.done.append(f"pull {image}")
        if self.registry:
            raise self.registry

    def _inspect_image(self, image: str) -> None:
        if self.fails:
            raise DockerException("stopped")
        if image not in self.images_there:
            raise ImageNotFound(image)

    def _containers(
        self, *, filters: dict[str, str], all: bool = False, ignore_removed: bool = False
    ) -> list[Any]:
        self.done.append(f"containers {filters['label']} {all}")
        if self.fails:
            raise DockerException("stopped")
        return [self._container(id) for id in ("1", "9", None)]

    def _container(self, id: str | None) -> Any:
        return SimpleNamespace(
            labels={} if id is None else {labels.NODE: id},
            stop=lambda timeout: self.done.append(f"stop {id} {timeout}"),
            remove=lambda force, v: self.done.append(f"remove {id} {force} {v}"),
        )

    def _networks(self, *, filters: dict[str, str]) -> list[Any]:
        self.done.append(f"networks {filters['label']}")
        return [SimpleNamespace(remove=self._remove_network, attrs={})]

    def _remove_network(self) -> None:
        self.done.append("remove network")
        if self.held:
            raise DockerException("it has active endpoints")

    def _volumes(self, *, filters: dict[str, str]) -> list[Any]:
        self.done.append(f"volumes {filters['label']}")
        return [SimpleNamespace(remove=lambda: self.done.append("remove volume"))]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> EngineDouble:
    """The one engine to which every address leads."""
    double = EngineDouble()

    @contextmanager
    def connected(_where: object) -> Iterator[EngineDouble]:
        yield double

    monkeypatch.setattr("earshot_pulumi.docker.container_address.connect", connected)
    monkeypatch.setattr(preflight, "_image_problems", lambda *_: [])
    monkeypatch.setattr(identity, "remember", lambda *_: None)
    return double


def props(of: TargetStack, **changes: Any) -> dict[str, Any]:
    return {
        **of.to_props(),
        "cluster_id": OWN_ID,
        "deployment": MINE,
        "remove": "unused",
        "state_dir": "",
        **changes,
    }


LABEL = f"earshot.deployment={MINE}"


def test_what_the_plan_has_no_more_is_stopped_on_every_host(engine: EngineDouble) -> None:
    before, now = props(target_stack(hosts=[*HOSTS, OTHER])), props(target_stack(hosts=HOSTS))
    made = Called(EnginePreflightKind()).update(before, now)
    assert made.outs == now | {"absent": []}
    assert engine.done == [f"containers {LABEL} False", "stop 9 60", "stop None 60"] * 3
    engine.done.clear()
    engine.fails = True
    Called(EnginePreflightKind()).update(now, now)
    assert engine.done == [f"containers {LABEL} False"] * 2, "it is only to go more smoothly"


@pytest.mark.parametrize("held", [False, True])
def test_what_an_interrupted_run_has_left_is_removed(engine: EngineDouble, held: bool) -> None:
    engine.held = held
    of_runs = f"{CLUSTER_LABEL}={target_stack().stack}"
    Called(EnginePreflightKind()).delete(props(target_stack()))
    assert engine.done == [
        f"containers {of_runs} True",
        f"networks {of_runs}",
        f"containers {LABEL} True",
        *(f"remove {id} True True" for id in ("1", "9", None)),
        f"networks {LABEL}",
        "remove network",
        f"volumes {LABEL}",
        "remove volume",
    ]


def test_only_the_gate_s_digest_is_no_change(engine: EngineDouble) -> None:
    olds = props(target_stack(), gate="a")
    differs = Called(EnginePreflightKind()).differs
    assert differs(olds, {**olds, "gate": "b", "absent": []}) is False
    assert differs(olds, {**olds, "stack": "t"}) is True
    assert differs(olds, {**olds, "absent": ["local"]}) is True
    assert Called(EnginePreflightKind()).create(olds).id == MINE


def test_a_missing_image_is_pulled_by_the_update_before_anything_is_stopped(
    engine: EngineDouble,
) -> None:
    before, now = props(target_stack(hosts=HOSTS)), props(target_stack(hosts=HOSTS), absent=["b"])
    made = Called(EnginePreflightKind()).update(before, now)
    assert engine.done[0] == "pull apache/kafka:4.1.1"
    assert sum("pull" in it for it in engine.done) == 1
    assert made.outs == now | {"absent": []}
    engine.done.clear()
    engine.registry = NotFound("404", explanation="manifest unknown")
    error = raised(EarshotError, Called(EnginePreflightKind()).update, before, now)
    assert str(error).splitlines() == [
        (
            "image apache/kafka:4.1.1 on Docker host b: is missing, and its engine cannot pull it "
            "(manifest unknown); nothing was changed"
        ),
        (
            "  fix: correct `image` or `kafka_version` in the stack file, let the engine reach the "
            "registry, or log in to it on this machine (docker login); or bring the image over "
            "from elsewhere: docker save "
            "apache/kafka:4.1.1 | docker --host unix:///var/run/docker.sock load"
        ),
    ]
    assert engine.done == ["pull apache/kafka:4.1.1"], "no container was looked at"


def test_the_hosts_without_the_image_are_known_before(
    engine: EngineDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    now = target_stack(hosts=HOSTS)
    assert images.absent(Engines(), now) == []
    engine.images_there.clear()
    assert images.absent(Engines(), now) == ["a", "b"]
    engine.fails = True
    with pytest.raises(EarshotError, match="Docker host a: its engine at tcp://a:1 fails"):
        images.absent(Engines(), now)


def test_all_are_asked_about_what_is_there(
    engine: EngineDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def reported(name: str) -> Any:
        def problems(*given: Any) -> list[str]:
            asked.append((name, given))
            return [name]

        return problems

    monkeypatch.setattr(
        on_engines, "look", lambda _, hosts: EngineObjects() if list(hosts) else None
    )
    monkeypatch.setattr(on_engines, "problems", reported("on_engines"))
    for module, kinds in ((running, ("link", "client")), (volume_data, ("version", "removal"))):
        for kind in kinds:
            monkeypatch.setattr(module, f"{kind}_problems", reported(kind))
    engine.images_there.clear()
    olds, news = props(target_stack(hosts=[*HOSTS, OTHER])), props(target_stack(hosts=HOSTS))
    names = ("on_engines", "link", "client", "version", "removal")
    text = "\n" + "\n".join(f"- {name}" for name in names)
    (failure,) = Called(EnginePreflightKind()).check(olds, news).failures
    assert failure == text
    before, hosts = asked[3][1][3], asked[4][1][3]
    assert before == TargetStack.from_props(olds)
    assert [host.name for host in hosts] == ["a", "b", "c"]
    asked.clear()
    result = Called(EnginePreflightKind()).check({}, props(target_stack(hosts=HOSTS)))
    assert result.inputs is not None and len(result.inputs["deployment"]) == 12
    assert result.inputs["absent"] == ["a", "b"]
    assert asked[3][1][3] is None and len(asked[4][1][3]) == 2
    asked.clear()
    for remove, looked in (("anyway", 0), ("2020-01-01", 0), ("9999-12-31", 1)):
        Called(EnginePreflightKind()).check(olds, {**news, "remove": remove})
        assert [name for name, _ in asked].count("client") == looked
        asked.clear()


def test_a_host_that_is_given_up_need_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def of(_self: Engines, host: Any) -> object:
        if host.name == "c":
            raise EarshotError("Docker host c", observed="does not answer")
        return SimpleNamespace()

    def look(_engines: Engines, hosts: Any) -> EngineObjects:
        looked.extend(host.name for host in hosts)
        return EngineObjects()

    monkeypatch.setattr(Engines, "of", of)
    monkeypatch.setattr(on_engines, "look", look)
    monkeypatch.setattr(images, "absent", lambda *_: [])
    monkeypatch.setattr(preflight, "_image_problems", lambda *_: [])
    olds, news = props(target_stack(hosts=[*HOSTS, OTHER])), props(target_stack(hosts=HOSTS))
    assert not Called(EnginePreflightKind()).check(olds, news).failures
    assert looked == ["a", "b"]
    (failure,) = Called(EnginePreflightKind()).check(news, olds).failures
    assert failure == "\n- Docker host c: does not answer"
