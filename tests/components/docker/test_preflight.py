"""The preflight: its checks of the engines, and of ports and settings in a container."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import DockerException, ImageNotFound, NotFound
from earshot_pulumi.docker import (
    engine_objects,
    host_ports,
    images,
    labels,
    preflight,
    running,
    throwaway,
    volume_data,
)
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.engine_objects import EngineObjects, TargetStack
from earshot_pulumi.docker.preflight import EnginePreflightKind
from earshot_pulumi.docker.throwaway import CommandFailed

from earshot.errors import EarshotError
from earshot.remote.leftovers import CLUSTER_LABEL
from earshot.topology.container import PublishedPort
from tests.components.called import Called
from tests.components.docker.conftest import Connect
from tests.components.docker.stacks import MINE, OWN_ID, container, target_stack
from tests.raised import raised

HOSTS = [
    {"name": "a", "engine": "tcp://a:1", "external": "a"},
    {"name": "b", "engine": "tcp://b:1", "external": "b"},
]
THIRD = {"name": "c", "engine": "tcp://c:1", "external": "c"}
IMAGE = "apache/kafka:4.1.1"
PUBLISHED_ONCE = [
    {"name": "INTERNAL", "port": 19092, "scopes": "internal"},
    {"name": "HOST", "port": 9092, "scopes": "host"},
]
KIND = Called(EnginePreflightKind())


def props(target: TargetStack, **changes: Any) -> dict[str, Any]:
    own = {"cluster_id": OWN_ID, "deployment": MINE, "remove": "unused", "state_dir": "/s"}
    return {**target.to_props(), **own, **changes}


class Containers:
    """A double of the containers in which the preflight asks for ports and settings."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.settings: list[tuple[str, str, list[int]]] = []
        self.ports: dict[str, list[int | None]] = {}
        self.objects = EngineObjects()
        self.refusals: dict[int, str] = {}
        self.holders: dict[int, str] = {}
        self.silent = False
        self.absent: list[str] = []
        """Hosts without the image."""
        monkeypatch.setattr(Engines, "of", lambda _, host: _engine(host.name))
        monkeypatch.setattr(engine_objects, "look", lambda _engines, _hosts: self.objects)
        monkeypatch.setattr(engine_objects, "problems", lambda *_: ())
        monkeypatch.setattr(running, "running", lambda *_: ())
        monkeypatch.setattr(images, "absent", lambda *_: self.absent)
        monkeypatch.setattr(images, "pull", lambda *_: None)
        monkeypatch.setattr(preflight, "refusals", self._refusals)
        monkeypatch.setattr(host_ports, "holders", self._holders)

    def _refusals(self, client: Any, image: str, properties: Mapping[int, str]) -> dict[int, str]:
        if self.silent:
            raise CommandFailed("a container of the image i", observed="it has no Java")
        self.settings.append((client.name, image, sorted(properties)))
        return {id: text for id, text in self.refusals.items() if id in properties}

    def _holders(
        self, client: Any, _host: Any, image: str | None, ports: Sequence[PublishedPort], _: Any
    ) -> dict[PublishedPort, str]:
        if image is None or self.silent:
            raise CommandFailed(
                "its ports", observed="it has no image yet in which they could be listed"
            )
        self.ports[client.name] = [port.host_port for port in ports]
        return {
            port: self.holders[port.host_port or 0]
            for port in ports
            if port.host_port in self.holders
        }


def _engine(name: str) -> Any:
    """An engine without containers of this deployment."""
    nothing = SimpleNamespace(list=lambda **_: [])
    return SimpleNamespace(name=name, containers=nothing, networks=nothing)


@pytest.fixture
def containers(monkeypatch: pytest.MonkeyPatch) -> Containers:
    return Containers(monkeypatch)


def problems(olds: dict[str, Any], news: dict[str, Any]) -> str:
    return "".join(KIND.check(olds, news).failures)


