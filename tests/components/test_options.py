"""Pulumi's options on clusters and networks, and the resources registered for each."""

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
CLUSTER: Any = {"region": REGION, "vpc": {"zones": ZONES}, "archive": ARCHIVE}
NETWORK: Any = {"zones": ZONES, "deletion_protection": False}
LISTENERS = [
    {"name": "INTERNAL", "port": 19000, "scopes": ["internal"]},
    {"name": "HOST", "port": 19010, "scopes": ["host"]},
]
LOCAL: Any = {"brokers": 1, "listeners": LISTENERS, "controllers": {"port": 19020}}
ONE: Any = {"brokers": 1}
every_placement = pytest.mark.parametrize(
    ("kind", "inputs"), [(LocalCluster, LOCAL), (DockerCluster, ONE), (AwsCluster, CLUSTER)]
)


@pytest.fixture(autouse=True)
def without_hooks(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    """Every registration of ``program``, which returns a cluster or a network."""
    answers = answers or Everywhere()
    engine = Engine(answers)
    mocks.set_mocks(answers, "program", "stack", answers.preview, monitor=engine)

    def settled() -> Any:
        component = program()
        return component.vpc_id if isinstance(component, AwsNetwork) else component.proof

    pulumi.runtime.test(settled)()  # type: ignore[no-untyped-call]
    return engine


def of_provider(engine: Engine, package: str) -> list[Registered]:
    """The resources of ``package``, all of which have the program's provider `own`."""
    resources = [resource for resource in engine.seen if resource.type.startswith(f"{package}:")]
    own = f"pulumi:providers:{package}::own"
    assert resources and all(own in resource.request.provider for resource in resources)
    return resources


def test_a_docker_provider_of_the_program_makes_everything_on_its_engine() -> None:
    def program() -> DockerCluster:
        own = docker.Provider("own", host=ENGINE, cert_path="/keys")
        return DockerCluster("kafka", ONE, pulumi.ResourceOptions(provider=own))

    engine = run(program)
    of_provider(engine, "docker")
    assert list(engine.of("pulumi:providers:docker")) == ["own"]
    host = engine.one(on_docker.PREFLIGHT).inputs["hosts"][0]
    assert (host["engine"], host["cert_path"]) == (ENGINE, "/keys")
    ready = engine.of(on_docker.READY).values()
    places = [node["place"] for resource in ready for node in resource.inputs["nodes"]]
    assert {(place["engine"], place["cert_path"]) for place in places} == {(ENGINE, "/keys")}


def test_a_cluster_has_the_providers_of_its_parent() -> None:
    def program() -> DockerCluster:
        own = docker.Provider("own", host=ENGINE)
        opts = pulumi.ResourceOptions(providers=[own])
        parent = pulumi.ComponentResource("shop:index:Shop", "shop", opts=opts)
        return DockerCluster("kafka", ONE, pulumi.ResourceOptions(parent=parent))

    engine = run(program)
    of_provider(engine, "docker")
    assert engine.one("earshot:index:DockerCluster").is_below(engine.one("shop:index:Shop"))


TWO = [{"name": "a", "engine": "tcp://a:1"}, {"name": "b", "engine": "tcp://b:1"}]


@pytest.mark.parametrize(("provider", "inputs", "message"), [
    ({"host": ENGINE}, {"hosts": TWO}, "provider: found a docker.Provider, which has one eng"),
    ({"host": ENGINE}, {"hosts": [TWO[0]]}, "hosts[0].engine: found tcp://a:1, and the docker"),
    ({"host": ENGINE, "key_material": "s3cr3t"}, {}, "provider: found keyMaterial in the docker"),
    ({"context": "far"}, {}, "provider: found context in the docker.Provider, which earshot's"),
])  # fmt: skip
def test_a_docker_provider_that_earshot_cannot_follow_is_refused(
    provider: dict[str, Any], inputs: Any, message: str
) -> None:
    def program() -> DockerCluster:
        own = docker.Provider("own", **provider)
        return DockerCluster("kafka", ONE | inputs, pulumi.ResourceOptions(provider=own))

    error = raised(pulumi.RunError, run, program)
    assert str(error).startswith(message)
    assert "s3cr3t" not in str(error)


SETTINGS_OF_OWN: Any = {
    "region": REGION,
    "access_key": "AKIA",
    "secret_key": "s3cr3t",
    "endpoints": [{"ssm": "http://127.0.0.1:9"}],
}


def with_aws_provider(kind: Any, **settings: Any) -> Callable[[], Any]:
    """A program with an `AwsCluster` or `AwsNetwork` of its own provider."""
    inputs = CLUSTER if kind is AwsCluster else NETWORK

    def program() -> Any:
        own = AwsProvider("own", **settings)
        return kind("x", inputs, pulumi.ResourceOptions(provider=own))

    return program


def test_earshot_calls_aws_with_the_settings_of_the_program_s_provider() -> None:
    engine = run(with_aws_provider(AwsCluster, **SETTINGS_OF_OWN))
    of_provider(engine, "aws")
    of_provider(run(with_aws_provider(AwsNetwork, region=REGION)), "aws")
    asking = [resource for resource in engine.seen if SETTINGS in resource.inputs]
    kinds = {resource.type.rpartition(":")[2] for resource in asking}
    assert kinds >= {"ChangePreflight", "AwsReadiness"}
    for resource in asking:
        settings = resource.inputs[SETTINGS]
        assert settings["aws:secretKey"] == "s3cr3t"
        assert "127.0.0.1:9" in settings["aws:endpoints"]
        assert secret_inputs(resource.request) >= {SETTINGS}


def test_settings_of_a_provider_that_earshot_has_not_are_refused() -> None:
    roles = [ProviderAssumeRoleArgs(role_arn="arn:aws:iam::1:role/x")]
    with pytest.raises(pulumi.RunError, match="provider: found assumeRoles"):
        run(with_aws_provider(AwsCluster, region=REGION, assume_roles=roles))


@pytest.mark.parametrize("kind", [AwsCluster, AwsNetwork])
def test_a_provider_of_another_region_is_refused_before_anything_is_registered(kind: Any) -> None:
    program = with_aws_provider(kind, region="us-east-1")
    error = raised(pulumi.RunError, run, program, Everywhere(region="us-east-1"))
    assert f"region: {REGION}: the region of the AWS provider is us-east-1" in str(error)


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [
        (LocalCluster, LOCAL),
        (DockerCluster, ONE),
        (AwsCluster, {**CLUSTER, "deletion_protection": False}),
        (AwsNetwork, NETWORK),
    ],
)
def test_protect_reaches_every_resource(kind: Any, inputs: Any) -> None:
    engine = run(lambda: kind("kafka", inputs, pulumi.ResourceOptions(protect=True)))
    resources = [resource for resource in engine.seen if resource.type != "pulumi:pulumi:Stack"]
    assert len(resources) > 5 and all(resource.request.protect for resource in resources)


