"""The AWS double on a moto server, driven by the real CLI."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.aws import official
from tests.doubles.aws.addresses import POOL_VARIABLE
from tests.doubles.aws.server import MotoServer
from tests.doubles.plugin.kind import not_implemented
from tests.e2e.aws_project import Project, aws_project

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(600)]

NETWORK = """
vpc = aws.ec2.Vpc("vpc", cidr_block="10.20.0.0/16", enable_dns_hostnames=True, tags={"Name": "k"})
gateway = aws.ec2.InternetGateway("gateway", vpc_id=vpc.id)
subnet = aws.ec2.Subnet(
    "subnet", vpc_id=vpc.id, cidr_block="10.20.0.0/24", availability_zone="us-west-2a"
)
group = aws.ec2.SecurityGroup("group", vpc_id=vpc.id, description="brokers")
interface = aws.ec2.NetworkInterface(
    "interface", subnet_id=subnet.id, security_groups=[group.id], private_ips=["10.20.0.10"]
)
address = aws.ec2.Eip("address", domain="vpc", opts=pulumi.ResourceOptions(depends_on=[gateway]))
binding = aws.ec2.EipAssociation(
    "binding", allocation_id=address.id, network_interface_id=interface.id
)
"""
BROKER = """
image = aws.ssm.get_parameter(
    name="/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-arm64"
)
role = aws.iam.Role(
    "role",
    assume_role_policy=json.dumps({{
        "Version": "2012-10-17",
        "Statement": [{{
            "Effect": "Allow",
            "Principal": {{"Service": "ec2.amazonaws.com"}},
            "Action": "sts:AssumeRole",
        }}],
    }}),
)
aws.iam.RolePolicyAttachment(
    "managed", role=role.name, policy_arn="arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
)
profile = aws.iam.InstanceProfile("profile", role=role.name)
broker = aws.ec2.Instance(
    "broker",
    ami={ami},
    instance_type="t4g.small",
    iam_instance_profile=profile.name,
    primary_network_interface={{"network_interface_id": interface.id}},
    user_data={user_data},
    user_data_replace_on_change=True,
    metadata_options={{"http_tokens": "required", "http_put_response_hop_limit": 1}},
    root_block_device={{"volume_size": 20, "volume_type": "gp3", "encrypted": True}},
    opts=pulumi.ResourceOptions(delete_before_replace={first}),
)
volume = aws.ebs.Volume(
    "volume", availability_zone=subnet.availability_zone, size=50, type="gp3", encrypted=True
)
aws.ec2.VolumeAttachment(
    "data",
    volume_id=volume.id,
    instance_id=broker.id,
    device_name="/dev/sdf",
    stop_instance_before_detaching=True,
)
pulumi.export("broker", broker.id)
pulumi.export("interface", interface.id)
pulumi.export("address", address.id)
pulumi.export("volume", volume.id)
pulumi.export("names", {{
    "private": interface.private_dns_name,
    "public": address.public_dns,
    "of instance": broker.public_dns,
}})
"""
AROUND = """
table = aws.ec2.RouteTable("table", vpc_id=vpc.id)
aws.ec2.Route(
    "out", route_table_id=table.id, destination_cidr_block="0.0.0.0/0", gateway_id=gateway.id
)
aws.ec2.RouteTableAssociation("way", subnet_id=subnet.id, route_table_id=table.id)
aws.ec2.VpcEndpoint(
    "s3",
    vpc_id=vpc.id,
    service_name=f"com.amazonaws.{aws.get_region().region}.s3",
    route_table_ids=[table.id],
)
bucket = aws.s3.Bucket("reports", force_destroy=True)
aws.s3.BucketPublicAccessBlock("closed", bucket=bucket.id, block_public_acls=True)
aws.ec2.FlowLog(
    "flows",
    vpc_id=vpc.id,
    traffic_type="ALL",
    log_destination_type="s3",
    log_destination=bucket.arn,
)
aws.vpc.SecurityGroupIngressRule(
    "clients",
    security_group_id=group.id,
    ip_protocol="tcp",
    from_port=9092,
    to_port=9092,
    cidr_ipv4="198.51.100.0/24",
)
aws.vpc.SecurityGroupIngressRule(
    "brokers",
    security_group_id=group.id,
    ip_protocol="tcp",
    from_port=9093,
    to_port=9093,
    referenced_security_group_id=group.id,
)
aws.vpc.SecurityGroupEgressRule(
    "everywhere", security_group_id=group.id, ip_protocol="-1", cidr_ipv4="0.0.0.0/0"
)
inside = aws.route53.Zone("inside", name="kafka.internal", vpcs=[{"vpc_id": vpc.id}])
outside = aws.route53.Zone("outside", name="kafka.example.com")
record = aws.route53.Record(
    "private",
    zone_id=inside.id,
    name="broker-1.kafka.internal",
    type="A",
    ttl=60,
    records=[interface.private_ip],
)
public = aws.route53.Record(
    "public", zone_id=outside.id, name="broker-1", type="A", ttl=60, records=[address.public_ip]
)
aws.ssm.Parameter("ready", name="/kafka/ready/1", type="String", insecure_value="no")
pulumi.export("record", public.fqdn)
pulumi.export("account", aws.get_caller_identity().account_id)
"""


@pytest.fixture
def project(server: MotoServer, tmp_path: Path) -> Iterator[Project]:
    """A project whose resources, in the end, are destroyed, and then nothing of them is left."""
    before = server.holdings()
    made = aws_project(tmp_path / "p", server, {POOL_VARIABLE: "203.0.113.8/29"})
    yield made
    made.destroy()
    assert server.holdings() == before


def broker(user_data: str = '"#!/bin/sh\\n"', first: bool = True, ami: str = "image.value") -> str:
    """The program of one broker on an interface, an address and a volume that outlive it."""
    return NETWORK + BROKER.format(user_data=user_data, first=first, ami=ami)


def instance(server: MotoServer, id: str) -> dict[str, Any]:
    found = server.client("ec2").describe_instances(InstanceIds=[id])
    described: dict[str, Any] = found["Reservations"][0]["Instances"][0]
    return described


def made_up(project: Project) -> list[str]:
    """What the state holds that no resource of the official package has."""
    found = []
    for item in project.state():
        outputs = {name: value for name, value in item["outputs"].items() if name[:2] != "__"}
        found += list(not_implemented(outputs, official.outputs(item["type"])))
    return found


def private_name(project: Project) -> str:
    """Of the interface, as the state knows it; the program's outputs are of its last run."""
    (name,) = (
        item["outputs"]["privateDnsName"]
        for item in project.state()
        if item["type"] == "aws:ec2/networkInterface:NetworkInterface"
    )
    return str(name)


