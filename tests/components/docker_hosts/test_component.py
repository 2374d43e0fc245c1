"""Docker hosts as a component: what is registered, what comes back, what is refused."""

from typing import Any

import pulumi
import pytest
from earshot_pulumi.docker_hosts.component import DockerHosts
from pulumi.runtime import mocks

from earshot.aws.ecr import EXAMPLE
from tests.components.aws import registered as aws
from tests.components.aws.registered import Answers, inputs
from tests.components.constructed import given_later
from tests.components.engine_double import Engine
from tests.config.aws_documents import REGION, ZONES
from tests.user_data.properties import files_in

ARGS: dict[str, Any] = {
    "host_zones": {"a": ZONES[0], "b": ZONES[1]},
    "deployers": {"office": "203.0.113.0/24"},
    "clients": {"apps": "198.51.100.0/24"},
}
KEYS = "earshot:index:DockerHostKeys"
READY = "earshot:index:DockerEngineReady"
TURN = "earshot:index:DockerHostTurn"
PULLED = "earshot:index:DockerHostImages"


class HostAnswers(Answers):
    """With the outputs of the provider's own resources."""

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        id, outputs = super().new_resource(args)
        if not self.preview and args.typ == KEYS:
            outputs |= {"versions": {host: f"print of {host}" for host in args.inputs["hosts"]}}
            outputs |= {"certificate": "PEM of the authority\n"}
        if not self.preview and args.typ == READY:
            outputs |= {"engine_id": f"engine of {args.inputs['name']}", "version": "25.0"}
        return id, outputs


def constructed_hosts(
    answers: HostAnswers | None = None, **changes: Any
) -> tuple[Engine, dict[str, Any]]:
    """Every registration, and the component's outputs. An input that is a function is called."""
    answers = answers or HostAnswers()
    engine = Engine(answers)
    outputs: dict[str, Any] = {}
    mocks.set_mocks(answers, "program", "stack", answers.preview, monitor=engine)

    def run() -> Any:
        inputs: Any = {**ARGS, **changes}
        inputs = {key: value() if callable(value) else value for key, value in inputs.items()}
        hosts = DockerHosts("shop", inputs)
        names = ("hosts", "engine_ids", "instance_ids", "names", "vpc_id")
        known = {name: getattr(hosts, name) for name in names}
        return pulumi.Output.all(**known).apply(outputs.update)

    pulumi.runtime.test(run)()  # type: ignore[no-untyped-call]
    return engine, outputs


def test_hosts_of_a_new_vpc() -> None:
    engine, outputs = constructed_hosts()
    assert len(engine.of(aws.VPC)) == 1
    for type in (aws.INSTANCE, aws.INTERFACE, aws.VOLUME, aws.ATTACHMENT, READY):
        assert sorted(engine.of(type)) == ["stack-shop-a", "stack-shop-b"], type
    for instance in engine.of(aws.INSTANCE).values():
        options = instance.inputs["metadataOptions"]
        assert (options["httpTokens"], options["httpPutResponseHopLimit"]) == ("required", 1)
        assert instance.inputs["rootBlockDevice"]["encrypted"]
        assert instance.request.deleteBeforeReplace
    for volume in engine.of(aws.VOLUME).values():
        assert volume.inputs["encrypted"]
        assert volume.request.protect and volume.request.retainOnDelete
    for name, ready in engine.of(READY).items():
        assert ready.depends_on(engine.of(aws.ATTACHMENT)[name])
        assert (ready.inputs["seconds"], ready.inputs["instance"]) == (900, f"id of {name}")
    host, _ = outputs["hosts"]
    assert host["name"] == "a"
    assert host["engine"].startswith("tcp://10.0.0.") and host["engine"].endswith(":2376")
    assert host["internal"] == host["external"] == outputs["names"]["a"]
    assert host["cert_path"].endswith("docker-hosts/stack-shop/client")
    assert outputs["engine_ids"] == {"a": "engine of a", "b": "engine of b"}
    assert outputs["instance_ids"]["b"] == "id of stack-shop-b"


def answered(*hosts: str) -> HostAnswers:
    """The state after an update in which the engines of ``hosts`` answered."""
    urns = [f"urn:pulumi:stack::program::{READY}::stack-shop-{host}" for host in hosts]
    return HostAnswers(state={urn: {"type": READY, "outputs": {}} for urn in urns})