def test_a_volume_that_is_not_kept_leaves_retain_on_delete_to_the_cluster() -> None:
    """The engine gives the option to children that say nothing of it."""
    inputs: Any = {"brokers": 1, "data": "delete"}
    opts = pulumi.ResourceOptions(retain_on_delete=True)
    engine = run(lambda: DockerCluster("kafka", inputs, opts))
    assert engine.one("earshot:index:DockerCluster").request.retainOnDelete
    names = [
        resource.name for resource in engine.seen if resource.request.HasField("retainOnDelete")
    ]
    assert names == ["kafka"]


@every_placement
def test_a_cluster_waits_for_what_it_depends_on(kind: Any, inputs: Any) -> None:
    def program() -> Any:
        first = pulumi.CustomResource("shop:index:First", "first")
        return kind("kafka", inputs, pulumi.ResourceOptions(depends_on=[first]))

    engine = run(program)
    first, cluster = engine.one("shop:index:First"), engine.one(f"earshot:index:{kind.__name__}")
    assert cluster.depends_on(first)
    inside = [resource for resource in engine.seen if resource not in (first, cluster)]
    assert all(engine.before(first, resource) for resource in inside if resource.request.parent)


@every_placement
def test_a_cluster_that_moves_below_a_parent_keeps_its_alias(kind: Any, inputs: Any) -> None:
    """The engine derives the children's aliases from that of their parent."""

    def program() -> Any:
        parent = pulumi.ComponentResource("shop:index:Shop", "shop")
        former = pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE)
        return kind("kafka", inputs, pulumi.ResourceOptions(parent=parent, aliases=[former]))

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
    error = raised(pulumi.RunError, run, lambda: LocalCluster("kafka", LOCAL, opts))
    assert str(error).startswith("kafka: aliases: found the name orders; a cluster keeps")


def test_transformations_see_every_resource_of_a_cluster() -> None:
    types: list[str] = []

    def look(args: pulumi.ResourceTransformationArgs) -> None:
        types.append(args.type_)

    opts = pulumi.ResourceOptions(transformations=[look])
    engine = run(lambda: DockerCluster("kafka", ONE, opts))
    registered = [
        resource.type for resource in engine.seen if resource.type != "pulumi:pulumi:Stack"
    ]
    assert sorted(types) == sorted(registered)
