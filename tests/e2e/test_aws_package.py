"""The component package as another program uses it: real engine and host, the AWS double."""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import earshot_pulumi.package
import psutil
import pytest
import yaml

from earshot.validation.contract import Contract
from tests.components.constructed import offered
from tests.config.aws_documents import ARCHIVE, EXTERNAL, INTERNAL, OFFICE
from tests.doubles.aws.addresses import POOL_VARIABLE
from tests.doubles.aws.nodes import nodes_reporting
from tests.doubles.aws.server import REGION, MotoServer
from tests.doubles.docker.install import install_docker_plugin
from tests.e2e.aws_project import Project, aws_project

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SILENT_RESOLVERS = {"names": {"resolvers": {"external": ["127.0.0.1:1"]}, "timeout": 0.5}}
FOLDER = Path(earshot_pulumi.package.__file__).parent
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
CLUSTER = """
class Cluster(pulumi.ComponentResource):
    def __init__(self, name, **inputs):
        outputs = dict.fromkeys(["vpcId", "instances", "bootstrap", "contract"])
        super().__init__("earshot:index:AwsCluster", name, inputs | outputs, remote=True)


cluster = Cluster("kafka", **{inputs})
pulumi.export("instances", cluster.instances)
pulumi.export("bootstrap", cluster.bootstrap)
pulumi.export("contract", cluster.contract)
"""
ZONES = ["us-west-2a", "us-west-2b"]


@pytest.fixture
def project(server: MotoServer, tmp_path: Path) -> Iterator[Project]:
    """A project that knows the package by its folder; in the end, nothing of it is left."""
    old_holdings = server.holdings()
    new_project = aws_project(tmp_path / "p", server, {POOL_VARIABLE: "203.0.113.8/29"})
    project_file = new_project.folder / "Pulumi.yaml"
    document = yaml.safe_load(project_file.read_text())
    document["plugins"] = {"providers": [{"name": "earshot", "path": str(FOLDER)}]}
    project_file.write_text(yaml.safe_dump(document))
    yield new_project
    new_project.destroy()
    assert server.holdings() == old_holdings


@pytest.mark.combination
def test_another_program_gets_a_network(project: Project) -> None:
    project.write(NETWORK.format(zones=ZONES))
    assert "vpc" in project.run("preview")
    project.up()
    outputs = project.outputs()
    ec2 = project.server.client("ec2")
    for key, third in (("public", 0), ("private", 1)):
        assert list(outputs[key]) == ZONES
        subnets = ec2.describe_subnets(SubnetIds=list(outputs[key].values()))["Subnets"]
        assert {subnet["VpcId"] for subnet in subnets} == {outputs["vpc"]}
        places = {subnet["AvailabilityZone"]: subnet["CidrBlock"] for subnet in subnets}
        assert places == {
            "us-west-2a": f"10.30.{third}.0/24",
            "us-west-2b": f"10.30.{2 + third}.0/24",
        }
    assert "created" not in (second_output := project.up()) and "unchanged" in second_output
    assert project.outputs() == outputs


@pytest.mark.combination
def test_what_cannot_be_is_told_without_a_trace_of_the_host(project: Project) -> None:
    project.write(NETWORK.format(zones=ZONES[:1]))
    preview = project.pulumi("preview")
    assert preview.returncode != 0
    problem = "AwsNetwork ground: zones: zones us-west-2a: found 1"
    allowed = "allowed: 2 or 3 distinct zones of one region"
    assert f"resource 'ground' has a problem: {problem}; {allowed}" in preview.stdout
    # the program's own trace is what Pulumi shows of any component that it asks a plugin for
    assert str(FOLDER) not in preview.stdout and "EarshotError" not in preview.stdout


def cluster(**changes: Any) -> str:
    """A program with three brokers, whose inputs are as the schema has them."""
    inputs: dict[str, Any] = {
        "region": REGION,
        "vpc": {"zones": [*ZONES, "us-west-2c"]},
        "archive": ARCHIVE,
        "listeners": [INTERNAL, EXTERNAL],
        "clients": OFFICE,
        "volume": {"sizeGib": 1},
        "data": "delete",
        "deletionProtection": False,
        "readySeconds": 60,
        "policy": SILENT_RESOLVERS,
        "prove": "later",
    }
    return CLUSTER.format(inputs=inputs | changes)