def test_a_refusal_of_kafka_is_reported_once_with_the_nodes(containers: Containers) -> None:
    containers.refusals = dict.fromkeys(
        (1, 2, 3), "Invalid value abc for configuration num.io.threads"
    )
    assert problems({}, props(target_stack())) == (
        "\n- Kafka 4.1.1 refuses the settings of node 1, 2, 3: "
        "Invalid value abc for configuration num.io.threads. Correct them in "
        "the stack file or in the component's inputs"
    )


def test_every_host_checks_the_settings_of_its_own_nodes(containers: Containers) -> None:
    two = target_stack(hosts=HOSTS)
    assert problems({}, props(two)) == ""
    assert sorted(containers.settings) == [("a", IMAGE, [1, 3]), ("b", IMAGE, [2])]


def test_only_changed_settings_are_checked(containers: Containers) -> None:
    current = props(target_stack())
    problems(current, current)
    assert containers.settings == []
    problems(current, props(target_stack(extra={"num.io.threads": "9"})))
    problems(current, props(target_stack(image="mirror.lan/kafka:4.1.1")))
    problems(current, props(target_stack(heap="1g")))
    assert [(image, ids) for _, image, ids in containers.settings] == [
        (IMAGE, [1, 2, 3]),
        ("mirror.lan/kafka:4.1.1", [1, 2, 3]),
    ]


