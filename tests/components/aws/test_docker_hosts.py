"""Docker hosts as a component: what is registered, what comes back, what is refused."""

from collections.abc import Mapping
from typing import Any

import pulumi
import pytest
import yaml
from earshot_pulumi.aws.docker_hosts import DockerHosts
from pulumi.runtime import mocks

from earshot.aws.ecr import EXAMPLE
from tests.components.aws import registered as aws
from tests.components.aws.registered import Answers
from tests.components.constructed import given_later
from tests.components.engine_double import Engine
from tests.config.aws_documents import REGION, ZONES

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
    """The provider's own resources, too."""

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        id, outputs = super().new_resource(args)
        if not self.preview and args.typ == KEYS:
            outputs |= {"versions": {it: f"print of {it}" for it in args.inputs["hosts"]}}
            outputs |= {"certificate": "PEM of the authority\n"}
        if not self.preview and args.typ == READY:
            outputs |= {"engine_id": f"engine of {args.inputs['name']}", "version": "25.0"}
        return id, outputs


def made(
    args: Mapping[str, Any], *, preview: bool = False, answers: HostAnswers | None = None
) -> tuple[Engine, dict[str, Any]]:
    """Every registration, and the component's outputs. An input that is a function is called."""
    answers = answers or HostAnswers(preview=preview)
    engine = Engine(answers)
    outputs: dict[str, Any] = {}
    mocks.set_mocks(answers, "program", "stack", answers.preview, monitor=engine)

    def run() -> Any:
        given: Any = {key: item() if callable(item) else item for key, item in args.items()}
        hosts = DockerHosts("shop", given)
        known = {
            "hosts": hosts.hosts,
            "ids": hosts.engine_ids,
            "instances": hosts.instance_ids,
            "names": hosts.names,
            "vpc": hosts.vpc_id,
        }
        return pulumi.Output.all(**known).apply(outputs.update)

    pulumi.runtime.test(run)()  # type: ignore[no-untyped-call]
    return engine, outputs


def test_hosts_of_a_new_vpc() -> None:
    engine, outputs = made(ARGS)
    assert len(engine.of(aws.VPC)) == 1
    for type in (aws.INSTANCE, aws.INTERFACE, aws.VOLUME, aws.ATTACHMENT, READY):
        assert sorted(engine.of(type)) == ["stack-shop-a", "stack-shop-b"], type
    for item in engine.of(aws.INSTANCE).values():
        options = item.inputs["metadataOptions"]
        assert (options["httpTokens"], options["httpPutResponseHopLimit"]) == ("required", 1)
        assert item.inputs["rootBlockDevice"]["encrypted"]
        assert item.request.deleteBeforeReplace
    for item in engine.of(aws.VOLUME).values():
        assert item.inputs["encrypted"]
        assert item.request.protect and item.request.retainOnDelete
    host, _ = outputs["hosts"]
    assert host["name"] == "a"
    assert host["engine"].startswith("tcp://10.0.0.") and host["engine"].endswith(":2376")
    assert host["internal"] == host["external"] == outputs["names"]["a"]
    assert host["cert_path"].endswith("docker-hosts/stack-shop/client")
    assert outputs["ids"] == {"a": "engine of a", "b": "engine of b"}
    assert outputs["instances"]["b"] == "id of stack-shop-b"


def test_the_engine_is_waited_for_with_the_volume_attached() -> None:
    engine, _ = made(ARGS)
    for name, item in engine.of(READY).items():
        assert item.depends_on(engine.of(aws.ATTACHMENT)[name])
        assert item.inputs["seconds"] == 900
        assert item.inputs["instance"] == f"id of {name}"


def answered(*hosts: str) -> HostAnswers:
    """As after an update in which the engines of these ``hosts`` of the component answered."""
    urns = {it: f"urn:pulumi:stack::program::{READY}::stack-shop-{it}" for it in hosts}
    return HostAnswers(state={urn: {"type": READY, "outputs": {}} for urn in urns.values()})


