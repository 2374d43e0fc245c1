"""The pack on a plain program of pulumi-aws: the real CLI, on a moto server."""

import json
from pathlib import Path

import pytest

from tests.doubles.aws.addresses import POOL_VARIABLE
from tests.doubles.aws.server import REGION, MotoServer
from tests.e2e.aws_project import Project, aws_project
from toolchain.paths import POLICIES

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

INSTANCE = "aws:ec2/instance:Instance"
OFFICE = "203.0.113.0/24"
SILENT_RESOLVERS = {"names": {"resolvers": {"external": ["127.0.0.1:1"]}, "timeout": 0.5}}
PROGRAM = """
vpc = aws.ec2.Vpc("vpc", cidr_block="10.20.0.0/16", enable_dns_hostnames={hostnames})
gateway = aws.ec2.InternetGateway("gateway", vpc_id=vpc.id)
subnet = aws.ec2.Subnet(
    "subnet", vpc_id=vpc.id, cidr_block="10.20.0.0/24", availability_zone="us-west-2a"
)
group = aws.ec2.SecurityGroup("kafka", vpc_id=vpc.id, description="brokers")
for port, source in {ingress}.items():
    aws.vpc.SecurityGroupIngressRule(
        f"from-{{port}}", security_group_id=group.id, ip_protocol="tcp",
        from_port=port, to_port=port, cidr_ipv4=source,
    )
address = aws.ec2.Eip("address", domain="vpc", opts=pulumi.ResourceOptions(depends_on=[gateway]))
image = aws.ssm.get_parameter(
    name="/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-arm64"
)
broker = aws.ec2.Instance(
    "broker",
    ami=image.value,
    instance_type="t4g.small",
    subnet_id=subnet.id,
    private_ip="10.20.0.10",
    vpc_security_group_ids=[group.id],
    user_data={external}.apply(lambda external: '''#!/bin/bash
cat > /opt/kafka/config/server.properties <<'END'
node.id=1
process.roles=broker,controller
controller.quorum.voters=1@ip-10-20-0-10.us-west-2.compute.internal:9093
listeners=INTERNAL://:19092,EXTERNAL://:9092,CONTROLLER://:9093
advertised.listeners=INTERNAL://ip-10-20-0-10.us-west-2.compute.internal:19092,'''
+ f'EXTERNAL://{{external}}:9092,CONTROLLER://ip-10-20-0-10.us-west-2.compute.internal:9093'
+ '''
listener.security.protocol.map=INTERNAL:PLAINTEXT,EXTERNAL:SSL,CONTROLLER:PLAINTEXT
inter.broker.listener.name=INTERNAL
controller.listener.names=CONTROLLER
END
'''),
)
if {elastic}:
    aws.ec2.EipAssociation("binding", allocation_id=address.id, instance_id=broker.id)
"""
OPEN = {19092: "10.20.0.0/16", 9092: OFFICE}
OWN = "address.public_dns"
PRIVATE = "pulumi.Output.from_input('ip-10-20-0-10.us-west-2.compute.internal')"


@pytest.fixture
def project(server: MotoServer, tmp_path: Path) -> Project:
    server.reset()
    pack = tmp_path / "pack.json"
    pack.write_text(json.dumps(SILENT_RESOLVERS))
    environment = {
        POOL_VARIABLE: "198.51.100.0/24",
        "PULUMI_OPTION_POLICY_PACK": str(POLICIES),
        "PULUMI_OPTION_POLICY_PACK_CONFIG": str(pack),
    }
    assert REGION == "us-west-2", "as the program has it"
    return aws_project(tmp_path / "project", server, environment)


def write(
    project: Project,
    external: str = OWN,
    hostnames: bool = True,
    elastic: bool = True,
    ingress: dict[int, str] | None = None,
) -> None:
    project.write(
        PROGRAM.format(
            external=external,
            hostnames=hostnames,
            elastic=elastic,
            ingress=OPEN if ingress is None else ingress,
        )
    )


@pytest.mark.combination
def test_what_is_well_is_made_and_a_later_mistake_is_stopped_in_preview(project: Project) -> None:
    write(project)
    assert "user data: not known yet" in project.run("preview")
    project.up()
    assert INSTANCE in project.types()

    write(project, ingress={**OPEN, 9092: "0.0.0.0/0"})
    assert "port 9092 is open to more than its clients" in project.failed_output(command="preview")
    write(project, ingress={19092: OPEN[19092]})
    assert "no security group opens port 9092" in project.failed_output(command="preview")
    write(project, hostnames=False)
    assert "enableDnsHostnames of the VPC: off" in project.failed_output(command="preview")
    project.destroy()


def test_a_private_name_for_external_clients_is_stopped_before_the_instance(
    project: Project,
) -> None:
    write(project, external=PRIVATE)
    assert "listener EXTERNAL (scope external)" in project.failed_output(command="preview")
    output = project.failed_output()  # without a preview before it
    assert "kl011" in output and "ip-10-20-0-10.us-west-2.compute.internal" in output
    assert INSTANCE not in project.types()
    project.destroy()


@pytest.mark.combination
def test_a_port_that_no_rule_opens_is_stopped_in_the_first_preview_if_names_are_given(
    project: Project,
) -> None:
    external_name = "pulumi.Output.from_input('ec2-198-51-100-1.us-west-2.compute.amazonaws.com')"
    write(project, external=external_name, ingress={19092: OPEN[19092]})
    assert "no security group opens port 9092" in project.failed_output(command="preview")
    assert project.types() == []


@pytest.mark.combination
def test_a_name_whose_address_is_not_the_brokers_to_keep_fails_the_update(project: Project) -> None:
    write(project, elastic=False)
    output = project.failed_output()
    assert "instance broker, broker 1, listener EXTERNAL" in output
    assert INSTANCE in project.types(), "nothing is undone"
    write(project)
    project.up()
    project.destroy()
