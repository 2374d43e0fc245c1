"""What is known of a stack's nodes from its state, and where its brokers stay."""

from typing import Any

import pytest
from botocore.exceptions import ClientError
from earshot_pulumi.aws.last_run import LastRun, check_attached, check_volumes, placed

from earshot.errors import EarshotError
from tests.components.aws.registered import ASSOCIATION, INSTANCE, INTERFACE, READY, VOLUME
from tests.components.aws.test_balancer import EXPOSED
from tests.config.aws_documents import TWO_LISTENERS, ZONES, read_aws

CLUSTER = "ZWFyc2hvdC10ZXN0cy1ydQ"
URN = "urn:pulumi:mine::p::earshot:aws:AwsCluster$"


def state(*items: tuple[str, str]) -> dict[str, Any]:
    return {f"{URN}{type}::mine-{name}": {"type": type, "outputs": {}} for type, name in items}


PRIVATE = state((INSTANCE, "broker-1"), (INSTANCE, "validator"))
PUBLIC = {**PRIVATE, **state((ASSOCIATION, "broker-1"))}


def test_the_state_tells_the_volumes_of_the_stack() -> None:
    arn = "arn:aws:ec2:us-west-2:123456789012:volume/vol-1"
    volume = {f"{URN}v::mine-broker-1": {"type": VOLUME, "outputs": {"arn": arn}}}
    assert LastRun.read("mine", {**PRIVATE, **volume}).volumes == {"broker-1": "vol-1"}


@pytest.mark.parametrize(("resources", "expected"), [
    ({}, LastRun()),
    (state((INSTANCE, "validator"), (ASSOCIATION, "broker-1")), LastRun()),
    (PRIVATE, LastRun(place="private")),
    (PUBLIC, LastRun(place="public")),
    ({**PUBLIC, **state((READY, "broker-1"), (READY, "controller-10001"))},
     LastRun(nodes=frozenset({"broker-1", "controller-10001"}), place="public")),
    (state((READY, "broker-1"), (READY, "cluster")), LastRun(True, frozenset({"broker-1"}))),
])  # fmt: skip
def test_the_state_tells_nodes_and_their_place(
    resources: dict[str, Any], expected: LastRun
) -> None:
    assert LastRun.read("mine", resources) == expected


@pytest.mark.parametrize(
    ("settings", "place", "is_public"),
    [
        ({}, None, False),
        (TWO_LISTENERS, None, True),
        ({"place": "public"}, None, True),
        ({}, "private", False),
        ({}, "public", True),
        (TWO_LISTENERS, "public", True),
        (EXPOSED, "private", False),
    ],
)
def test_brokers_stay_in_their_place_and_new_ones_follow_listeners_or_the_file(
    settings: dict[str, Any], place: Any, is_public: bool
) -> None:
    """Also if the last external listener is removed. Behind a balancer they are private."""
    configured = read_aws(**settings)
    spec = placed(configured, LastRun(place=place))
    assert place or spec is configured
    assert spec.public is spec.is_public(1) is is_public
    if place == "public" and not settings:
        assert spec.place == "public" and not spec.external
        assert spec.elastic_ips == spec.brokers + spec.gateways, "their way out, too"


@pytest.mark.parametrize(
    ("settings", "place", "text"),
    [
        (TWO_LISTENERS, "private", "listeners for scope external: these take `place: public`, and"),
        ({"place": "public"}, "private", "place: public: the brokers are in private subnets"),
        ({"place": "private"}, "public", "place: private: the brokers are in public subnets"),
    ],
)
def test_another_place_is_refused_with_the_way_out(
    settings: dict[str, Any], place: Any, text: str
) -> None:
    with pytest.raises(EarshotError) as caught:
        placed(read_aws(**settings), LastRun(place=place))
    message = str(caught.value)
    assert f"nothing was changed: {text}" in message and f"allowed: `place: {place}`" in message
    assert "`pulumi destroy`, then `pulumi up` with `place: " in message


SERVED = frozenset({"broker-1", "broker-2", "broker-3"})