def test_a_stack_comes_up_stays_and_goes(project: Project) -> None:
    before = project.server.holdings()
    project.write(broker() + AROUND)
    preview = project.runs("preview")
    assert "+ 29 to create" in preview
    for name in ("private", "public", "of instance"):
        assert any(name in line and "[unknown]" in line for line in preview.splitlines())
    assert 'account  : "123456789012"' in preview
    assert project.server.holdings() == before

    assert "+ 29 created" in project.up()
    found = project.outputs()
    assert found["names"] == {
        "private": "ip-10-20-0-10.us-west-2.compute.internal",
        "public": "ec2-203-0-113-9.us-west-2.compute.amazonaws.com",
        "of instance": "ec2-203-0-113-9.us-west-2.compute.amazonaws.com",
    }
    assert found["record"] == "broker-1.kafka.example.com"
    described = instance(project.server, found["broker"])
    assert described["State"]["Name"] == "running"
    assert described["NetworkInterfaces"][0]["NetworkInterfaceId"] == found["interface"]
    assert described["MetadataOptions"]["HttpTokens"] == "required"
    assert {item["DeviceName"] for item in described["BlockDeviceMappings"]} == {
        "/dev/xvda",
        "/dev/sdf",
    }
    assert made_up(project) == []

    for flags in ((), ("--refresh",)):
        output = project.up(*flags)
        assert "29 unchanged" in output and "created" not in output
    assert project.outputs() == found

    project.destroy()
    assert project.server.holdings() == before


def test_changed_user_data_replace_the_instance_and_nothing_else(project: Project) -> None:
    project.write(broker())
    project.up()
    old = project.outputs()

    project.write(broker('"#!/bin/sh\\n# changed\\n"', first=False))
    output = project.fails()
    assert "RunInstances: InvalidNetworkInterface.InUse: interface" in output
    assert f"is in use by {old['broker']}" in output
    assert instance(project.server, old["broker"])["State"]["Name"] == "running"

    project.write(broker('"#!/bin/sh\\n# changed\\n"'))
    assert "+-2 replaced" in project.up(), "the instance, and what binds its volume to it"
    new = project.outputs()
    assert new["broker"] != old["broker"]
    kept = ("interface", "address", "volume", "names")
    assert {name: new[name] for name in kept} == {name: old[name] for name in kept}
    assert instance(project.server, old["broker"])["State"]["Name"] == "terminated"
    volumes = project.server.client("ec2").describe_volumes(VolumeIds=[new["volume"]])["Volumes"]
    assert [item["InstanceId"] for item in volumes[0]["Attachments"]] == [new["broker"]]
    assert "unchanged" in project.up("--refresh")