def test_a_missing_image_is_used_once_the_update_has_pulled_it(
    containers: Containers, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    containers.refusals, containers.absent = {2: "no"}, ["b"]
    news = props(target_stack(hosts=HOSTS)) | {"state_dir": str(tmp_path)}
    checked = KIND.check({}, news)
    assert checked.failures == []
    assert containers.settings == [("a", IMAGE, [1, 3])]
    assert capsys.readouterr().out == ""
    assert str(raised(EarshotError, KIND.create, checked.inputs)) == (
        "nothing was changed:\n- Kafka 4.1.1 refuses the settings of node 2: no. Correct them in "
        "the stack file or in the component's inputs"
    )
    containers.refusals.clear()
    assert KIND.create(checked.inputs).outs["absent"] == []
    assert containers.settings[1:] == [("b", IMAGE, [2])] * 2


def test_a_port_that_a_process_holds_is_reported(containers: Containers) -> None:
    target = target_stack(brokers=1, listeners=PUBLISHED_ONCE)
    (port,) = target.containers[1].ports
    assert port.host_port is not None
    containers.holders = {port.host_port: "pid 7 (nginx)"}
    assert problems({}, props(target)) == (
        f"\n- port {port.host_port} of Docker host local, for node 1, is taken by pid 7 (nginx), "
        "which is not a container. Free the port, or choose another `port` (or `published`) for "
        "the listener"
    )


def test_ports_that_a_node_s_own_container_publishes_are_not_checked(
    containers: Containers,
) -> None:
    target = target_stack(brokers=2, listeners=PUBLISHED_ONCE)
    (port,) = target.containers[2].ports
    containers.objects = EngineObjects(
        (container(target, 1), replace(container(target, 2), ports=()))
    )
    problems({}, props(target))
    assert containers.ports == {"local": [port.host_port]}
    containers.objects, containers.ports = (
        EngineObjects((container(target, 1), container(target, 2))),
        {},
    )
    problems({}, props(target))
    assert containers.ports == {}


def test_a_check_that_cannot_be_made_is_reported_and_stops_nothing(
    containers: Containers, capsys: pytest.CaptureFixture[str]
) -> None:
    containers.silent = True
    assert problems({}, props(target_stack())) == ""
    assert capsys.readouterr().out == (
        "Docker host local: ports were not checked: it has no image yet in which they could be "
        "listed\n"
        "Docker host local: Kafka has not checked the settings: it has no Java\n"
    )


def test_kafka_reads_the_settings_of_the_last_step_before_the_first(containers: Containers) -> None:
    step, last = target_stack(brokers=2), target_stack(brokers=3, extra={"num.io.threads": "abc"})
    news = props(step) | {"last": last.plan.model_dump(mode="json")}
    assert problems(news, news) == ""
    assert [ids for _, _, ids in containers.settings] == [[1, 2]], "the third has no container yet"
    containers.refusals = {1: "Invalid value abc for configuration num.io.threads"}
    assert "refuses the settings of node 1: Invalid value abc" in problems(news, news)


class EngineDouble:
    """Records the calls for its containers, networks, volumes and images."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fails = False
        self.network_in_use = False
        self.containers = SimpleNamespace(list=self._containers)
        self.networks = SimpleNamespace(list=self._networks)
        self.volumes = SimpleNamespace(list=self._volumes)
        self.image_names = {"apache/kafka:4.1.1"}
        self.registry: Exception | None = None
        """Why nothing can be pulled."""
        self.images = SimpleNamespace(pull=self._pull)
        self.api = SimpleNamespace(inspect_image=self._inspect_image)

    def _pull(self, image: str) -> None:
        self.calls.append(f"pull {image}")
        if self.registry:
            raise self.registry

    def _inspect_image(self, image: str) -> None:
        if self.fails:
            raise DockerException("stopped")
        if image not in self.image_names:
            raise ImageNotFound(image)

    def _containers(
        self, *, filters: dict[str, str], all: bool = False, ignore_removed: bool = False
    ) -> list[Any]:
        self.calls.append(f"containers {filters['label']} {all}")
        if self.fails:
            raise DockerException("stopped")
        return [self._container(id) for id in ("1", "9", None)]

    def _container(self, id: str | None) -> Any:
        own = {labels.DEPLOYMENT: MINE if id else "other"} | ({labels.NODE: id} if id else {})
        return SimpleNamespace(
            labels=own,
            attrs={"Config": {"Labels": own}},
            stop=lambda timeout: self.calls.append(f"stop {id} {timeout}"),
            remove=lambda force, v: self.calls.append(f"remove {id} {force} {v}"),
        )

    def _networks(self, *, filters: dict[str, str]) -> list[Any]:
        self.calls.append(f"networks {filters['label']}")
        own = {"Labels": {labels.DEPLOYMENT: MINE}}
        return [
            SimpleNamespace(remove=self._remove_network, attrs=own),
            SimpleNamespace(remove=lambda: self.calls.append("remove their network"), attrs={}),
        ]

    def _remove_network(self) -> None:
        self.calls.append("remove network")
        if self.network_in_use:
            raise DockerException("it has active endpoints")

    def _volumes(self, *, filters: dict[str, str]) -> list[Any]:
        self.calls.append(f"volumes {filters['label']}")
        return [
            SimpleNamespace(
                remove=lambda owner=owner: self.calls.append(f"remove volume of {owner}"),
                attrs={"Labels": {labels.DEPLOYMENT: owner}},
            )
            for owner in (MINE, "another")
        ]


@pytest.fixture
def engine(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> EngineDouble:
    """The one engine to which every address leads."""
    double = EngineDouble()
    connect(double)
    monkeypatch.setattr(preflight, "_image_problems", lambda *_: [])
    monkeypatch.setattr(volume_data, "remember_id", lambda *_: None)
    return double


LABEL = f"earshot.deployment={MINE}"


def leftovers_listed(cluster: str) -> list[str]:
    """The calls that look for what killed processes have left of ``cluster``."""
    return [f"containers {CLUSTER_LABEL}={cluster} True", f"networks {CLUSTER_LABEL}={cluster}"]


THROWAWAYS = leftovers_listed(labels.THROWAWAY)


def test_nodes_that_the_plan_no_longer_has_are_stopped_on_every_host(engine: EngineDouble) -> None:
    before, news = props(target_stack(hosts=[*HOSTS, THIRD])), props(target_stack(hosts=HOSTS))
    outcome = KIND.update(before, news)
    assert outcome.outs == news | {"absent": []}
    assert engine.calls == [*THROWAWAYS, f"containers {LABEL} False", "stop 9 60"] * 3
    engine.calls.clear()
    engine.fails = True
    KIND.update(news, news)
    calls = [THROWAWAYS[0], f"containers {LABEL} False"]
    assert engine.calls == calls * 2, "a failure of it stops nothing"


@pytest.mark.parametrize("in_use", [False, True])
def test_leftovers_of_an_interrupted_run_are_removed(engine: EngineDouble, in_use: bool) -> None:
    """The engine ignores filters, and lists objects of others, too."""
    engine.network_in_use = in_use
    KIND.delete(props(target_stack()))
    assert engine.calls == [
        *leftovers_listed(target_stack().stack),
        *THROWAWAYS,
        f"containers {LABEL} True",
        *(f"remove {id} True True" for id in ("1", "9")),
        f"networks {LABEL}",
        "remove network",
        f"volumes {LABEL}",
        f"remove volume of {MINE}",
    ]


def test_only_the_gate_s_digest_is_no_change(engine: EngineDouble) -> None:
    olds = props(target_stack(), gate="a")
    differs = KIND.differs
    assert differs(olds, {**olds, "gate": "b", "absent": []}) is False
    assert differs(olds, {**olds, "stack": "t"}) is True
    assert differs(olds, {**olds, "absent": ["local"]}) is True
    assert KIND.create(olds).id == MINE


def test_a_missing_image_is_pulled_by_the_update_before_anything_is_stopped(
    engine: EngineDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    target = target_stack(hosts=[HOSTS[0], {"name": "b", "external": "b"}])
    before, news = props(target), props(target, absent=["b"])
    outcome = KIND.update(before, news)
    assert engine.calls[0] == "pull apache/kafka:4.1.1"
    assert sum("pull" in call for call in engine.calls) == 1
    assert outcome.outs == news | {"absent": []}
    engine.calls.clear()
    engine.registry = NotFound("404", explanation="manifest unknown")
    error = raised(EarshotError, KIND.update, before, news)
    assert str(error).splitlines() == [
        ("image apache/kafka:4.1.1 on Docker host b: is missing, and its engine cannot pull it "
         "(manifest unknown); nothing was changed"),
        ("  fix: correct `image` or `kafka_version` in the stack file, let the engine reach the "
         "registry, or log in to it on this machine (docker login); or copy the image from "
         "another engine: docker save "
         "apache/kafka:4.1.1 | docker --host unix:///var/run/docker.sock load"),
    ]  # fmt: skip
    assert engine.calls == ["pull apache/kafka:4.1.1"], "no container was looked at"


def test_the_hosts_without_the_image_are_known_before(engine: EngineDouble) -> None:
    target = target_stack(hosts=HOSTS)
    assert images.absent(Engines(), target) == []
    engine.image_names.clear()
    assert images.absent(Engines(), target) == ["a", "b"]
    engine.fails = True
    with pytest.raises(EarshotError, match="Docker host a: its engine at tcp://a:1 fails"):
        images.absent(Engines(), target)


def test_every_check_gets_the_objects_on_the_engines(
    engine: EngineDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks: list[Any] = []

    def reported(name: str) -> Any:
        def problems(*arguments: Any) -> list[str]:
            checks.append((name, arguments))
            return [name]

        return problems

    monkeypatch.setattr(
        engine_objects, "look", lambda _, hosts: EngineObjects() if list(hosts) else None
    )
    monkeypatch.setattr(engine_objects, "problems", reported("on_engines"))
    for module, kinds in ((running, ("link", "client")), (volume_data, ("version", "data"))):
        for kind in kinds:
            monkeypatch.setattr(module, f"{kind}_problems", reported(kind))
    engine.image_names.clear()
    olds, news = (
        props(target_stack(hosts=hosts), remove="unused") for hosts in ([*HOSTS, THIRD], HOSTS)
    )
    names = ("on_engines", "link", "client", "version", "data")
    text = "\n" + "\n".join(f"- {name}" for name in names)
    (failure,) = KIND.check(olds, news).failures
    assert failure == text
    before, hosts = checks[3][1][3], checks[4][1][3]
    assert before == TargetStack.from_props(olds)
    assert [host.name for host in hosts] == ["a", "b", "c"]
    checks.clear()
    result = KIND.check({}, props(target_stack(hosts=HOSTS)))
    assert result.inputs is not None and len(result.inputs["deployment"]) == 12
    assert result.inputs["absent"] == ["a", "b"]
    assert checks[3][1][3] is None and len(checks[4][1][3]) == 2
    for remove, blocks in (("anyway", False), ("2020-01-01", False), ("9999-12-31", True)):
        (failure,) = KIND.check(olds, {**news, "remove": remove}).failures
        assert ("- client" in failure) is blocks


def test_a_removed_host_need_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def of(_self: Engines, host: Any) -> object:
        if host.name == "c":
            raise EarshotError("Docker host c", observed="does not answer")
        return SimpleNamespace()

    def look(_engines: Engines, hosts: Any) -> EngineObjects:
        asked.extend(host.name for host in hosts)
        return EngineObjects()

    monkeypatch.setattr(Engines, "of", of)
    monkeypatch.setattr(engine_objects, "look", look)
    monkeypatch.setattr(images, "absent", lambda *_: [])
    monkeypatch.setattr(preflight, "_image_problems", lambda *_: [])
    olds, news = props(target_stack(hosts=[*HOSTS, THIRD])), props(target_stack(hosts=HOSTS))
    assert not KIND.check(olds, news).failures
    assert asked == ["a", "b"]
    (failure,) = KIND.check(news, olds).failures
    assert failure == "\n- Docker host c: does not answer"


CLIENT: Any = None
JAVA = """\
#!/bin/sh
for last; do :; done
! grep -q refused "$last" ||
    echo "org.apache.kafka.common.config.ConfigException: $(cat "$last")" >&2
"""


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The variables that an image itself has; what is asked of it runs on this machine."""
    (tmp_path / "libs").mkdir()
    (tmp_path / "java").write_text(JAVA)
    (tmp_path / "java").chmod(0o755)
    variables = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "TMPDIR": str(tmp_path)}

    def ask(
        _client: object, _image: str, command: list[str], environment: Mapping[str, str]
    ) -> str:
        *words, script = command
        script = script.replace("/opt/kafka/", f"{tmp_path}/")
        return subprocess.run(
            [*words, script],
            env=variables | dict(environment),
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    monkeypatch.setattr(throwaway, "ask", ask)
    return variables


def test_each_node_s_refusal_is_told_by_its_id(image: dict[str, str]) -> None:
    settings = {1: "a=1\n", 2: "refused=2\n", 10: "refused=10\n", 101: "b=1\n", 3: "c=1\n"}
    assert preflight.refusals(CLIENT, "i", settings) == {2: "refused=2", 10: "refused=10"}


@pytest.mark.parametrize("archives", [["storage.jsa"], ["kafka.jsa"], ["kafka.jsa", "storage.jsa"]])
def test_java_starts_with_the_archive_of_classes_that_the_image_has(
    image: dict[str, str], tmp_path: Path, archives: list[str]
) -> None:
    for name in archives:
        (tmp_path / name).touch()
    assert f"-XX:SharedArchiveFile={tmp_path / archives[-1]} " in started_with(tmp_path)


def test_without_an_archive_java_gets_no_option_that_an_old_one_does_not_know(
    image: dict[str, str], tmp_path: Path
) -> None:
    words = started_with(tmp_path).split()
    assert [word for word in words if word.startswith("-X")] == [
        "-Xmx96m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
    ]


def started_with(folder: Path) -> str:
    """The words that Java gets."""
    (folder / "java").write_text(f'#!/bin/sh\necho "$@" >{folder}/words\n')
    assert preflight.refusals(CLIENT, "i", {1: "a=1\n"}) == {}
    return (folder / "words").read_text()


def test_the_image_s_own_variables_are_no_settings(image: dict[str, str]) -> None:
    image |= {"NODE_ID": "refused", "NODE_VERSION": "refused", "NODE_9": "refused"}
    assert preflight.refusals(CLIENT, "i", {1: "a=1\n"}) == {}
