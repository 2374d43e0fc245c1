"""The component package as another program uses it: real engine and host, the AWS double."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import components.package
from components.package.provider import PackageProvider
from tests.doubles.aws.addresses import POOL_VARIABLE
from tests.doubles.aws.server import MotoServer, moto_server
from tests.doubles.docker.install import install_docker_double
from tests.e2e.aws_project import Project, aws_project

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

FOLDER = Path(components.package.__file__).parent
NETWORK = '''
class Network(pulumi.ComponentResource):
    """As a kit that is made from the schema has it."""

    def __init__(self, name, **inputs):
        outputs = dict.fromkeys(["vpcId", "publicSubnets", "privateSubnets"])
        super().__init__("earshot:index:AwsNetwork", name, inputs | outputs, remote=True)


network = Network("ground", zones={zones}, cidr="10.30.0.0/20", nat="one", deletionProtection=False)
pulumi.export("vpc", network.vpcId)
pulumi.export("public", network.publicSubnets)
pulumi.export("private", network.privateSubnets)
'''
ZONES = ["us-west-2a", "us-west-2b"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MotoServer]:
    with moto_server(tmp_path_factory.mktemp("moto")) as started:
        yield started


@pytest.fixture
def project(server: MotoServer, tmp_path: Path) -> Iterator[Project]:
    """A project that knows the package by its folder; in the end, nothing of it is left."""
    before = server.holdings()
    made = aws_project(tmp_path / "p", server, {POOL_VARIABLE: "203.0.113.8/29"})
    about = made.folder / "Pulumi.yaml"
    found = yaml.safe_load(about.read_text())
    found["plugins"] = {"providers": [{"name": "earshot", "path": str(FOLDER)}]}
    about.write_text(yaml.safe_dump(found))
    yield made
    made.destroy()
    assert server.holdings() == before


def test_another_program_gets_a_network(project: Project) -> None:
    project.write(NETWORK.format(zones=ZONES))
    assert "vpc" in project.runs("preview")
    project.up()
    found = project.outputs()
    ec2 = project.server.client("ec2")
    for key, third in (("public", 0), ("private", 1)):
        assert list(found[key]) == ZONES
        described = ec2.describe_subnets(SubnetIds=list(found[key].values()))["Subnets"]
        assert {item["VpcId"] for item in described} == {found["vpc"]}
        places = {item["AvailabilityZone"]: item["CidrBlock"] for item in described}
        assert places == {
            "us-west-2a": f"10.30.{third}.0/24",
            "us-west-2b": f"10.30.{2 + third}.0/24",
        }
    assert "created" not in (again := project.up()) and "unchanged" in again
    assert project.outputs() == found


def test_what_cannot_be_is_told_without_a_trace_of_the_host(project: Project) -> None:
    project.write(NETWORK.format(zones=ZONES[:1]))
    done = project.pulumi("preview")
    assert done.returncode != 0
    assert "resource 'ground' has a problem: zones us-west-2a: are 1\n" in done.stdout
    assert "allowed: 2 or 3 distinct zones of one region" in done.stdout
    # the program's own trace is what Pulumi shows of any component that it asks a plugin for
    assert str(FOLDER) not in done.stdout and "EarshotError" not in done.stdout


def test_the_cli_reads_the_schema(project: Project) -> None:
    # the folder's environment has provider packages whose plugins the CLI would fetch otherwise
    install_docker_double(Path(project.environment["PULUMI_HOME"]))
    said = project.runs("package", "get-schema", str(FOLDER))
    text = PackageProvider().schema
    assert text is not None
    wanted = json.loads(text)["resources"]["earshot:index:AwsNetwork"]
    shown = json.loads(said[said.index("{") :])["resources"]["earshot:index:AwsNetwork"]
    assert shown["inputProperties"].keys() == wanted["inputProperties"].keys()
    assert shown["requiredInputs"] == wanted["requiredInputs"]
