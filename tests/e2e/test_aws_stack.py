"""A stack of placement aws: the real program and engine, doubles of AWS and of its nodes."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.aws.readiness import POLL

from earshot.user_data.boot import NodeState
from earshot.validation.contract import Contract
from tests.config.aws_documents import INTERNAL, OFFICE, ONE_LISTENER, OWN_ZONE, TWO_LISTENERS
from tests.doubles.aws.server import REGION, MotoServer
from tests.doubles.dns_server import dns_server
from tests.e2e.aws_stack import Stack, aws_stack, cluster

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
IN_NO_ORDER: list[tuple[str, dict[str, Any], list[str]]] = [
    ("preview", {"listeners": [{**INTERNAL, "name": "BROKERS"}]},
     ["would change from INTERNAL to BROKERS in one step", "give BROKERS a port"]),
    ("up", {"listeners": [{**INTERNAL, "protocol": "SSL"}]},
     ["would change from PLAINTEXT to SSL", "add a listener of scope internal with SSL"]),
    ("up", {"controllers": {"port": 29777}},
     ["the controllers would move from", "keep the controllers' addresses; or stop"]),
    ("preview", {"controllers": {"count": 1}}, ["has the voters 1", "keep `controllers.mode`"]),
]  # fmt: skip
"""The command, the change of running brokers, and words of its refusal."""


@pytest.fixture
def stack(server: MotoServer, tmp_path: Path) -> Iterator[Stack]:
    with aws_stack(server, tmp_path) as new_stack:
        yield new_stack


def test_the_life_of_three_brokers_with_two_listeners(stack: Stack) -> None:
    old_holdings = stack.server.holdings()
    stack.configure(cluster(3, deletion_protection=False, data="delete", **TWO_LISTENERS))

    first_preview = stack.project.run("preview")
    assert "not known yet" in first_preview and not stack.instances()
    stack.project.up()
    running_instances = stack.instances()
    check_outputs(stack.project.outputs(), running_instances)
    for name, text in stack.advertised().items():
        instance = running_instances[name]
        private = instance["PrivateIpAddress"].replace(".", "-")
        public = instance["PublicIpAddress"].replace(".", "-")
        assert f"INTERNAL://ip-{private}.{REGION}.compute.internal:19092" in text
        assert f"EXTERNAL://ec2-{public}.{REGION}.compute.amazonaws.com:9092" in text

    assert "unchanged" in stack.project.up("--refresh", "--expect-no-changes")

    old_addresses = [
        (instance["PrivateIpAddress"], instance["PublicIpAddress"])
        for instance in running_instances.values()
    ]
    volumes = stack.volumes()
    stack.configure(
        cluster(3, heap="2g", deletion_protection=False, data="delete", **TWO_LISTENERS)
    )
    changes = stack.project.run("preview")
    assert "replace" in changes and set(stack.instances()) == set(running_instances)
    report_count, older_state = len(stack.nodes.history), stack.project.run("stack", "export")
    stack.project.up()
    new_instances = stack.instances()
    assert [node for node, _ in stack.nodes.history[report_count:]] == [1, 2, 3]
    assert {instance["InstanceId"] for instance in new_instances.values()}.isdisjoint(
        instance["InstanceId"] for instance in running_instances.values()
    )
    new_addresses = {
        instance["PrivateIpAddress"]: instance["PublicIpAddress"]
        for instance in new_instances.values()
    }
    assert new_addresses == dict(old_addresses)
    assert stack.volumes() == volumes

    newest_state, refusal = stack.project.run("stack", "export"), put_back(stack, older_state)
    assert "nothing was changed: the state of this stack does not match its nodes" in refusal
    assert all(
        f"{name.removeprefix('test-')} on {id}" in refusal for name, id in ids(stack).items()
    )
    assert "unchanged" in put_back(stack, newest_state, fails=False)
    stack.project.destroy()
    assert stack.server.holdings() == old_holdings


def balanced_listener(name: str, port: int, base: int) -> dict[str, Any]:
    """A listener for the balancer."""
    address = {"strategy": "port", "base_port": base}
    external = {"scopes": ["external"], "protocol": "SSL", "address": address}
    return {"name": name, "port": port, **external}


BALANCED = {"clients": OFFICE, "expose": "nlb", "deletion_protection": False, "data": "delete"}
BALANCED_LISTENERS = [INTERNAL, balanced_listener("EXTERNAL", 9094, 9100)]


@pytest.mark.combination
def test_a_balancer_has_a_port_per_broker(stack: Stack) -> None:
    holdings, elb = stack.server.holdings(), stack.server.client("elbv2")
    stack.configure(cluster(2, listeners=BALANCED_LISTENERS, **BALANCED))
    assert "not known yet" in stack.project.run("preview")
    stack.project.up()

    (balancer,) = elb.describe_load_balancers()["LoadBalancers"]
    assert balancer["Scheme"] == "internal" and balancer["Type"] == "network"
    running_instances = stack.instances()
    assert not any("PublicIpAddress" in instance for instance in running_instances.values())
    for id in (1, 2):
        text = stack.advertised()[f"test-broker-{id}"]
        assert f"EXTERNAL://{balancer['DNSName']}:{9100 + id}" in text
    assert targets(elb, balancer) == {
        9100: {(instance["PrivateIpAddress"], 9094) for instance in running_instances.values()},
        **{
            9100 + id: {(running_instances[f"test-broker-{id}"]["PrivateIpAddress"], 9094)}
            for id in (1, 2)
        },
    }
    contract = Contract.model_validate(stack.project.outputs()["contract"])
    assert contract.listener("EXTERNAL").bootstrap == f"{balancer['DNSName']}:9100"
    assert "unchanged" in stack.project.up("--refresh", "--expect-no-changes")
    stack.project.destroy()
    assert stack.server.holdings() == holdings


@pytest.mark.combination
def test_a_balancer_waits_for_each_target_of_another_listener(stack: Stack) -> None:
    elb = stack.server.client("elbv2")
    stack.configure(cluster(2, listeners=BALANCED_LISTENERS, **BALANCED))
    stack.project.up()
    (balancer,) = elb.describe_load_balancers()["LoadBalancers"]
    running_instances = stack.instances()
    more_listeners = [*BALANCED_LISTENERS, balanced_listener("PARTNERS", 9095, 9200)]
    stack.configure(cluster(2, listeners=more_listeners, **BALANCED))
    reports = len(stack.nodes.history)
    (target,) = targets(elb, balancer)[9101]
    failed_health = ("unhealthy", "Target.FailedHealthChecks", "Health checks failed")
    stack.server.set_health({(groups_of(elb, balancer)[9101], *target): failed_health})
    with stack.project.updating() as child:
        while len(stack.nodes.history) == reports:
            assert child.poll() is None
            time.sleep(0.2)
        time.sleep(POLL + 2)  # a look at the target, too
        assert stack.instances()["test-broker-2"] == running_instances["test-broker-2"], "it waits"
        stack.server.set_health({})
        output, _ = child.communicate(timeout=120)
    assert child.returncode == 0, output
    assert [node for node, _ in stack.nodes.history[reports:]] == [1, 2]
    assert set(targets(elb, balancer)) == {9100, 9101, 9102, 9200, 9201, 9202}
    new_addresses = {
        name: instance["PrivateIpAddress"] for name, instance in stack.instances().items()
    }
    assert new_addresses == {
        name: instance["PrivateIpAddress"] for name, instance in running_instances.items()
    }


def targets(elb: Any, balancer: dict[str, Any]) -> dict[int, set[tuple[str, int]]]:
    """The addresses and ports of the targets, by port of the balancer."""
    targets_by_port = {}
    for port, group in groups_of(elb, balancer).items():
        health = elb.describe_target_health(TargetGroupArn=group)["TargetHealthDescriptions"]
        targets_by_port[port] = {
            (health_description["Target"]["Id"], health_description["Target"]["Port"])
            for health_description in health
        }
    return targets_by_port


def groups_of(elb: Any, balancer: dict[str, Any]) -> dict[int, str]:
    """The target groups by port of the balancer."""
    listeners = elb.describe_listeners(LoadBalancerArn=balancer["LoadBalancerArn"])["Listeners"]
    return {
        listener["Port"]: listener["DefaultActions"][0]["TargetGroupArn"] for listener in listeners
    }


def put_back(stack: Stack, state: str, fails: bool = True) -> str:
    """The output of a preview after ``state`` was imported."""
    file = stack.project.folder / "state.json"
    file.write_text(state)
    stack.project.run("stack", "import", "--file", str(file))
    return stack.project.failed_output(command="preview") if fails else stack.project.run("preview")


def check_outputs(outputs: dict[str, Any], running_instances: dict[str, dict[str, Any]]) -> None:
    """All of them, against what runs."""
    contract = Contract.model_validate(outputs["contract"])
    assert [listener.name for listener in contract.listeners] == ["INTERNAL", "EXTERNAL"]
    for listener in contract.listeners:
        assert outputs[f"bootstrap_{listener.name}"] == listener.bootstrap
    for id in ("1", "2", "3"):
        instance, ids = running_instances[f"test-broker-{id}"], outputs["ids"][id]
        assert ids["instance"] == instance["InstanceId"]
        assert ids["interface"] == instance["NetworkInterfaces"][0]["NetworkInterfaceId"]
        assert outputs["incarnations"][id].startswith(f"{instance['InstanceId']} ")
        public = instance["PublicIpAddress"].replace(".", "-")
        assert outputs["names"][id]["external"].startswith(f"ec2-{public}.")
        assert instance["VpcId"] == outputs["vpc"]


def ids(stack: Stack) -> dict[str, str]:
    """The ids of running instances, by name."""
    return {name: instance["InstanceId"] for name, instance in stack.instances().items()}


@pytest.mark.combination
def test_what_is_protected_stays(stack: Stack) -> None:
    stack.configure(cluster(**TWO_LISTENERS))
    stack.project.up()
    holdings = stack.server.holdings()
    assert "protected" in stack.project.failed_output("--yes", command="destroy")
    assert stack.server.holdings() == holdings


@pytest.mark.combination
def test_a_node_that_gives_up_stops_the_update_and_the_next_goes_on(stack: Stack) -> None:
    stack.nodes.state[2] = NodeState.FAILED
    settings = {"deletion_protection": False, "data": "delete"}
    stack.configure(cluster(3, **settings))
    output = stack.project.failed_output()
    assert "node 2" in output and "failed: as the test wants it" in output
    assert len(stack.instances()) == 3

    stack.nodes.state.clear()
    stack.configure(cluster(3, heap="2g", **settings))
    stack.project.up()
    assert "unchanged" in stack.project.up("--expect-no-changes")

    running_instances = ids(stack)
    stack.configure(cluster(3, heap="2g", extra={"background.threads": "abc"}, **settings))
    for output in (stack.project.failed_output(command="preview"), stack.project.failed_output()):
        assert (
            "Kafka 4.1.1 refuses the settings of node 1, 2, 3: Invalid value abc for configuration "
            "background.threads: Not a number of type INT" in output
        ), output
        assert "map[" not in output
    for command, change, words in IN_NO_ORDER:
        stack.configure(cluster(3, heap="2g", **change, **settings))
        output = " ".join(stack.project.failed_output(command=command).split())
        for word in ("nothing was changed", *words):
            assert word in output, output
        assert "map[" not in output
    assert ids(stack) == running_instances


@pytest.mark.combination
def test_a_connected_vpc_has_routes_names_and_access(stack: Stack) -> None:
    ec2, route53 = stack.server.client("ec2"), stack.server.client("route53")
    other_vpc = ec2.create_vpc(CidrBlock="10.60.0.0/16")["Vpc"]["VpcId"]
    own_vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    peering_answer = ec2.create_vpc_peering_connection(VpcId=own_vpc, PeerVpcId=other_vpc)
    peering = peering_answer["VpcPeeringConnection"]["VpcPeeringConnectionId"]
    old_holdings = stack.server.holdings()
    analytics = {"id": other_vpc, "cidr": "10.60.0.0/16", "peering": peering}
    zone_settings = {"naming": "zone", "zone": {"name": "kafka.example.com"}}
    settings: dict[str, Any] = {**zone_settings, "deletion_protection": False, "data": "delete"}
    stack.configure(cluster(connected={"analytics": {**analytics, "associate": False}}, **settings))
    refusal = " ".join(stack.project.failed_output(command="preview").split())
    assert "the private zone kafka.example.com is not associated with it [KL026]" in refusal
    assert not stack.instances()

    stack.configure(cluster(connected={"analytics": analytics}, **settings))
    assert f"whether routes lead to {other_vpc} (analytics) and back is not known" in " ".join(
        stack.project.up().split()
    )
    stack.configure(cluster(connected={"analytics": {**analytics, "routed": True}}, **settings))
    stack.project.up()
    zones = route53.list_hosted_zones_by_vpc(VPCId=other_vpc, VPCRegion=REGION)
    assert [summary["Name"] for summary in zones["HostedZoneSummaries"]] == ["kafka.example.com."]
    routes = [
        route
        for table in ec2.describe_route_tables()["RouteTables"]
        for route in table["Routes"]
        if route.get("VpcPeeringConnectionId") == peering
    ]
    assert len(routes) == 4
    assert {route["DestinationCidrBlock"] for route in routes} == {"10.60.0.0/16"}
    group_rules = ec2.describe_security_group_rules()["SecurityGroupRules"]
    assert {rule["FromPort"] for rule in group_rules if rule.get("CidrIpv4") == "10.60.0.0/16"} == {
        19092
    }
    assert "unchanged" in stack.project.up("--refresh", "--expect-no-changes")
    stack.project.destroy()
    assert stack.server.holdings() == old_holdings


@pytest.mark.combination
def test_one_listener_for_both_scopes(stack: Stack) -> None:
    stack.configure(cluster(**ONE_LISTENER))
    stack.project.up()
    (text,) = stack.advertised().values()
    assert text.startswith("PLAINTEXT://ec2-")


def own_names(stack: Stack) -> dict[str, Any]:
    """A cluster with names of a zone, whose public half is there."""
    answer = stack.server.client("route53").create_hosted_zone(
        Name="example.com", CallerReference="the test's"
    )
    zone = answer["HostedZone"]["Id"].rpartition("/")[2]
    zone_settings = {**OWN_ZONE["zone"], "public_zone_id": zone}
    return cluster(2, **{**TWO_LISTENERS, **OWN_ZONE, "zone": zone_settings})


@pytest.mark.combination
def test_own_names_are_asked_for_before_any_instance(stack: Stack) -> None:
    cluster_settings = own_names(stack)
    with dns_server({}) as empty_server:
        stack.configure(cluster_settings, resolver_config(empty_server))
        output = stack.project.failed_output()
    assert "broker-1.kafka.example.com" in output and "KL011" in output
    assert not stack.instances()

    with dns_server({"broker-1.kafka.example.com": ("203.0.113.99",)}) as wrong_server:
        stack.configure(cluster_settings, resolver_config(wrong_server))
        output = stack.project.failed_output()
    assert "203.0.113.99" in output and "KL012" in output
    assert not stack.instances()

    ec2 = stack.server.client("ec2")
    public = {
        next(tag["Value"] for tag in address["Tags"] if tag["Key"] == "Name"): address["PublicIp"]
        for address in ec2.describe_addresses()["Addresses"]
    }
    records = {f"broker-{id}.kafka.example.com": (public[f"test-broker-{id}"],) for id in (1, 2)}
    with dns_server(records) as right_server:
        stack.configure(cluster_settings, resolver_config(right_server))
        stack.project.up()
    assert set(stack.instances()) == {"test-broker-1", "test-broker-2"}
    assert "EXTERNAL://broker-2.kafka.example.com:9092" in stack.advertised()["test-broker-2"]


def resolver_config(server: str) -> dict[str, Any]:
    """The gate's configuration with ``server`` as the resolver of external clients."""
    return {"names": {"resolvers": {"external": [server]}, "timeout": 2}}


@pytest.mark.combination
def test_a_vpc_that_gives_no_names_is_said_to_be_one(stack: Stack) -> None:
    ec2 = stack.server.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    zones = [f"{REGION}{letter}" for letter in "ab"]
    subnets = {
        zone: ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.9.{turn}.0/24", AvailabilityZone=zone)[
            "Subnet"
        ]["SubnetId"]
        for turn, zone in enumerate(zones)
    }
    existing_vpc = {"id": vpc, "cidr": "10.9.0.0/16", "zones": zones, "private_subnets": subnets}
    stack.configure(cluster(vpc=existing_vpc))
    output = stack.project.failed_output()
    assert "broker-1: its private DNS name: AWS assigned none; enableDnsHostnames" in output
    assert not stack.instances()

    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    stack.project.up("--refresh")
    assert set(stack.instances()) == {"test-broker-1"}