@pytest.mark.parametrize(
    ("volumes", "given", "served", "gone"),
    [
        ((1, 2, 3), {}, True, ""),
        ((1, 3), {}, True, ""),
        ((3,), {}, True, "nodes 1, 2"),
        ((), {}, True, "nodes 1 to 3"),
        ((3,), {2: "vol-0123456789abcdef0"}, True, ""),
        ((3,), {}, False, ""),
    ],
)
def test_blank_volumes_must_not_outvote_those_with_data(
    volumes: tuple[int, ...], given: dict[int, str], served: bool, gone: str
) -> None:
    spec = read_aws(brokers=3, volumes=given, **({"cluster_id": CLUSTER} if given else {}))
    owned = {f"broker-{id}": f"vol-{id}" for id in volumes}
    remembered = LastRun(served, SERVED, owned)
    if not gone:
        check_volumes(spec, remembered)
        check_volumes(spec, LastRun())
        return
    with pytest.raises(EarshotError) as caught:
        check_volumes(spec, remembered)
    message = str(caught.value)
    assert message.startswith(f"nothing was changed: {gone} would start on blank volumes")
    assert "`volumes: {1: vol-...}`" in message


def test_a_vpc_that_is_there_must_still_have_the_subnets() -> None:
    vpc = {"id": "vpc-0123abcd", "zones": ZONES[:2], "private_subnets": {}}
    vpc["private_subnets"] = {zone: f"subnet-0000000{zone[-1]}" for zone in ZONES[:2]}
    with pytest.raises(EarshotError, match="public_subnets: is missing"):
        placed(read_aws(vpc=vpc), LastRun(place="public"))


ARN = "arn:aws:ec2:us-west-2:123456789012"


def remembered_props(**instances: str) -> dict[str, Any]:
    """Nodes, each with an interface, and the instances of a state."""
    nodes = ("broker-1", "broker-2")
    ids = {name.replace("_", "-"): id for name, id in instances.items()} | {"validator": "i-9"}
    resources = state(*((INTERFACE, name) for name in nodes), *((INSTANCE, name) for name in ids))
    for urn, resource in resources.items():
        name = urn.rpartition("::mine-")[2]
        is_interface = resource["type"] == INTERFACE
        path = f"network-interface/eni-{name}" if is_interface else f"instance/{ids[name]}"
        resource["outputs"] = {"arn": f"{ARN}:{path}"}
    return resources


class Interfaces:
    """EC2, with an instance at each interface of a node (None: at none), or an error."""

    def __init__(self, first: str | None, second: str | None, error: str = "") -> None:
        self._at = {"eni-broker-1": first, "eni-broker-2": second}
        self._error = error

    def describe_network_interfaces(self, Filters: Any) -> Any:
        if self._error:
            raise ClientError({"Error": {"Code": self._error}}, "DescribeNetworkInterfaces")
        assert Filters == [{"Name": "network-interface-id", "Values": list(self._at)}]
        interfaces = [
            {"NetworkInterfaceId": id} | ({"Attachment": {"InstanceId": at}} if at else {})
            for id, at in self._at.items()
        ]
        return {"NetworkInterfaces": interfaces}


@pytest.mark.parametrize("second", ["i-2", None])
def test_nodes_on_the_instances_of_the_state_are_as_it_says(second: str | None) -> None:
    check_attached(
        "mine", remembered_props(broker_1="i-1", broker_2="i-2"), Interfaces("i-1", second)
    )
    check_attached("mine", {}, Interfaces("i-7", None))


@pytest.mark.parametrize(
    "resources",
    [remembered_props(broker_1="i-1", broker_2="i-2"), remembered_props(broker_1="i-1")],
)
def test_a_state_that_is_older_than_its_nodes_is_refused(resources: dict[str, Any]) -> None:
    with pytest.raises(EarshotError) as caught:
        check_attached("mine", resources, Interfaces("i-1", "i-3"))
    assert caught.value.object.startswith("nothing was changed")
    assert caught.value.observed.endswith("that are not in the state: broker-2 on i-3")
    assert caught.value.remedy is not None and "pulumi stack import" in caught.value.remedy


def test_unreadable_interfaces_end_the_update() -> None:
    with pytest.raises(EarshotError, match="ec2:DescribeNetworkInterfaces"):
        check_attached(
            "mine",
            remembered_props(broker_1="i-1"),
            Interfaces(None, None, "UnauthorizedOperation"),
        )
