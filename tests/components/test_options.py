"""Pulumi's options on clusters and networks: what is registered for each."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pulumi_docker as docker
import pytest
from earshot_pulumi import AwsCluster, AwsNetwork, DockerCluster, LocalCluster
from earshot_pulumi.aws_settings import SETTINGS
from earshot_pulumi.docker import host_resources
from pulumi.runtime import mocks
from pulumi_aws import Provider as AwsProvider
from pulumi_aws import ProviderAssumeRoleArgs

from tests.components.aws.registered import Answers
from tests.components.docker import test_brokers as on_docker
from tests.components.engine_double import Engine, Registered
from tests.components.plain_inputs import secret_inputs
from tests.config.aws_documents import ARCHIVE, REGION, ZONES
from tests.raised import raised

ENGINE = "tcp://engine.example:2376"
OWN = "pulumi:providers:docker::own"
CLUSTER: Any = {"region": REGION, "vpc": {"zones": ZONES}, "archive": ARCHIVE}
NETWORK: Any = {"zones": ZONES, "deletion_protection": False}
LISTENERS = [
    {"name": "INTERNAL", "port": 19000, "scopes": ["internal"]},
    {"name": "HOST", "port": 19010, "scopes": ["host"]},
]
LOCAL: Any = {"brokers": 1, "listeners": LISTENERS, "controllers": {"port": 19020}}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: program\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr(host_resources, "clearing", lambda *_: None)  # mocks run no hooks


class Everywhere(Answers):
    """Outputs of all placements' resources."""

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        id, outputs = super().new_resource(args)
        if not self.preview:
            outputs |= on_docker._Answers().new_resource(args)[1]
            if args.typ == "earshot:index:LocalPreflight":
                outputs["cluster_id"] = "id"
            if args.typ == "earshot:index:LocalNode":
                outputs["incarnation"] = args.name
        return id, outputs


def run(program: Callable[[], Any], answers: Answers | None = None) -> Engine:
    """Every registration of ``program``."""
    answers = answers or Everywhere()
    engine = Engine(answers)
    mocks.set_mocks(answers, "program", "stack", answers.preview, monitor=engine)

    def settled() -> Any:
        made = program()
        return pulumi.Output.all(*[it.proof for it in made]) if isinstance(made, list) else made

    pulumi.runtime.test(settled)()  # type: ignore[no-untyped-call]
    return engine


def of_docker(engine: Engine) -> list[Registered]:
    return [it for it in engine.seen if it.type.startswith("docker:")]


def test_a_docker_provider_of_the_program_makes_everything_on_its_engine() -> None:
    def program() -> list[DockerCluster]:
        own = docker.Provider("own", host=ENGINE, cert_path="/keys")
        opts = pulumi.ResourceOptions(provider=own)
        return [DockerCluster("kafka", {"brokers": 1}, opts)]

    engine = run(program)
    assert of_docker(engine)
    assert all(OWN in it.request.provider for it in of_docker(engine))
    assert list(engine.of("pulumi:providers:docker")) == ["own"]
    host = engine.one(on_docker.PREFLIGHT).inputs["hosts"][0]
    assert (host["engine"], host["cert_path"]) == (ENGINE, "/keys")
    ready = engine.of(on_docker.READY).values()
    places = [node["place"] for it in ready for node in it.inputs["nodes"]]
    assert {(it["engine"], it["cert_path"]) for it in places} == {(ENGINE, "/keys")}


def test_a_cluster_has_the_providers_of_its_parent() -> None:
    def program() -> list[DockerCluster]:
        own = docker.Provider("own", host=ENGINE)
        parent = pulumi.ComponentResource(
            "shop:index:Shop", "shop", opts=pulumi.ResourceOptions(providers=[own])
        )
        opts = pulumi.ResourceOptions(parent=parent)
        return [DockerCluster("kafka", {"brokers": 1}, opts)]

    engine = run(program)
    assert all(OWN in it.request.provider for it in of_docker(engine))
    assert engine.one("earshot:index:DockerCluster").is_below(engine.one("shop:index:Shop"))


