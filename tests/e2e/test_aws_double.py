"""The AWS double with the real CLI: refused inputs, and the state of partly created resources.

Stacks that come up, change and go on the double are in the tests of the product.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles.aws.server import MotoServer
from tests.e2e.aws_project import Project, aws_project

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(600)]


@pytest.fixture
def project(server: MotoServer, tmp_path: Path) -> Iterator[Project]:
    """A project whose resources, in the end, are destroyed, and then nothing of them is left."""
    old_holdings = server.holdings()
    new_project = aws_project(tmp_path / "p", server)
    yield new_project
    new_project.destroy()
    assert server.holdings() == old_holdings


def test_what_came_into_being_and_could_not_be_finished_is_known(project: Project) -> None:
    gateway = 'aws.ec2.InternetGateway("gateway", vpc_id={})\n'
    project.write(gateway.format('"vpc-00000000000000000"'))
    assert "AttachInternetGateway: InvalidVpcID.NotFound" in project.failed_output()
    assert project.types() == ["aws:ec2/internetGateway:InternetGateway"]
    partial_holdings = {
        holding for holding in project.server.holdings() if holding.startswith("InternetGateways")
    }

    vpc = 'vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16")\n'
    project.write(vpc + gateway.format("vpc.id"))
    assert "~ 1 updated" in project.up()
    current_holdings = {
        holding for holding in project.server.holdings() if holding.startswith("InternetGateways")
    }
    assert current_holdings == partial_holdings


REFUSED = {
    'aws.ec2.Vpc("v", cidr_block="10.0.0.0/16", enable_network_address_usage_metrics=True)':
    ("the input enableNetworkAddressUsageMetrics is not implemented by this test double"),
    'aws.Provider("p", profile="x")':
    ("the input profile is not implemented by this test double of the AWS provider"),
    'aws.sqs.Queue("q")': "aws:sqs/queue:Queue is not implemented by this test double",
    'aws.lb.LoadBalancer("l", load_balancer_type="gateway")':
    ("this test double of the AWS provider knows only network"),
    "aws.ec2.get_vpcs()": "aws:ec2/getVpcs:getVpcs is not implemented by this test double",
    'aws.ec2.get_vpc(state="available")':
    ("the input state is not implemented by this test double"),
}  # fmt: skip


def test_what_is_not_implemented_is_refused_by_name(project: Project) -> None:
    for program, error in REFUSED.items():
        project.write(program)
        for command in (["preview"], ["up", "--yes", "--skip-preview"]):
            completed = project.pulumi(*command)
            assert completed.returncode != 0 and error in completed.stdout, completed.stdout
    assert project.types() == []