def test_hosts_change_one_after_the_other() -> None:
    engine, _ = constructed_hosts(answered("a", "b"))
    turns, ready = engine.of(TURN), engine.of(READY)
    first, second = "stack-shop-a", "stack-shop-b"
    assert turns[second].depends_on(ready[first])
    assert not turns[first].depends_on(ready[second])
    for name, turn in turns.items():
        assert engine.of(aws.INSTANCE)[name].depends_on(turn)
        assert [host["name"] for host in turn.inputs["hosts"]] == ["a", "b"]
        assert all(host["engine"].endswith(":2376") for host in turn.inputs["hosts"])
        assert turn.inputs["seconds"] == 900


def test_a_change_that_restarts_or_replaces_an_instance_takes_a_turn() -> None:
    def wanted(**instance: Any) -> Any:
        engine, _ = constructed_hosts(instances={"a": instance})
        return engine.of(TURN)["stack-shop-a"].inputs["wanted"]

    assert wanted() == wanted()
    for change in ({"type": "m7g.xlarge"}, {"root_gib": 20}, {"ami": "ami-0123456789abcdef0"}):
        assert wanted(**change) != wanted()


def test_new_hosts_are_created_at_once_and_before_others_change() -> None:
    engine, _ = constructed_hosts(answered("a"))
    turns = engine.of(TURN)
    assert turns["stack-shop-b"].inputs["hosts"] == []
    assert [host["name"] for host in turns["stack-shop-a"].inputs["hosts"]] == ["a"]
    assert turns["stack-shop-a"].depends_on(engine.of(READY)["stack-shop-b"])


@pytest.mark.parametrize(
    ("answers", "in_turn"), [(HostAnswers(), True), (answered("a", "b"), False)],
    ids=["new hosts", "clusters that are down"],
)  # fmt: skip
def test_hosts_without_a_running_cluster_change_at_once(
    answers: HostAnswers, in_turn: bool
) -> None:
    engine, _ = constructed_hosts(answers, in_turn=in_turn)
    for turn in engine.of(TURN).values():
        assert turn.inputs["hosts"] == []
        assert not any(turn.depends_on(ready) for ready in engine.of(READY).values())


def test_images_in_ecr_are_pulled_by_the_hosts_before_a_cluster_uses_them() -> None:
    engine, outputs = constructed_hosts(images=[EXAMPLE])
    parameters = engine.of(aws.PARAMETER).values()
    (images,) = (it for it in parameters if it.inputs["name"].endswith("docker/images"))
    assert images.inputs["insecureValue"] == EXAMPLE
    for name, pulled in engine.of(PULLED).items():
        assert pulled.inputs["images"] == [EXAMPLE]
        assert pulled.depends_on(images) and pulled.depends_on(engine.of(READY)[name])
    assert sorted(engine.of(PULLED)) == ["stack-shop-a", "stack-shop-b"]
    for policy in inputs(engine, aws.POLICY).values():
        assert "repository/apache/kafka" in policy["policy"]
    text = inputs(engine, aws.INSTANCE)["stack-shop-a"]["userData"]
    assert "ecr-login" in text and EXAMPLE not in text, "another image needs no other instance"
    assert outputs["hosts"][0]["name"] == "a"

    engine, _ = constructed_hosts()
    assert not engine.of(PULLED)
    assert "ecr:" not in inputs(engine, aws.POLICY)["stack-shop-a"]["policy"]


def test_only_deployers_reach_the_engine() -> None:
    engine, _ = constructed_hosts()
    sources: dict[tuple[int, int], set[str]] = {}
    for rule in inputs(engine, aws.INGRESS).values():
        source = rule.get("cidrIpv4") or rule["referencedSecurityGroupId"]
        sources.setdefault((rule["fromPort"], rule["toPort"]), set()).add(source)
    assert sources == {
        (2376, 2376): {"203.0.113.0/24"},
        (9092, 49151): {
            "203.0.113.0/24", "198.51.100.0/24", f"id of {engine.one(aws.GROUP).name}",
        },
    }  # fmt: skip


def test_user_data_have_no_key_and_a_role_reads_only_its_own() -> None:
    engine, _ = constructed_hosts()
    text = inputs(engine, aws.INSTANCE)["stack-shop-a"]["userData"]
    files = files_in(text)
    assert "PRIVATE KEY" not in text
    assert files["/etc/docker/authority.pem"] == "PEM of the authority\n"
    assert "/earshot/stack-shop/docker/a/key" in files["/usr/local/sbin/docker-prepare"]
    policy = inputs(engine, aws.POLICY)["stack-shop-a"]["policy"]
    assert "docker/a/key" in policy
    assert "docker/b/key" not in policy and "authority" not in policy
    parameters = inputs(engine, aws.PARAMETER).values()
    assert "/earshot/stack-shop/docker/a/report" in {it["name"] for it in parameters}