TWO = [{"name": "a", "engine": "tcp://a:1"}, {"name": "b", "engine": "tcp://b:1"}]


@pytest.mark.parametrize(
    ("provider", "inputs", "message"),
    [
        ({"host": ENGINE}, {"hosts": TWO}, "provider: found a docker.Provider, which has one eng"),
        ({"host": ENGINE}, {"hosts": [TWO[0]]}, "hosts[0].engine: found tcp://a:1, and the docker"),
        (
            {"host": ENGINE, "key_material": "s3cr3t"},
            {},
            "provider: found keyMaterial in the docker",
        ),
        ({"context": "far"}, {}, "provider: found context in the docker.Provider, which earshot's"),
    ],
)
def test_a_docker_provider_that_earshot_cannot_follow_is_refused(
    provider: dict[str, Any], inputs: Any, message: str
) -> None:
    def program() -> list[DockerCluster]:
        own = docker.Provider("own", **provider)
        opts = pulumi.ResourceOptions(provider=own)
        whole: Any = {"brokers": 1, **inputs}
        return [DockerCluster("kafka", whole, opts)]

    error = raised(pulumi.RunError, run, program)
    assert str(error).startswith(message)
    assert "s3cr3t" not in str(error)


SETTINGS_OF_OWN: Any = {
    "region": REGION,
    "access_key": "AKIA",
    "secret_key": "s3cr3t",
    "endpoints": [{"ssm": "http://127.0.0.1:9"}],
}


def test_earshot_calls_aws_with_the_settings_of_the_program_s_provider() -> None:
    def program() -> list[AwsCluster]:
        own = AwsProvider("own", **SETTINGS_OF_OWN)
        opts = pulumi.ResourceOptions(provider=own)
        return [AwsCluster("kafka", CLUSTER, opts)]

    engine = run(program)
    made = [it for it in engine.seen if it.type.startswith("aws:")]
    assert made and all("aws::own" in it.request.provider for it in made)
    asking = [it for it in engine.seen if SETTINGS in it.inputs]
    assert {it.type.rpartition(":")[2] for it in asking} >= {"ChangePreflight", "AwsReadiness"}
    for it in asking:
        settings = it.inputs[SETTINGS]
        assert settings["aws:secretKey"] == "s3cr3t"
        assert "127.0.0.1:9" in settings["aws:endpoints"]
        assert secret_inputs(it.request) >= {SETTINGS}


def test_settings_of_a_provider_that_earshot_has_not_are_refused() -> None:
    def program() -> list[AwsCluster]:
        roles = [ProviderAssumeRoleArgs(role_arn="arn:aws:iam::1:role/x")]
        own = AwsProvider("own", region=REGION, assume_roles=roles)
        return [AwsCluster("kafka", CLUSTER, pulumi.ResourceOptions(provider=own))]

    with pytest.raises(pulumi.RunError, match="provider: found assumeRoles"):
        run(program)


@pytest.mark.parametrize("kind", [AwsCluster, AwsNetwork])
def test_a_provider_of_another_region_is_refused_before_anything_is_registered(kind: Any) -> None:
    def program() -> Any:
        own = AwsProvider("own", region="us-east-1")
        inputs = CLUSTER if kind is AwsCluster else NETWORK
        made = kind("x", inputs, pulumi.ResourceOptions(provider=own))
        return [made] if kind is AwsCluster else made.vpc_id

    answers = Everywhere(region="us-east-1")
    error = raised(pulumi.RunError, run, program, answers)
    assert f"region: {REGION}: the AWS provider works in us-east-1" in str(error)


