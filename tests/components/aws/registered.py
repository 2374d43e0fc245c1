"""Registrations of the component with a double of the engine, in order."""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
from earshot_pulumi.aws.brokers import AwsBrokers
from earshot_pulumi.aws.deployment import deploy
from earshot_pulumi.aws.last_run import LastRun
from earshot_pulumi.deployment import ClusterContext
from earshot_pulumi.gate import GATE_TYPE
from pulumi.runtime import mocks

from earshot.config.aws import AwsSpec
from earshot.names.aws import private_name, public_name
from tests.components.deployments import deployment_of
from tests.components.engine_double import Engine
from tests.config.aws_documents import REGION, read_aws
from tests.doubles import gate_provider

STACK = "mine"
ADDRESS = "aws:ec2/eip:Eip"
ASSOCIATION = "aws:ec2/eipAssociation:EipAssociation"
ATTACHMENT = "aws:ec2/volumeAttachment:VolumeAttachment"
GATE = GATE_TYPE
GROUP = "aws:ec2/securityGroup:SecurityGroup"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
INSTANCE = "aws:ec2/instance:Instance"
INTERFACE = "aws:ec2/networkInterface:NetworkInterface"
PARAMETER = "aws:ssm/parameter:Parameter"
POLICY = "aws:iam/rolePolicy:RolePolicy"
READY = "earshot:index:AwsReadiness"
TURN = "earshot:index:AwsTurn"
PREFLIGHT = "earshot:index:ChangePreflight"
RECORD = "aws:route53/record:Record"
ROLE = "aws:iam/role:Role"
SUBNET = "aws:ec2/subnet:Subnet"
VOLUME = "aws:ebs/volume:Volume"
VPC = "aws:ec2/vpc:Vpc"
ZONE = "aws:route53/zone:Zone"


@dataclass
class Answers(mocks.Mocks):
    """Outputs of AWS and of the policy pack; a preview has only those that are inputs."""

    preview: bool = False
    region: str = REGION
    vpc: dict[str, Any] = field(default_factory=dict)
    """The outputs of an existing VPC."""
    volumes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Existing volumes, by id."""
    state: dict[str, Any] = field(default_factory=dict)
    """The stack's resources in its last checkpoint, by URN."""

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        outputs = gate_provider.outputs(args)
        if self.preview and args.custom:
            return "", outputs
        turn = int("".join(filter(str.isdigit, args.name)) or 0) % 200
        private, public = f"10.0.0.{turn + 10}", f"198.51.100.{turn + 10}"
        computed: dict[str, dict[str, Any]] = {
            INTERFACE: {"privateIp": private, "privateDnsName": private_name(private, REGION)},
            ADDRESS: {
                "allocationId": f"eipalloc-{turn}",
                "publicIp": public,
                "publicDns": public_name(public, REGION),
            },
            ZONE: {"zoneId": "ZPRIVATE"},
            RECORD: {"fqdn": outputs.get("name")},
            PARAMETER: {"arn": f"arn:aws:ssm:{REGION}:123:parameter{outputs.get('name')}"},
            "aws:lb/loadBalancer:LoadBalancer": {
                "arn": f"arn of {args.name}",
                "dnsName": f"{args.name}-0123.elb.{REGION}.amazonaws.com",
            },
            "aws:ec2/vpcEndpointService:VpcEndpointService": {
                "serviceName": f"com.amazonaws.vpce.{REGION}.vpce-svc-0123",
                "privateDnsNameConfigurations": [
                    {"name": "_0123", "type": "TXT", "value": "vpce:0123", "state": "pending"}
                ],
            },
            "aws:ec2/vpcEndpoint:VpcEndpoint": {
                "dnsEntries": [
                    {"dnsName": f"vpce-1.svc.{REGION}.vpce.amazonaws.com", "hostedZoneId": "ZVPCE"}
                ],
                "state": "pendingAcceptance",
            },
            "aws:lb/targetGroup:TargetGroup": {"arn": f"arn of {args.name}"},
            "aws:s3/bucket:Bucket": {"arn": f"arn:aws:s3:::{args.name}", "bucket": args.name},
            "aws:iam/role:Role": {"name": args.name},
            "aws:iam/instanceProfile:InstanceProfile": {"name": args.name},
        }
        outputs |= computed.get(args.typ, {})
        if args.typ == VOLUME:
            return f"vol-0123456789abc{turn:04x}", outputs
        return f"id of {args.name}", outputs

    def call(self, args: mocks.MockCallArgs) -> Any:
        answers = {
            "aws:index/getRegion:getRegion": {"region": self.region},
            "aws:index/getCallerIdentity:getCallerIdentity": {"accountId": "123456789012"},
            "aws:index/getPartition:getPartition": {"partition": "aws"},
            "aws:index/getAvailabilityZones:getAvailabilityZones": {
                "zoneIds": ["euc1-az2", "euc1-az3", "euc1-az1"]
            },
            "aws:ssm/getParameter:getParameter": {
                "insecureValue": f"ami of {args.args.get('name')}"
            },
            "aws:ec2/getVpc:getVpc": self.vpc,
            "aws:ec2/getSubnet:getSubnet": {"availabilityZoneId": "euc1-az2"},
            "pulumi:pulumi:readStackResourceOutputs": {"outputs": self.state},
        }
        if args.token == "aws:ebs/getEbsVolumes:getEbsVolumes":
            filters = {it["name"]: it["values"] for it in args.args["filters"]}
            states = filters.get("status", ["available", "in-use"])
            volumes = self.volumes.items()
            return {"ids": [id for id, it in volumes if it.get("state", "available") in states]}
        if args.token == "aws:ebs/getVolume:getVolume":
            ((id,),) = [filter["values"] for filter in args.args["filters"]]
            return self.volumes[id]
        return answers[args.token]


def registered(
    spec: AwsSpec,
    answers: Answers | None = None,
    look: Callable[[AwsBrokers], Any] = lambda cluster: cluster.ready.urn,
    remembered: LastRun | None = None,
    down: Collection[int] = (),
) -> Engine:
    """The registrations of the cluster of ``spec``. ``look`` may read its outputs;
    ``remembered`` is from the last run, and ``down`` are nodes that do not serve."""

    def run() -> Any:
        return look(AwsBrokers(deployment_of(STACK), spec, remembered=remembered, down=down))

    return _registrations(run, answers or Answers())


def deployed(folder: Path, answers: Answers | None = None, **settings: Any) -> Engine:
    """The registrations of the whole stack, whose reports and bundles are in ``folder``."""

    def run() -> Any:
        context = ClusterContext(STACK, pulumi.ResourceOptions(), folder)
        return deploy(context, read_aws(**settings))["proof"]

    return _registrations(run, answers or Answers())


def _registrations(run: Callable[[], Any], answers: Answers) -> Engine:
    engine, log = Engine(answers), logging.getLogger("earshot.tests.aws")
    mocks.set_mocks(answers, "earshot", STACK, answers.preview, logger=log, monitor=engine)
    pulumi.runtime.test(run)()  # type: ignore[no-untyped-call]
    return engine


def inputs(engine: Engine, type: str) -> dict[str, dict[str, Any]]:
    """The inputs of all resources of a type, by name."""
    return {name: resource.inputs for name, resource in engine.of(type).items()}