def test_hosts_change_one_after_the_other() -> None:
    engine, _ = made(ARGS, answers=answered("a", "b"))
    turns, ready = engine.of(TURN), engine.of(READY)
    first, second = "stack-shop-a", "stack-shop-b"
    assert turns[second].depends_on(ready[first])
    for name, turn in turns.items():
        assert engine.of(aws.INSTANCE)[name].depends_on(turn)
        assert [it["name"] for it in turn.inputs["hosts"]] == ["a", "b"]
        assert all(it["engine"].endswith(":2376") for it in turn.inputs["hosts"])
        assert turn.inputs["seconds"] == 900
    assert not turns[first].depends_on(ready[second])


def test_what_restarts_or_replaces_an_instance_takes_a_turn() -> None:
    def wanted(**instance: Any) -> Any:
        engine, _ = made({**ARGS, "instances": {"a": instance}})
        return engine.of(TURN)["stack-shop-a"].inputs["wanted"]

    same = wanted()
    changes: list[dict[str, Any]] = [
        {"type": "m7g.xlarge"},
        {"root_gib": 20},
        {"ami": "ami-0123456789abcdef0"},
    ]
    assert wanted() == same
    assert all(wanted(**it) != same for it in changes)


def test_new_hosts_are_made_at_once_and_before_others_change() -> None:
    engine, _ = made(ARGS)
    turns = engine.of(TURN)
    assert all(it.inputs["hosts"] == [] for it in turns.values())
    ready = engine.of(READY)
    assert not any(turn.depends_on(it) for turn in turns.values() for it in ready.values())

    engine, _ = made(ARGS, answers=answered("a"))
    turns = engine.of(TURN)
    assert turns["stack-shop-b"].inputs["hosts"] == []
    assert [it["name"] for it in turns["stack-shop-a"].inputs["hosts"]] == ["a"]
    assert turns["stack-shop-a"].depends_on(engine.of(READY)["stack-shop-b"])


def test_hosts_of_clusters_that_are_down_may_change_at_once() -> None:
    engine, _ = made({**ARGS, "in_turn": False}, answers=answered("a", "b"))
    for turn in engine.of(TURN).values():
        assert turn.inputs["hosts"] == []
        assert not any(turn.depends_on(it) for it in engine.of(READY).values())


def test_images_in_ecr_are_pulled_by_the_hosts_before_a_cluster_uses_them() -> None:
    engine, outputs = made({**ARGS, "images": [EXAMPLE]})
    (listed,) = (
        it
        for it in engine.of(aws.PARAMETER).values()
        if it.inputs["name"].endswith("docker/images")
    )
    assert listed.inputs["insecureValue"] == EXAMPLE
    for name, pulled in engine.of(PULLED).items():
        assert pulled.inputs["images"] == [EXAMPLE]
        assert pulled.depends_on(listed) and pulled.depends_on(engine.of(READY)[name])
    assert sorted(engine.of(PULLED)) == ["stack-shop-a", "stack-shop-b"]
    for policy in engine.of(aws.POLICY).values():
        assert "repository/apache/kafka" in policy.inputs["policy"]
    text = engine.of(aws.INSTANCE)["stack-shop-a"].inputs["userData"]
    assert "ecr-login" in text and EXAMPLE not in text, "another image needs no other instance"
    assert outputs["hosts"][0]["name"] == "a"

    without, _ = made(ARGS)
    assert not without.of(PULLED)
    assert "ecr:" not in without.of(aws.POLICY)["stack-shop-a"].inputs["policy"]