def test_a_preview_knows_how_many_hosts_there_are_and_their_names() -> None:
    """A `DockerCluster` plans its containers by them."""
    answers = HostAnswers(preview=True)
    mocks.set_mocks(answers, "program", "stack", True, monitor=Engine(answers))
    preview: list[dict[str, Any]] = []

    def run() -> Any:
        inputs: Any = ARGS
        hosts: pulumi.Output[Any] = DockerHosts("shop", inputs).hosts
        return hosts.apply(preview.extend, run_with_unknowns=True)

    pulumi.runtime.test(run)()  # type: ignore[no-untyped-call]
    assert [host["name"] for host in preview] == ["a", "b"]
    assert all(pulumi.contains_unknowns(host["engine"]) for host in preview)


def test_previews_and_outputs_as_inputs_lead_to_the_same_resources() -> None:
    plain, _ = constructed_hosts()
    urns = sorted(resource.urn for resource in plain.seen)
    engine, outputs = constructed_hosts(HostAnswers(preview=True))
    assert sorted(resource.urn for resource in engine.seen) == urns
    assert outputs == {}, "no host is known"
    later: dict[str, Any] = {key: given_later(ARGS[key]) for key in ("host_zones", "deployers")}
    engine, outputs = constructed_hosts(**later)
    assert sorted(resource.urn for resource in engine.seen) == urns
    assert outputs["engine_ids"] == {"a": "engine of a", "b": "engine of b"}
    unknown = given_later(None, known=False)
    engine, _ = constructed_hosts(HostAnswers(preview=True), host_zones=unknown)
    assert not engine.of(aws.INSTANCE), "a preview that does not know the hosts shows none"


def test_hosts_in_an_existing_vpc() -> None:
    subnets = {zone: f"subnet-0123456{index}" for index, zone in enumerate(ZONES[:2])}
    vpc = pulumi.Output.from_input("vpc-01234567")
    engine, outputs = constructed_hosts(vpc_id=vpc, subnets=subnets)
    assert not engine.of(aws.VPC) and not engine.of(aws.SUBNET)
    interfaces = inputs(engine, aws.INTERFACE).values()
    assert sorted(interface["subnetId"] for interface in interfaces) == list(subnets.values())
    assert outputs["vpc_id"] == "vpc-01234567"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"deployers": {}}, "deployers: found {}; allowed: at least one"),
        ({"deployers": {"all": "0.0.0.0/0"}}, "which is every address"),
        ({"deployers": {"all": "::/0"}}, "which is every address"),
        ({"clients": {"all": "0.0.0.0/0"}}, "which is every address"),
        ({"deployers": {"half": "0.0.0.0/1"}}, "no network is larger than a /8"),
        ({"host_zones": {}}, "host_zones: found {}; allowed: at least one"),
        ({"host_zones": {"a": "us-east-1a", "b": f"{REGION}a"}}, "zones of one region"),
        ({"host_zones": {"a": ZONES[0]}}, "2 or 3 distinct zones"),
        ({"host_zones": {"A_1": ZONES[0]}}, "small letters, digits and hyphens"),
        ({"host_zones": {"a": ZONES[0]}, "zones": list(ZONES[1:3])}, "host_zones.a: found"),
        ({"first_port": 2000}, "the engines' own port 2376"),
        ({"first_port": 20000, "last_port": 10000}, "after last_port 10000"),
        ({"nat": "none"}, "hosts fetch packages and images"),
        ({"subnets": {ZONES[0]: "subnet-01234567"}}, "subnets without `vpc_id`"),
        ({"vpc_id": "vpc-01234567"}, f"subnets: found none for {ZONES[0]}"),
        ({"instances": {"c": {}}}, "instances: found c; allowed: a, b"),
        ({"instances": {"a": None}}, "instances.a: found nothing; allowed: a map"),
        ({"volume": {"size": 3}}, "volume.size"),
        ({"images": ["apache/kafka:4.1.1"]}, "found 'apache/kafka:4.1.1', which is not in ECR"),
        ({"images": [f"{EXAMPLE}-{number}" for number in range(60)]}, "4096 characters in all"),
    ],
)
def test_invalid_inputs_are_refused_in_one_message(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(pulumi.RunError) as caught:
        constructed_hosts(**changes)
    assert problem in str(caught.value)
    assert "DockerHosts shop" in str(caught.value)