def test_a_preview_knows_what_stays_and_not_what_is_to_come(project: Project) -> None:
    project.write(broker())
    project.up()
    before, old = project.server.holdings(), project.outputs()

    project.write(broker().replace('tags={"Name": "k"}', 'tags={"Name": "other"}'))
    preview = project.runs("preview", "--diff")
    assert "~ 1 to update" in preview and "[unknown]" not in preview

    second = '\nsecond = aws.ec2.Eip("second", domain="vpc")\n'
    user_data = 'second.public_dns.apply(lambda name: "#!/bin/sh\\n# " + name)'
    project.write(broker(user_data).replace("\nimage =", second + "image ="))
    preview = project.runs("preview", "--diff")
    assert "+ 1 to create" in preview and "+-2 to replace" in preview
    assert project.server.holdings() == before

    project.up()
    new = project.outputs()
    assert new["names"] == old["names"] and new["broker"] != old["broker"]
    attribute = project.server.client("ec2").describe_instance_attribute(
        InstanceId=new["broker"], Attribute="userData"
    )
    assert attribute["UserData"]["Value"]


def test_a_failure_half_way_is_gone_on_from(project: Project) -> None:
    project.write(broker(ami='"ami-00000000000000000"'))
    output = project.fails()
    assert "RunInstances: InvalidAMIID.NotFound: the image id ami-00000000000000000" in output
    held = project.server.holdings()
    assert "aws:ec2/networkInterface:NetworkInterface" in project.types()
    assert "aws:ec2/instance:Instance" not in project.types()

    project.write(broker())
    assert "created" in project.up()
    kept = {item for item in held if item.split()[0] not in ("Volumes", "Reservations")}
    assert kept <= project.server.holdings()
    assert project.types().count("aws:ec2/vpc:Vpc") == 1
    assert "unchanged" in project.up()


def test_what_came_into_being_and_could_not_be_finished_is_known(project: Project) -> None:
    gateway = 'aws.ec2.InternetGateway("gateway", vpc_id={})\n'
    project.write(gateway.format('"vpc-00000000000000000"'))
    assert "AttachInternetGateway: InvalidVpcID.NotFound" in project.fails()
    assert project.types() == ["aws:ec2/internetGateway:InternetGateway"]
    held = {item for item in project.server.holdings() if item.startswith("InternetGateways")}

    vpc = 'vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16")\n'
    project.write(vpc + gateway.format("vpc.id"))
    assert "~ 1 updated" in project.up()
    now = {item for item in project.server.holdings() if item.startswith("InternetGateways")}
    assert now == held


def test_a_refresh_sees_what_others_did(project: Project) -> None:
    ec2 = project.server.client("ec2")
    project.write(broker())
    project.up()
    old = project.outputs()

    ec2.terminate_instances(InstanceIds=[old["broker"]])
    ec2.create_tags(Resources=[old["interface"]], Tags=[{"Key": "stray", "Value": "1"}])
    assert "unchanged" in project.up(), "only a refresh looks"
    output = project.up("--refresh")
    assert "+ 2 created" in output and "~ 1 updated" in output
    new = project.outputs()
    assert new["broker"] != old["broker"] and new["volume"] == old["volume"]
    interfaces = ec2.describe_network_interfaces(NetworkInterfaceIds=[new["interface"]])
    assert interfaces["NetworkInterfaces"][0]["TagSet"] == []

    ec2.modify_vpc_attribute(
        VpcId=interfaces["NetworkInterfaces"][0]["VpcId"], EnableDnsHostnames={"Value": False}
    )
    project.runs("refresh", "--yes", "--skip-preview")
    assert private_name(project) == "", "as AWS, which takes the name away"
    assert "~ 1 updated" in project.up()
    project.runs("refresh", "--yes", "--skip-preview")
    assert private_name(project) == old["names"]["private"]


