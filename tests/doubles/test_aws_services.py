"""Groups, zones, routes, parameters, buckets and roles of the AWS double: what they refuse, and
what they keep when they change."""

from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from earshot.aws.roles import over_tls
from tests.doubles.aws_world import POLICY, World
from tests.doubles.plugin.kind import PartlyCreated, ProviderError


def test_a_group_has_the_rules_it_was_given_and_no_more(world: World) -> None:
    group = world.make("SecurityGroup", name="g", vpcId=world.vpc.id)
    assert (group["ingress"], group["egress"]) == ([], []), "EC2's own rule is gone"
    port = {"protocol": "tcp", "fromPort": 9092, "toPort": 9092}
    clients = [
        port | {"cidrBlocks": ["10.0.0.0/8", "172.16.0.0/12"], "description": "ours"},
        port | {"cidrBlocks": ["198.51.100.0/24"], "description": "theirs"},
    ]
    group.update(ingress=clients)
    assert group.refresh() == []
    stray = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}
    world.ec2().authorize_security_group_ingress(
        GroupId=group.id, IpPermissions=[stray | {"IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
    )
    assert group.refresh() == ["ingress"]
    group.update()
    assert group.refresh() == []
    assert group["ingress"] == clients


def test_a_rule_of_a_range_keeps_its_id_when_it_changes(world: World) -> None:
    rule = world.make(
        "SecurityGroupIngressRule",
        securityGroupId=world.group.id,
        ipProtocol="tcp",
        fromPort=9092,
        toPort=9092,
        cidrIpv4="198.51.100.0/24",
    )
    rule.update(cidrIpv4="203.0.113.0/24", toPort=9094, description="clients")
    assert rule.refresh() == []
    assert rule["cidrIpv4"] == "203.0.113.0/24"
    assert (rule["toPort"], rule["description"]) == (9094, "clients")


def test_a_private_zone_is_private_and_has_the_vpcs_it_is_given(world: World) -> None:
    zone, route53 = world.private_zone, world.cloud.client("route53")
    other_vpc = world.make("Vpc", cidrBlock="10.1.0.0/16")
    assert route53.get_hosted_zone(Id=zone.id)["HostedZone"]["Config"]["PrivateZone"] is True
    zone.update(vpcs=[{"vpcId": other_vpc.id}, {"vpcId": world.vpc.id}])
    assert zone.refresh() == []
    zone.update(vpcs=[{"vpcId": other_vpc.id}], comment="moved")
    assert zone.refresh() == []
    assert [zone_vpc["VPCId"] for zone_vpc in route53.get_hosted_zone(Id=zone.id)["VPCs"]] == [
        other_vpc.id
    ]

    public = world.make("Zone", name="kafka.example.com")
    assert route53.get_hosted_zone(Id=public.id)["HostedZone"]["Config"]["PrivateZone"] is False
    assert public["vpcs"] == []
    assert public.kind.needs_replacement("vpcs", {"vpcs": []}, {"vpcs": [{"vpcId": other_vpc.id}]})


def test_records_are_found_by_their_whole_name(world: World) -> None:
    zone = world.private_zone
    record_inputs = {"zoneId": zone.id, "type": "A", "ttl": 60, "records": ["10.0.0.10"]}
    for name in ("Broker-1", "broker-2.kafka.internal", "broker-3.kafka.internal."):
        record = world.make("Record", name=name, **record_inputs)
        assert record["fqdn"] == f"{name.lower().partition('.')[0]}.kafka.internal"
        assert record.refresh() == []
    record.update(records=["10.0.0.11"], ttl=30)
    assert (record.refresh(), record["records"], record["ttl"]) == ([], ["10.0.0.11"], 30)
    with pytest.raises(ProviderError, match=r"InvalidChangeBatch: .* already exists"):
        world.make("Record", name="broker-1", **record_inputs)
    text_record = world.make(
        "Record", name="note", **record_inputs | {"type": "TXT", "records": ["two words"]}
    )
    assert (text_record.refresh(), text_record["records"]) == ([], ["two words"])


def test_a_record_that_was_deleted_comes_again(world: World) -> None:
    """moto refuses the record while there is a later name."""
    zone = world.private_zone
    record_inputs = {"zoneId": zone.id, "type": "A", "ttl": 60, "records": ["10.0.0.10"]}
    deleted_record = world.make("Record", name="again-1", **record_inputs)
    world.make("Record", name="again-2", **record_inputs)
    deleted_record.delete()
    assert deleted_record.read() is None
    assert world.make("Record", name="again-1", **record_inputs).refresh() == []


def test_a_route_leads_elsewhere_in_place(world: World) -> None:
    route = world.make(
        "Route",
        routeTableId=world.table.id,
        destinationCidrBlock="0.0.0.0/0",
        gatewayId=world.gateway.id,
    )
    nat = world.make("NatGateway", subnetId=world.subnet.id, allocationId=world.address().id)
    del route.inputs["gatewayId"]
    route.update(natGatewayId=nat.id)
    assert route.refresh() == []
    assert route["natGatewayId"] == nat.id and route.state.get("gatewayId") is None


def test_a_tables_own_routes_are_its_only_ones(world: World) -> None:
    table = world.make("RouteTable", vpcId=world.vpc.id, routes=[])
    out = {"cidrBlock": "0.0.0.0/0", "gatewayId": world.gateway.id}
    table.update(routes=[out])
    assert table.refresh() == []
    world.ec2().create_route(
        RouteTableId=table.id, DestinationCidrBlock="10.9.0.0/16", GatewayId=world.gateway.id
    )
    assert table.refresh() == ["routes"]
    table.update()
    assert (table.refresh(), table["routes"]) == ([], [out])


def test_what_is_there_and_not_as_it_should_be_is_kept_with_its_error(world: World) -> None:
    with pytest.raises(PartlyCreated, match="AttachInternetGateway: InvalidVpcID") as caught:
        world.make("InternetGateway", vpcId="vpc-00000000000000000")
    kind, id = world.gateway.kind, caught.value.id
    other_vpc = world.make("Vpc", cidrBlock="10.1.0.0/16")
    state = kind.update(world.cloud, id, caught.value.state, {"vpcId": other_vpc.id})
    assert state["vpcId"] == other_vpc.id


def test_a_change_of_what_is_gone_says_so(world: World) -> None:
    world.group.delete()
    with pytest.raises(ProviderError, match=f"{world.group.id} exists no more; a refresh takes it"):
        world.group.update(description="x")


def test_a_parameter_that_is_there_is_refused_and_its_versions_count(world: World) -> None:
    parameter_inputs = {"name": f"/kafka/{world.mark}", "type": "String", "insecureValue": "1"}
    parameter = world.make("Parameter", **parameter_inputs)
    with pytest.raises(ClientError, match="ParameterAlreadyExists"):
        world.make("Parameter", **parameter_inputs)
    parameter.update(insecureValue="2")
    assert (parameter.refresh(), parameter["version"]) == ([], 2)
    assert "value" not in parameter.state


def test_a_bucket_with_something_in_it_goes_only_if_it_is_forced(world: World) -> None:
    world.cloud.client("s3").put_object(Bucket=world.bucket.id, Key="report", Body=b"1")
    with pytest.raises(ClientError, match="BucketNotEmpty"):
        world.bucket.delete()
    world.bucket.update(forceDestroy=True)
    world.bucket.delete()
    assert world.bucket.read() is None


def asset(file: Path, hash: str) -> dict[str, Any]:
    return {"asset": True, "path": str(file), "hash": hash}


def test_an_object_is_what_its_file_was_and_is_replaced_by_another(
    world: World, tmp_path: Path
) -> None:
    old_file, new_file = tmp_path / "1", tmp_path / "2"
    old_file.write_text("one")
    new_file.write_text("two")
    bucket_object = world.make(
        "BucketObject",
        bucket=world.bucket.id,
        key="k",
        source={"asset": True, "path": str(old_file), "hash": "1"},
    )
    s3 = world.cloud.client("s3")
    assert s3.get_object(Bucket=world.bucket.id, Key="k")["Body"].read() == b"one"
    assert bucket_object.refresh() == []
    bucket_object.inputs = bucket_object.inputs | {"source": asset(new_file, "2")}
    assert bucket_object.refresh() == ["source"]
    bucket_object.update()
    assert s3.get_object(Bucket=world.bucket.id, Key="k")["Body"].read() == b"two"


def test_a_bucket_that_is_for_tls_alone_still_answers_here(world: World) -> None:
    """moto, which ignores conditions, would refuse everybody."""
    arn = f"arn:aws:s3:::{world.bucket.id}"
    policy = world.make("BucketPolicy", bucket=world.bucket.id, policy=over_tls(arn))
    s3 = world.cloud.client("s3")
    s3.put_object(Bucket=world.bucket.id, Key="k", Body=b"1")
    assert s3.get_object(Bucket=world.bucket.id, Key="k")["Body"].read() == b"1"
    s3.put_bucket_policy(Bucket=world.bucket.id, Policy=POLICY)
    assert policy.refresh() == ["policy"]
    policy.update()
    assert policy.refresh() == []
