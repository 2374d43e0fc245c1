"""What the component registers: which resources, with which inputs, below and after which."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pulumi
import pytest
from earshot_pulumi.docker import host_resources as module
from earshot_pulumi.docker.brokers import MAX_ASKED_BROKERS, DockerBrokers
from earshot_pulumi.docker.volume_data import TO_BE_MADE
from earshot_pulumi.gate import PROVIDER_TYPE
from pulumi.runtime import mocks

from earshot.config.docker import DockerSpec
from earshot.placement.docker import DockerPlan, plan_docker
from earshot.project import Project
from tests.certificates.handed_over import FILES, hand_over
from tests.components import engine_double
from tests.components.deployments import deployment_of
from tests.components.docker.stacks import OWN_ID, spec_of
from tests.components.plain_inputs import secret_inputs, visible
from tests.doubles import gate_provider
from toolchain.paths import ROOT

CONTAINER = "docker:index/container:Container"
VOLUME = "docker:index/volume:Volume"
NETWORK = "docker:index/network:Network"
IMAGE = "docker:index/remoteImage:RemoteImage"
PROVIDER = "pulumi:providers:docker"
STOP = "earshot:index:DockerStopPreflight"
READY = "earshot:index:DockerReadiness"
PREFLIGHT = "earshot:index:EnginePreflight"
CERTIFICATES = "earshot:index:Certificates"
KEYS = "earshot:index:DockerKeys"
USERS = "earshot:index:DockerUsers"
GATE = "earshot:gate:AdvertisedListeners"

QUORUM = {"mode": "separate", "count": 3}
TWO_HOSTS = [
    {"name": "a", "engine": "tcp://a.lan:2376", "cert_path": "/keys/a", "external": "a.example"},
    {"name": "b", "engine": "ssh://ops@b.lan", "external": "b.example", "internal": "b.lan"},
]
BETWEEN_HOSTS = [
    {"name": "INTERNAL", "port": 19092, "scopes": "internal"},
    {"name": "EXTERNAL", "port": 9092, "scopes": "external"},
]


class _Answers(mocks.Mocks):
    """Outputs as the providers and the pack would give them; in a ``preview`` of a new stack, none
    that is not an input."""

    def __init__(self, preview: bool = False) -> None:
        self.preview = preview

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        outputs = gate_provider.outputs(args)
        if self.preview and args.custom:
            return "", outputs
        if args.typ == IMAGE:
            outputs["imageId"] = "sha256:abc"
        if args.typ == PREFLIGHT:
            outputs |= {"deployment": "made-up", "cluster_id": OWN_ID}
        if args.typ == CERTIFICATES:
            outputs["certificates"] = {name: f"print of {name}" for name in outputs["hosts"]}
            outputs |= {"passwords": {"app": "digest"}, "expires": "2027-01-01"}
        if args.typ == READY:
            outputs["incarnation"] = f"incarnation of {args.name}"
        return f"id of {args.name}", outputs

    def call(self, args: mocks.MockCallArgs) -> Any:
        raise AssertionError(f"nothing is looked up: {args.token}")


class Engine(engine_double.Engine):
    """Takes down every registration, in order."""

    def __init__(self, preview: bool = False) -> None:
        super().__init__(_Answers(preview))

    @property
    def chain(self) -> list[str]:
        """Containers and readinesses, in the order of registration."""
        short = {CONTAINER: "run", READY: "ready"}
        return [f"{short[it.type]} {it.name}" for it in self.seen if it.type in short]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    # hooks are the engine's to call, and no engine is here
    monkeypatch.setattr(module, "clearing", lambda *_: pulumi.ResourceHookBinding())
    engine = Engine()
    mocks.set_mocks(_Answers(), project="earshot", stack="s", preview=False, monitor=engine)
    return engine


def deployed(unsettled: Sequence[int] = (), **settings: Any) -> DockerPlan:
    """Registers the cluster of these settings; its plan."""
    spec = spec_of(**settings)
    planned = plan_docker(spec, "s")

    def run() -> pulumi.Output[str]:
        return DockerBrokers(deployment_of("s"), spec, planned, unsettled=unsettled).ready.urn

    pulumi.runtime.test(run)()  # type: ignore[no-untyped-call]
    return planned


def test_containers_get_what_the_gate_was_shown(engine: Engine) -> None:
    planned = deployed()
    on_gate = engine.of(GATE)["s"].inputs["containers"]
    for id, container in planned.containers.items():
        inputs = engine.of(CONTAINER)[f"broker-{id}"].inputs
        assert container.inputs(TO_BE_MADE) == on_gate[str(id)], "all but the cluster's id"
        checked = container.inputs(OWN_ID)
        assert (inputs["image"], checked.pop("image")) == ("sha256:abc", "apache/kafka:4.1.1")
        assert sorted(checked.pop("envs")) == inputs["envs"]
        assert checked == {key: inputs[key] for key in checked}


def test_the_first_preview_shows_the_gate_all_but_the_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "clearing", lambda *_: pulumi.ResourceHookBinding())
    engine = Engine(preview=True)
    mocks.set_mocks(_Answers(True), project="earshot", stack="s", preview=True, monitor=engine)
    planned = deployed()
    on_gate = engine.of(GATE)["s"].inputs
    assert on_gate["containers"] == {
        str(id): container.inputs(TO_BE_MADE) for id, container in planned.containers.items()
    }
    checked = engine.of(PROVIDER_TYPE)["s"].inputs
    assert {key: checked[key] for key in on_gate} == on_gate
    assert pulumi.contains_unknowns(engine.of(CONTAINER)["broker-1"].inputs["envs"])


def test_settings_are_secrets_wherever_pulumi_keeps_them(engine: Engine) -> None:
    deployed(extra={"num.io.threads": "4"})
    (on_gate,), (on_engines,) = engine.of(GATE).values(), engine.of(PREFLIGHT).values()
    assert secret_inputs(on_gate.request) == {"plan", "containers"}
    assert secret_inputs(on_engines.request) == {"plan"}
    for resource in engine.of(CONTAINER).values():
        assert secret_inputs(resource.request) == {"envs"}
    for resource in engine.of(STOP).values():
        assert secret_inputs(resource.request) == {"settings"}
    for text in ("num.io.threads", "NUM_IO_THREADS"):
        assert [resource.urn for resource in engine.seen if text in visible(resource.request)] == []


def test_nothing_is_made_before_the_gate_and_the_ground(engine: Engine) -> None:
    deployed()
    (on_engines,) = engine.of(PREFLIGHT).values()
    (checked,) = engine.of(GATE).values()
    assert on_engines.inputs["gate"] == gate_provider.APPROVED
    made = [resource for resource in engine.seen if resource.type.startswith(("docker:", PROVIDER))]
    assert len(made) == 9, "provider, network, image; three volumes and containers"
    assert all(resource.is_below(checked) for resource in [*made, on_engines])
    assert all(resource.depends_on(on_engines) for resource in made if resource.type != CONTAINER)
    assert engine.of(CONTAINER)["broker-1"].depends_on(on_engines)


def test_one_node_after_the_other_then_the_whole(engine: Engine) -> None:
    deployed()
    assert engine.chain == [
        "run broker-1", "ready broker-1", "run broker-2", "ready broker-2",
        "run broker-3", "ready broker-3", "ready cluster",
    ]  # fmt: skip
    containers, ready, stops = engine.of(CONTAINER), engine.of(READY), engine.of(STOP)
    assert containers["broker-2"].depends_on(stops["broker-2"])
    assert stops["broker-2"].depends_on(ready["broker-1"])
    assert containers["broker-2"].depends_on(ready["broker-1"])
    assert containers["broker-3"].depends_on(ready["broker-2"])
    assert ready["cluster"].depends_on(ready["broker-3"])
    assert all(resource.request.deleteBeforeReplace for resource in containers.values())
    whole = ready["cluster"].inputs
    assert whole["whole"] and [node["container"] for node in whole["nodes"]] == [
        f"id of broker-{id}" for id in (1, 2, 3)
    ]
    assert whole["incarnations"] == {str(id): f"incarnation of broker-{id}" for id in (1, 2, 3)}


def test_what_has_ended_comes_first(engine: Engine) -> None:
    deployed(unsettled=[3])
    assert [resource.name for resource in engine.seen if resource.type == CONTAINER] == [
        "broker-3", "broker-1", "broker-2",
    ]  # fmt: skip
    assert engine.of(STOP)["broker-1"].depends_on(engine.of(READY)["broker-3"])
    assert engine.of(READY)["cluster"].depends_on(engine.of(READY)["broker-2"])


def test_other_settings_of_a_container_are_a_reason_to_look_before_it_is_stopped(
    engine: Engine,
) -> None:
    deployed(brokers=1)
    first = engine.of(STOP)["broker-1"].inputs["settings"]
    published = [
        {"name": "INTERNAL", "port": 19092, "scopes": "internal"},
        {"name": "HOST", "port": 9092, "scopes": "host", "published": {1: 19999}},
    ]
    changes: list[tuple[dict[str, Any], bool]] = [
        ({}, True),
        ({"heap": "264m"}, False),
        ({"dns": ["192.0.2.1"]}, False),
        ({"listeners": published}, False),
    ]
    for change, same in changes:
        deployed(brokers=1, **change)
        assert (engine.of(STOP)["broker-1"].inputs["settings"] == first) is same


def test_few_brokers_are_asked_about_one_node_and_all_about_the_cluster(engine: Engine) -> None:
    deployed(brokers=MAX_ASKED_BROKERS + 2)
    counts = {name: len(resource.inputs["tellers"]) for name, resource in engine.of(READY).items()}
    assert counts.pop("cluster") == MAX_ASKED_BROKERS + 2
    assert set(counts.values()) == {MAX_ASKED_BROKERS}


def test_containers_are_made_by_the_provider_of_their_host(engine: Engine) -> None:
    """What each host has is in test_registrations."""
    deployed(hosts=TWO_HOSTS, listeners=BETWEEN_HOSTS)
    used = {name: resource.request.provider for name, resource in engine.of(CONTAINER).items()}
    for name, host in (("broker-1", "a"), ("broker-2", "b"), ("broker-3", "a")):
        assert engine.of(PROVIDER)[host].urn in used[name]


def test_listeners_with_tls_are_waited_for_as_far_as_one_can(engine: Engine) -> None:
    secret = [
        {"name": "INTERNAL", "port": 19092, "scopes": "internal", "protocol": "SSL"},
        {"name": "HOST", "port": 9092, "scopes": "host", "protocol": "SSL"},
    ]
    deployed(brokers=1, listeners=secret)
    inputs = engine.of(READY)["broker-1"].inputs
    assert inputs["tellers"] == []
    assert inputs["nodes"][0]["place"]["door"]["plaintext"] is False
    check = engine.of(CONTAINER)["broker-1"].inputs["healthcheck"]["tests"]
    assert check[-1] == "exec 3<>/dev/tcp/127.0.0.1/19092"


def test_without_a_gate_it_says_so_and_goes_on(engine: Engine) -> None:
    deployed(gate="off")
    assert engine.of(PROVIDER_TYPE) == {}
    assert engine.of(PREFLIGHT)["s"].inputs["gate"] == "off"
    assert len(engine.of(CONTAINER)) == 3


def test_the_template_is_deployed_as_it_stands(engine: Engine) -> None:
    spec = Project(ROOT).read_cluster("docker")
    assert isinstance(spec, DockerSpec)
    assert [listener.name for listener in spec.listeners] == ["INTERNAL", "HOST", "EXTERNAL"]
    deployed(**spec.model_dump(exclude={"placement"}, exclude_unset=True))
    assert list(engine.of(CONTAINER)) == ["broker-1", "broker-2", "broker-3"]


SECURITY = {"users": [{"name": "app", "prefixes": ["app-"]}]}


def test_keys_are_those_of_each_node_and_users_log_in_to_each_broker(engine: Engine) -> None:
    """A cluster of one broker has all its inputs in test_registrations."""
    deployed(brokers=2, security=SECURITY)
    for id in (1, 2):
        container, keys = engine.of(CONTAINER)[f"broker-{id}"], engine.of(KEYS)[f"broker-{id}"]
        assert container.depends_on(keys)
        own = (keys.inputs["store"], keys.inputs["certificate"])
        assert own == (f"node-{id}", f"print of node-{id}")
        mounted = [volume["volumeName"] for volume in container.inputs["volumes"]]
        assert mounted == [f"earshot-s-kafka-{id}", f"earshot-s-kafka-{id}_keys"]
        assert keys.inputs["volume"] == mounted[1]
    (users,) = engine.of(USERS).values()
    assert users.inputs["brokers"] == {"1": "kafka-1:19092", "2": "kafka-2:19092"}
    assert {(it["broker"], it["listener"], it["address"]) for it in users.inputs["logins"]} == {
        (id, name, f"kafka-{id}:{port}")
        for id in (1, 2)
        for name, port in (("HOST", 9092), ("EXTERNAL", 39092))
    }


def test_certificates_of_others_are_shown_to_the_gate(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: earshot\n")
    monkeypatch.chdir(tmp_path)
    hand_over(tmp_path / "certs", {1: ["kafka-1", "localhost"]})
    deployed(brokers=1, security={"tls": {"from": FILES}})
    on_gate, made = engine.of(GATE)["s"].inputs["certificates"], engine.of(CERTIFICATES)["s"].inputs
    assert list(on_gate) == ["1"] and on_gate["1"]["names"] == {
        "dns": ["kafka-1", "localhost"], "addresses": [],
    }  # fmt: skip
    assert made["files"]["certificate"] == f"{tmp_path}/certs/{{node}}.pem"


@pytest.mark.parametrize(("security", "warnings"), [(SECURITY, 1), (None, 0)])
def test_keys_on_their_way_in_clear_are_named(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, security: object, warnings: int
) -> None:
    warned: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, _resource: warned.append(text))
    deployed(brokers=1, hosts=[{"engine": "tcp://a:2375"}], security=security)
    text = (
        "keys and passwords reach the engine at tcp://a:2375 in clear text: use TLS "
        "(`hosts[].cert_path`), or an address that begins with ssh://"
    )
    assert warned == warnings * [text]
