"""Examples with clusters of earshot's own: real engine and Kafka, doubles of AWS and a plugin."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka.admin import AdminClient

from tests.config.aws_documents import ARCHIVE, INTERNAL
from tests.doubles.aws.nodes import nodes_reporting
from tests.doubles.aws.server import REGION, MotoServer
from tests.e2e import project
from tests.e2e.aws_project import Project, aws_project
from tests.e2e.docker_engine import Engine
from tests.e2e.docker_project import docker_project
from tests.e2e.images.load import validator_images
from tests.e2e.ports import free_ports
from toolchain.paths import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
EXAMPLES = ROOT / "examples"
WRONG = {**INTERNAL, "advertised": {"1": "localhost"}}


def prepare(new_project: project.Project, example: str, **config: Any) -> None:
    """Copies the program of ``example``, and sets its configuration."""
    shutil.copy(EXAMPLES / example / "__main__.py", new_project.folder)
    for key, value in config.items():
        new_project.run("config", "set", key, str(value))


@pytest.fixture
def local(tmp_path: Path) -> Iterator[project.Project]:
    new_project = project.Project(tmp_path, "", project.prepare_home(tmp_path, {}))
    new_project.run("stack", "init", project.STACK)
    yield new_project
    new_project.pulumi("destroy", "--yes", "--skip-preview")


def brokers_below(folder: Path) -> set[int]:
    """The processes of Kafka with files below ``folder``."""
    return {
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if any(str(folder) in word for word in process.info["cmdline"] or ())
        and "kafka.Kafka" in (process.info["cmdline"] or ())
    }


def topics_at(bootstrap: str) -> set[str]:
    return set(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=20).topics)


@pytest.mark.combination
def test_two_clusters_in_one_program(local: project.Project) -> None:
    orders_port, audit_port, new_audit_port = free_ports(9)[::3]
    prepare(local, "two-clusters", orders=orders_port, audit=audit_port)
    local.up()
    outputs = local.outputs()
    assert outputs["orders_proof"] == outputs["audit_proof"] == "pass"
    assert outputs["orders_id"] != outputs["audit_id"]
    for name in ("orders", "audit"):
        topics_at(outputs[f"{name}_bootstrap"]["CLIENTS"])
    broker_processes = brokers_below(local.folder)
    assert len(broker_processes) == 2
    assert "unchanged" in local.up("--expect-no-changes")

    local.run("config", "set", "audit_clients", str(new_audit_port))
    local.up()
    new_outputs = local.outputs()
    assert new_outputs["audit_bootstrap"]["CLIENTS"].endswith(f":{new_audit_port}")
    assert new_outputs["orders_bootstrap"] == outputs["orders_bootstrap"]
    assert len(broker_processes & brokers_below(local.folder)) == 1, "that of orders"

    # the engine deletes a replaced resource after its replacement is there
    for type in ("LocalPreflight", "LocalNode"):
        urns = [resource["urn"] for resource in local.resources()]
        (urn,) = (urn for urn in urns if f"{type}::test-orders" in urn)
        local.up("--replace", urn)
        assert len(brokers_below(local.folder)) == 2
    topics_at(outputs["orders_bootstrap"]["CLIENTS"])
    assert "unchanged" in local.up("--expect-no-changes")

    local.run("config", "set", "audit_clients", str(orders_port))
    assert f"port {orders_port} is in use by" in local.failed_output()
    assert len(brokers_below(local.folder)) == 2
    local.destroy()
    assert brokers_below(local.folder) == set()


def test_a_network_and_clients_of_the_program_s_own(
    docker_engine: Engine, kafka_image: str, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    project = docker_project(tmp_path / "p", docker_engine)
    config = {"image": kafka_image, "base": validator_images(docker_engine)[0]}
    prepare(project, "own-network", port=port, engine=docker_engine.address, **config)
    try:
        project.run("preview")
        project.up()
        outputs = project.outputs()
        assert outputs["proof"] == "pass"
        assert outputs["bootstrap"]["INTERNAL"].startswith("test-kafka-kafka-1:")
        host, _, own_port = outputs["bootstrap"]["INTERNAL"].partition(":")
        connect_command = f"exec 3<>/dev/tcp/{host}/{own_port} && echo reached"
        output_in_client = docker_engine.run(
            "exec", outputs["client"], "bash", "-c", connect_command
        )
        assert output_in_client.strip() == "reached"
        (line,) = docker_engine.run(
            "inspect", outputs["client"], "--format", "{{json .Config.Env}}"
        ).splitlines()
        assert f"BOOTSTRAP_SERVERS={outputs['bootstrap']['INTERNAL']}" in line
        assert "unchanged" in project.up("--expect-no-changes")
    finally:
        project.destroy()
    output = docker_engine.run("ps", "--all", "--no-trunc", "--format", "{{.ID}} {{.Names}}")
    assert "test-kafka-" not in output and outputs["client"] not in output
    assert outputs["network"] not in docker_engine.run("network", "ls")


@pytest.fixture
def own_vpc(server: MotoServer, tmp_path: Path) -> Project:
    """The example whose program makes the VPC; nothing is up."""
    project = aws_project(tmp_path / "p", server, {})
    policy = '{"names": {"resolvers": {"external": ["127.0.0.1:1"]}, "timeout": 0.5}}'
    prepare(
        project,
        "own-vpc",
        region=REGION,
        archive=ARCHIVE["url"],
        sha512=ARCHIVE["sha512"],
        protected="false",
        data="delete",
        policy=policy,
    )
    return project


def test_a_preview_checks_addresses_although_the_vpc_is_unknown(own_vpc: Project) -> None:
    preview = own_vpc.run("preview")
    assert "not known in this preview: vpc.id, vpc.private_subnets." in preview
    assert preview.count(" aws:ec2:Instance ") == 3
    assert "host is not known yet" in preview
    program = own_vpc.folder / "__main__.py"
    wrong_listeners = f'"region": region, "listeners": [{WRONG}],'
    program.write_text(program.read_text().replace('"region": region,', wrong_listeners))
    assert "advertises localhost" in own_vpc.failed_output(command="preview")


@pytest.mark.combination
def test_a_vpc_of_the_program_s_own(server: MotoServer, own_vpc: Project) -> None:
    holdings = server.holdings()
    with nodes_reporting(server):
        own_vpc.up()
        outputs = own_vpc.outputs()
        ec2 = server.client("ec2")
        described_instances = ec2.describe_instances(
            InstanceIds=list(outputs["instances"].values())
        )
        instances = [
            instance
            for reservation in described_instances["Reservations"]
            for instance in reservation["Instances"]
        ]
        assert {instance["VpcId"] for instance in instances} == {outputs["vpc"]}
        assert len(outputs["bootstrap"]["INTERNAL"].split(",")) == 3
        assert "unchanged" in own_vpc.up("--expect-no-changes")
        own_vpc.destroy()
    assert server.holdings() == holdings


OWN_PROVIDER = """
config = pulumi.Config()
engine = docker.Provider("engine", host=config.require("engine"))