def test_a_network_is_made_with_the_program_s_provider() -> None:
    def program() -> Any:
        own = AwsProvider("own", region=REGION)
        return AwsNetwork("net", NETWORK, pulumi.ResourceOptions(provider=own)).vpc_id

    engine = run(program)
    made = [it for it in engine.seen if it.type.startswith("aws:")]
    assert made and all("aws::own" in it.request.provider for it in made)


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [(LocalCluster, LOCAL), (DockerCluster, {"brokers": 1}), (AwsCluster, CLUSTER)],
)
def test_protect_reaches_every_resource_of_a_cluster(kind: Any, inputs: Any) -> None:
    if kind is AwsCluster:
        inputs = {**inputs, "deletion_protection": False}
    engine = run(lambda: [kind("kafka", inputs, pulumi.ResourceOptions(protect=True))])
    own = [it for it in engine.seen if it.type != "pulumi:pulumi:Stack"]
    assert len(own) > 5 and all(it.request.protect for it in own)


def test_protect_reaches_every_resource_of_a_network() -> None:
    engine = run(lambda: AwsNetwork("net", NETWORK, pulumi.ResourceOptions(protect=True)).vpc_id)
    assert all(it.request.protect for it in engine.seen if it.type.startswith("aws:"))


def test_a_volume_that_is_not_kept_leaves_retain_on_delete_to_the_cluster() -> None:
    """The engine gives the option to children that say nothing of it."""
    inputs: Any = {"brokers": 1, "data": "delete"}
    opts = pulumi.ResourceOptions(retain_on_delete=True)
    engine = run(lambda: [DockerCluster("kafka", inputs, opts)])
    assert engine.one("earshot:index:DockerCluster").request.retainOnDelete
    said = [it.name for it in engine.seen if it.request.HasField("retainOnDelete")]
    assert said == ["kafka"]


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [(LocalCluster, LOCAL), (DockerCluster, {"brokers": 1}), (AwsCluster, CLUSTER)],
)
def test_a_cluster_waits_for_what_it_depends_on(kind: Any, inputs: Any) -> None:
    def program() -> list[Any]:
        first = pulumi.CustomResource("shop:index:First", "first")
        return [kind("kafka", inputs, pulumi.ResourceOptions(depends_on=[first]))]

    engine = run(program)
    first, cluster = engine.one("shop:index:First"), engine.one(f"earshot:index:{kind.__name__}")
    assert cluster.depends_on(first)
    inside = [it for it in engine.seen if it not in (first, cluster)]
    assert all(engine.before(first, it) for it in inside if it.request.parent)


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [(LocalCluster, LOCAL), (DockerCluster, {"brokers": 1}), (AwsCluster, CLUSTER)],
)
def test_a_cluster_that_moves_below_a_parent_keeps_its_alias(kind: Any, inputs: Any) -> None:
    """The engine derives the children's aliases from that of their parent."""

    def program() -> list[Any]:
        parent = pulumi.ComponentResource("shop:index:Shop", "shop")
        before = pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE)
        return [kind("kafka", inputs, pulumi.ResourceOptions(parent=parent, aliases=[before]))]

    (alias,) = run(program).one(f"earshot:index:{kind.__name__}").request.aliases
    assert alias.spec.noParent


@pytest.mark.parametrize(
    "alias",
    [
        pulumi.Alias(name="orders"),
        "urn:pulumi:stack::program::earshot:index:LocalCluster::orders",
    ],
)
def test_a_cluster_cannot_be_renamed(alias: Any) -> None:
    opts = pulumi.ResourceOptions(aliases=[alias])
    error = raised(pulumi.RunError, run, lambda: [LocalCluster("kafka", LOCAL, opts)])
    assert str(error).startswith("kafka: aliases: found the name orders; a cluster keeps")


def test_transformations_see_every_resource_of_a_cluster() -> None:
    seen: list[str] = []

    def look(args: pulumi.ResourceTransformationArgs) -> None:
        seen.append(args.type_)

    opts = pulumi.ResourceOptions(transformations=[look])
    engine = run(lambda: [DockerCluster("kafka", {"brokers": 1}, opts)])
    wanted = [it.type for it in engine.seen if it.type != "pulumi:pulumi:Stack"]
    assert sorted(seen) == sorted(wanted)