REFUSED = {
    'aws.ec2.Vpc("v", cidr_block="10.0.0.0/16", enable_network_address_usage_metrics=True)': (
        "the input enableNetworkAddressUsageMetrics is not implemented by this test double"
    ),
    'aws.Provider("p", profile="x")': (
        "the input profile is not implemented by this test double of the AWS provider"
    ),
    'aws.sqs.Queue("q")': "aws:sqs/queue:Queue is not implemented by this test double",
    'aws.lb.LoadBalancer("l", load_balancer_type="gateway")': (
        "this test double of the AWS provider knows only network"
    ),
    "aws.ec2.get_vpcs()": "aws:ec2/getVpcs:getVpcs is not implemented by this test double",
    'aws.ec2.get_ami(owners=["self"], include_deprecated=True)': (
        "the input includeDeprecated is not implemented by this test double"
    ),
}


def test_what_is_not_implemented_is_refused_by_name(project: Project) -> None:
    for program, said in REFUSED.items():
        project.write(program)
        for command in (["preview"], ["up", "--yes", "--skip-preview"]):
            done = project.pulumi(*command)
            assert done.returncode != 0 and said in done.stdout, done.stdout
    assert project.types() == []


def test_the_providers_tags_are_on_everything(project: Project) -> None:
    project.configure(defaultTags={"tags": {"owner": "me"}})
    program = 'pulumi.export("tags", vpc.tags)\npulumi.export("all", vpc.tags_all)\n'
    project.write(NETWORK + program)
    project.up()
    assert project.outputs() == {"tags": {"Name": "k"}, "all": {"Name": "k", "owner": "me"}}
    assert "unchanged" in project.up("--refresh")

    project.configure(defaultTags={"tags": {"owner": "you"}})
    assert "~ 6 updated" in project.up(), "all but the association, which takes none"
    assert project.outputs()["all"] == {"Name": "k", "owner": "you"}


def test_names_have_the_form_of_their_region_and_what_is_there_is_found(project: Project) -> None:
    project.write(
        """
        region = {"region": "us-east-1"}
        vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", enable_dns_hostnames=True, **region)
        subnet = aws.ec2.Subnet("subnet", vpc_id=vpc.id, cidr_block="10.0.0.0/24", **region)
        interface = aws.ec2.NetworkInterface(
            "interface", subnet_id=subnet.id, private_ips=["10.0.0.9"], **region
        )
        address = aws.ec2.Eip("address", domain="vpc", address="198.51.100.7", **region)
        pulumi.export("private", interface.private_dns_name)
        pulumi.export("public", address.public_dns)
        pulumi.export("arn", vpc.arn)
        found = aws.ec2.get_vpc_output(id=vpc.id, region="us-east-1")
        pulumi.export("found", [found.cidr_block, found.enable_dns_hostnames])
        pulumi.export(
            "subnets",
            aws.ec2.get_subnets_output(
                filters=[{"name": "vpc-id", "values": [subnet.vpc_id]}], region="us-east-1"
            ).ids,
        )
        pulumi.export("subnet", subnet.id)
        zones = aws.get_availability_zones(state="available")
        pulumi.export("zones", zones.names[:2])
        image = aws.ec2.get_ami(
            owners=["amazon"],
            most_recent=True,
            filters=[{"name": "name", "values": ["al2023-ami-2023*arm64"]}],
        )
        pulumi.export("architecture", image.architecture)
        """.replace("        east = pulumi.InvokeOptions(provider=None)\n", "")
    )
    project.up()
    found = project.outputs()
    assert found["private"] == "ip-10-0-0-9.ec2.internal"
    assert found["public"] == "ec2-198-51-100-7.compute-1.amazonaws.com"
    assert found["arn"].startswith("arn:aws:ec2:us-east-1:123456789012:vpc/vpc-")
    assert found["found"] == ["10.0.0.0/16", True]
    assert found["subnets"] == [found["subnet"]]
    assert found["zones"] == ["us-west-2a", "us-west-2b"]
    assert found["architecture"] == "arm64"
    assert "unchanged" in project.up("--refresh")


def test_without_a_server_the_message_says_so(tmp_path: Path, server: MotoServer) -> None:
    project = aws_project(tmp_path / "p", server)
    project.configure(endpoints=[{"ec2": "http://127.0.0.1:9"}])
    project.write('aws.ec2.Vpc("v", cidr_block="10.0.0.0/16")')
    assert 'Could not connect to the endpoint URL: "http://127.0.0.1:9/"' in project.fails()
    project.write('aws.s3.Bucket("b")')
    assert "no endpoint for s3: this test double of the AWS provider" in project.fails()
    assert project.types() == []