def labelled(args):
    if args.type_ != "docker:index/container:Container":
        return None
    labels = [*args.props["labels"], {"label": "team", "value": "shop"}]
    return pulumi.ResourceTransformResult({**args.props, "labels": labels}, args.opts)


class Shop(pulumi.ComponentResource):
    def __init__(self):
        opts = pulumi.ResourceOptions(providers=[engine], transforms=[labelled])
        super().__init__("shop:index:Shop", "shop", {}, opts)
        inputs = {
            "brokers": 1,
            "image": config.require("image"),
            "listeners": [
                {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]},
                {"name": "HOST", "port": config.require_int("port"), "scopes": ["host"]},
            ],
            "validation": {"records": 0},
            "validator": {"base": config.require("base")},
            "data": "delete",
        }
        protect = config.get_bool("protect") or None
        opts = pulumi.ResourceOptions(parent=self, protect=protect)
        self.kafka = DockerCluster("kafka", inputs, opts)


shop = Shop()
pulumi.export("proof", shop.kafka.proof)
pulumi.export("bootstrap", shop.kafka.bootstrap)
"""


@pytest.mark.combination
def test_options_of_a_parent_reach_a_cluster_on_a_real_engine(
    docker_engine: Engine, kafka_image: str, tmp_path: Path
) -> None:
    """The parent has a provider and a transform. DOCKER_HOST names another engine."""
    (port,) = free_ports(1)
    project = docker_project(tmp_path / "p", docker_engine)
    project.environment["DOCKER_HOST"] = "unix:///nowhere/docker.sock"
    project.header += "from earshot_pulumi import DockerCluster\n"
    project.write(OWN_PROVIDER)
    settings = {"image": kafka_image, "base": validator_images(docker_engine)[0], "port": port}
    list_command = ("ps", "--quiet", "--filter", "label=team=shop")
    for key, value in {**settings, "engine": docker_engine.address}.items():
        project.run("config", "set", key, str(value))
    try:
        assert "kafka-1" in project.run("preview", "--diff")
        project.up()
        assert project.outputs()["proof"] == "pass"
        (broker,) = docker_engine.run(*list_command).split()
        assert "unchanged" in project.up("--expect-no-changes")
        providers = [
            resource
            for resource in project.resources()
            if resource["type"] == "pulumi:providers:docker"
        ]
        assert [provider["urn"].rpartition("::")[2] for provider in providers] == ["engine"]

        project.run("config", "set", "protect", "true")
        project.up()
        assert "cannot be deleted" in project.failed_output(
            "--yes", "--skip-preview", command="destroy"
        )
        assert docker_engine.run(*list_command).split() == [broker]
        project.run("config", "set", "protect", "false")
        project.up()

        project.run("config", "set", "engine", "tcp://127.0.0.1:1")
        output = project.failed_output(command="preview")
        assert "Docker engine at tcp://127.0.0.1:1" in output and "does not answer" in output
        project.run("config", "set", "engine", docker_engine.address)
    finally:
        project.pulumi("state", "unprotect", "--all", "--yes")
        project.destroy()
    assert docker_engine.run(*list_command, "--all") == ""


OWN_ACCOUNT = """
config = pulumi.Config()
account = aws.Provider(
    "account",
    region=config.require("region"),
    access_key="own",
    secret_key=pulumi.Output.secret("own-secret"),
    endpoints=[config.require_object("endpoints")],
    s3_use_path_style=True,
    skip_credentials_validation=True,
    skip_metadata_api_check=True,
)
zones = [config.require("region") + letter for letter in "abc"]
opts = pulumi.ResourceOptions(provider=account)
network = AwsNetwork("net", {"zones": zones, "nat": "one", "deletion_protection": False}, opts)
inputs = {
    "brokers": 1,
    "region": config.require("region"),
    "vpc": {
        "id": network.vpc_id, "zones": zones, "private_subnets": network.private_subnets,
    },
    "archive": config.require_object("archive"),
    "volume": {"size_gib": 1},
    "data": "delete",
    "deletion_protection": False,
    "policy": config.require_object("policy"),
}
kafka = AwsCluster("kafka", inputs, opts)
pulumi.export("instances", kafka.instances)
"""


@pytest.mark.combination
def test_an_aws_provider_of_the_program_s_own(server: MotoServer, tmp_path: Path) -> None:
    """The stack's own settings reach no AWS."""
    old_holdings = server.holdings()
    project = aws_project(tmp_path / "p", server, {})
    project.configure(endpoints=[{"ec2": "http://127.0.0.1:1"}], region="eu-west-1")
    project.header += "from earshot_pulumi import AwsCluster, AwsNetwork\n"
    project.write(OWN_ACCOUNT)
    (endpoints,) = server.endpoints()
    policy = {"names": {"resolvers": {"external": ["127.0.0.1:1"]}, "timeout": 0.5}}
    documents = {"endpoints": endpoints, "archive": ARCHIVE, "policy": policy}
    for key, value in {"region": REGION, **documents}.items():
        text = value if isinstance(value, str) else json.dumps(value)
        project.run("config", "set", key, text)
    with nodes_reporting(server) as nodes:
        project.up()
        assert [node for node, _ in nodes.history] == [1]
        assert "unchanged" in project.up("--expect-no-changes")
        assert "own-secret" not in project.run("stack", "export")
        project.destroy()
    assert server.holdings() == old_holdings