def test_only_deployers_reach_the_engine() -> None:
    engine, _ = made(ARGS)
    group = engine.one(aws.GROUP)
    rules = {
        (it.inputs["fromPort"], it.inputs["toPort"]): set[str]()
        for it in engine.of(aws.INGRESS).values()
    }
    for it in engine.of(aws.INGRESS).values():
        source = it.inputs.get("cidrIpv4") or it.inputs["referencedSecurityGroupId"]
        rules[it.inputs["fromPort"], it.inputs["toPort"]].add(source)
    assert rules == {
        (2376, 2376): {"203.0.113.0/24"},
        (9092, 49151): {"203.0.113.0/24", "198.51.100.0/24", f"id of {group.name}"},
    }


def test_no_key_is_in_user_data_or_in_the_role_s_reach_but_its_own() -> None:
    engine, _ = made(ARGS)
    text = engine.of(aws.INSTANCE)["stack-shop-a"].inputs["userData"]
    files = {it["path"]: it["content"] for it in yaml.safe_load(text)["write_files"]}
    assert "PRIVATE KEY" not in text
    assert files["/etc/docker/authority.pem"] == "PEM of the authority\n"
    assert "/earshot/stack-shop/docker/a/key" in files["/usr/local/sbin/docker-prepare"]
    policy = engine.of(aws.POLICY)["stack-shop-a"].inputs["policy"]
    assert "docker/a/key" in policy
    assert "docker/b/key" not in policy and "authority" not in policy
    assert "/earshot/stack-shop/docker/a/report" in {
        it.inputs["name"] for it in engine.of(aws.PARAMETER).values()
    }


def test_a_preview_has_the_same_resources_and_knows_no_host() -> None:
    shown, outputs = made(ARGS, preview=True)
    real, _ = made(ARGS)
    assert sorted(item.urn for item in shown.seen) == sorted(item.urn for item in real.seen)
    assert outputs == {}


def test_a_preview_knows_how_many_hosts_there_are_and_their_names() -> None:
    """A `DockerCluster` plans its containers by them."""
    answers = HostAnswers(preview=True)
    mocks.set_mocks(answers, "program", "stack", True, monitor=Engine(answers))
    shown: list[dict[str, Any]] = []

    def run() -> Any:
        given: Any = ARGS
        hosts: pulumi.Output[Any] = DockerHosts("shop", given).hosts
        return hosts.apply(shown.extend, run_with_unknowns=True)

    pulumi.runtime.test(run)()  # type: ignore[no-untyped-call]
    assert [host["name"] for host in shown] == ["a", "b"]
    assert all(pulumi.contains_unknowns(host["engine"]) for host in shown)


def test_zones_and_ranges_may_be_outputs() -> None:
    plain, _ = made(ARGS)
    later = {**ARGS, **{key: given_later(ARGS[key]) for key in ("host_zones", "deployers")}}
    engine, outputs = made(later)
    assert sorted(item.urn for item in engine.seen) == sorted(item.urn for item in plain.seen)
    assert outputs["ids"] == {"a": "engine of a", "b": "engine of b"}

    shown, _ = made({**ARGS, "host_zones": given_later(None, known=False)}, preview=True)
    assert not shown.of(aws.INSTANCE), "a preview that does not know the hosts shows none"


def test_hosts_in_a_vpc_that_is_there() -> None:
    subnets = {zone: f"subnet-0123456{index}" for index, zone in enumerate(ZONES[:2])}
    given = {**ARGS, "vpc_id": pulumi.Output.from_input("vpc-01234567"), "subnets": subnets}
    engine, outputs = made(given)
    assert not engine.of(aws.VPC) and not engine.of(aws.SUBNET)
    found = [it.inputs["subnetId"] for it in engine.of(aws.INTERFACE).values()]
    assert found == list(subnets.values())
    assert outputs["vpc"] == "vpc-01234567"


@pytest.mark.parametrize(
    ("changes", "told"),
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
        ({"images": [f"{EXAMPLE}-{it}" for it in range(60)]}, "4096 characters in all"),
    ],
)
def test_what_cannot_be_is_refused_in_one_message(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(pulumi.RunError) as caught:
        made({**ARGS, **changes})
    assert told in str(caught.value)
    assert "DockerHosts shop" in str(caught.value)