def test_another_program_gets_brokers(project: Project) -> None:
    project.write(cluster())
    with nodes_reporting(project.server) as nodes:
        assert "bootstrap" in project.run("preview")
        assert not nodes.history
        project.up()
        outputs = project.outputs()
        contract = Contract.model_validate(outputs["contract"])
        assert [listener.name for listener in contract.listeners] == ["INTERNAL", "EXTERNAL"]
        assert outputs["bootstrap"] == {
            listener.name: listener.bootstrap for listener in contract.listeners
        }
        assert sorted(nodes.history) == sorted(
            (int(node_id), instance) for node_id, instance in outputs["instances"].items()
        )
        assert "unchanged" in project.up("--expect-no-changes")


@pytest.mark.combination
def test_brokers_of_another_program_are_replaced_one_by_one(project: Project) -> None:
    project.write(cluster())
    with nodes_reporting(project.server) as nodes:
        project.up()
        contract = project.outputs()["contract"]
        project.write(cluster(heap="2g"))
        project.up()
        assert [node for node, _ in nodes.history[3:]] == [1, 2, 3]
        new_outputs = project.outputs()
        assert new_outputs["contract"] == contract
        assert dict(nodes.history[3:]) == {
            int(node_id): instance for node_id, instance in new_outputs["instances"].items()
        }


OWN_ACCOUNT = """
account = aws.Provider(
    "account",
    region="{region}",
    access_key="own",
    secret_key="own",
    endpoints=[{endpoints}],
    skip_credentials_validation=True,
    skip_metadata_api_check=True,
)
"""


def test_a_provider_of_the_program_s_own_reaches_the_plugin(project: Project) -> None:
    """The stack's own settings reach no AWS."""
    (endpoints,) = project.server.endpoints()
    project.configure(endpoints=[{"ec2": "http://127.0.0.1:1"}], region="eu-west-1")
    program = cluster(brokers=1).replace(", remote=True)", ", remote=True, opts=OPTS)")
    opts = "OPTS = pulumi.ResourceOptions(provider=account)"
    account = OWN_ACCOUNT.format(region=REGION, endpoints=endpoints)
    project.write(f"{account}\n{opts}\n{program}")
    assert "aws:ec2:Instance" in project.run("preview")


@pytest.mark.combination
def test_a_name_that_leads_nowhere_is_refused(project: Project) -> None:
    wrong_listener = {**EXTERNAL, "advertised": {"1": "localhost"}}
    project.write(cluster(listeners=[INTERNAL, wrong_listener]))
    completed = project.pulumi("up", "--yes", "--skip-preview")
    assert completed.returncode != 0
    assert "broker 1, listener EXTERNAL (scope external): advertises localhost" in completed.stdout
    created_types = project.types()
    assert "aws:ec2/networkInterface:NetworkInterface" in created_types
    assert "aws:ec2/instance:Instance" not in created_types


@pytest.mark.combination
def test_a_wait_ends_with_the_command(project: Project) -> None:
    project.write(cluster(brokers=1))
    command = ["pulumi", "up", "--yes", "--skip-preview", "--non-interactive"]
    with nodes_reporting(project.server) as nodes:
        nodes.mute.add(1)
        update = subprocess.Popen(
            command, cwd=project.folder, env=project.environment, stdout=subprocess.DEVNULL
        )
        try:
            until(lambda: attached_volumes(project.server))
            hosts = hosts_below(update.pid)
            assert hosts
            update.send_signal(signal.SIGINT)
            assert update.wait(30) != 0
            psutil.wait_procs(hosts, timeout=10)
            assert not [host for host in hosts if host.is_running()]
        finally:
            update.kill()
            update.wait()
    project.run("cancel", "--yes")


def attached_volumes(server: MotoServer) -> bool:
    """True for each data volume, known by its size, that is attached to an instance."""
    volumes = server.client("ec2").describe_volumes()["Volumes"]
    return any(volume["Size"] == 1 and volume["Attachments"] for volume in volumes)


def hosts_below(pid: int) -> list[psutil.Process]:
    """The processes that host the package for command ``pid``."""
    descendants = psutil.Process(pid).children(recursive=True)
    return [process for process in descendants if str(FOLDER) in process.cmdline()]


def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.5)


@pytest.mark.combination
def test_the_cli_reads_the_schema(project: Project) -> None:
    # the folder's environment has provider packages whose plugins the CLI would fetch otherwise
    install_docker_plugin(Path(project.environment["PULUMI_HOME"]))
    output = project.run("package", "get-schema", str(FOLDER))
    text = offered().schema
    assert text is not None
    package_schema = json.loads(text)["resources"]["earshot:index:AwsNetwork"]
    cli_schema = json.loads(output[output.index("{") :])["resources"]["earshot:index:AwsNetwork"]
    assert cli_schema["inputProperties"].keys() == package_schema["inputProperties"].keys()
    assert cli_schema["requiredInputs"] == package_schema["requiredInputs"]