@pytest.mark.combination
def test_brokers_and_clients_in_two_stacks_with_an_endpoint_between(
    server: MotoServer, tmp_path: Path
) -> None:
    old_holdings = server.holdings()
    name = "kafka.partners.example.com"
    provider = aws_project(tmp_path / "provider", server, {})
    policy = '{"names": {"resolvers": {"external": ["127.0.0.1:1"]}, "timeout": 0.5}}'
    prepare(
        provider,
        "privatelink/provider",
        region=REGION,
        name=name,
        brokers=2,
        protocol="PLAINTEXT",
        clear_text='{"PARTNERS": "a test without data"}',
        archive=ARCHIVE["url"],
        sha512=ARCHIVE["sha512"],
        protected="false",
        data="delete",
        policy=policy,
    )
    backend_variables = {"PULUMI_BACKEND_URL": provider.environment["PULUMI_BACKEND_URL"]}
    consumer = aws_project(tmp_path / "consumer", server, backend_variables, name="consumer")
    reference = f"organization/project/{project.STACK}"
    prepare(consumer, "privatelink/consumer", region=REGION, kafka=reference)
    ec2, route53 = server.client("ec2"), server.client("route53")
    with nodes_reporting(server):
        provider.up()
        service = provider.outputs()["endpoint_service"]
        assert service["ports"] == {"PARTNERS": {"1": 9101, "2": 9102, "bootstrap": 9100}}
        principals = ec2.describe_vpc_endpoint_service_permissions(
            ServiceId=service["service_name"].rpartition(".")[2]
        )["AllowedPrincipals"]
        assert [record_set["Principal"] for record_set in principals] == [
            "arn:aws:iam::123456789012:root"
        ]
        assert "unchanged" in provider.up("--refresh", "--expect-no-changes")

        consumer.run("config", "set", "zone", "partners.internal")
        refusal = consumer.failed_output(command="preview")
        assert f"found partners.internal, and the brokers of test-kafka advertise {name}" in refusal
        consumer.run("config", "rm", "zone")
        preview = consumer.run("preview")
        assert " aws:ec2:VpcEndpoint " in preview and " aws:route53:Record " in preview
        output = consumer.up()
        assert "the endpoint waits until the owner of the service accepts it" in output
        outputs = consumer.outputs()
        assert outputs["bootstrap"] == {"PARTNERS": f"{name}:9100"}
        assert outputs["state"] == "pendingAcceptance"
        (endpoint,) = ec2.describe_vpc_endpoints(VpcEndpointIds=[outputs["endpoint"]])[
            "VpcEndpoints"
        ]
        zones = route53.list_hosted_zones_by_vpc(VPCId=outputs["vpc"], VPCRegion=REGION)
        (zone,) = zones["HostedZoneSummaries"]
        assert zone["Name"].rstrip(".") == name
        sets = route53.list_resource_record_sets(HostedZoneId=zone["HostedZoneId"])
        (record,) = (
            record_set for record_set in sets["ResourceRecordSets"] if record_set["Type"] == "A"
        )
        assert record["AliasTarget"]["DNSName"].rstrip(".") == endpoint["DnsEntries"][0]["DnsName"]
        assert "unchanged" in consumer.up("--refresh", "--expect-no-changes")

        consumer.destroy()
        provider.destroy()
    assert server.holdings() == old_holdings
