"""A test double of the AWS provider plugin: the resource types and functions that brokers on EC2
need, over boto3 and a moto server.

For tests on machines where the official plugin, or an account, cannot be had; users never get it.
It talks to nothing but the endpoints that it is given.
"""

import asyncio
import logging
from collections.abc import Callable

from pulumi.provider.experimental import provider as protocol
from pulumi.runtime.rpc import UNKNOWN

from tests.doubles.aws.addresses import Eip, EipAssociation
from tests.doubles.aws.balancers import (
    Listener,
    LoadBalancer,
    TargetGroup,
    TargetGroupAttachment,
)
from tests.doubles.aws.bucket import (
    Bucket,
    BucketPublicAccessBlock,
    BucketServerSideEncryptionConfiguration,
)
from tests.doubles.aws.bucket_parts import BucketLifecycleConfiguration, BucketObject, BucketPolicy
from tests.doubles.aws.cloud import BotoCoreError, ClientError, Cloud, reported
from tests.doubles.aws.endpoints import VpcEndpoint, VpcEndpointService
from tests.doubles.aws.gateways import FlowLog, NatGateway
from tests.doubles.aws.group_rules import SecurityGroupRule
from tests.doubles.aws.groups import SecurityGroup
from tests.doubles.aws.instance import Instance
from tests.doubles.aws.interfaces import NetworkInterface
from tests.doubles.aws.kind import AwsKind
from tests.doubles.aws.lookups import LOOKUPS
from tests.doubles.aws.network import InternetGateway, Subnet, Vpc
from tests.doubles.aws.parameter import Parameter
from tests.doubles.aws.roles import InstanceProfile, Role, RolePolicy
from tests.doubles.aws.routes import Route, RouteTable, RouteTableAssociation
from tests.doubles.aws.volumes import Volume, VolumeAttachment
from tests.doubles.aws.zones import Record, Zone, ZoneAssociation
from tests.doubles.plugin.kind import ProviderError, not_implemented
from tests.doubles.plugin.provider import Double, Result
from tests.doubles.plugin.values import Plain, contains_unknown, plain, wrapped

KINDS: dict[str, AwsKind] = {
    "aws:ebs/volume:Volume": Volume(),
    "aws:ec2/eip:Eip": Eip(),
    "aws:ec2/eipAssociation:EipAssociation": EipAssociation(),
    "aws:ec2/flowLog:FlowLog": FlowLog(),
    "aws:ec2/instance:Instance": Instance(),
    "aws:ec2/internetGateway:InternetGateway": InternetGateway(),
    "aws:ec2/natGateway:NatGateway": NatGateway(),
    "aws:ec2/networkInterface:NetworkInterface": NetworkInterface(),
    "aws:ec2/route:Route": Route(),
    "aws:ec2/routeTable:RouteTable": RouteTable(),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": RouteTableAssociation(),
    "aws:ec2/securityGroup:SecurityGroup": SecurityGroup(),
    "aws:ec2/subnet:Subnet": Subnet(),
    "aws:ec2/volumeAttachment:VolumeAttachment": VolumeAttachment(),
    "aws:ec2/vpc:Vpc": Vpc(),
    "aws:ec2/vpcEndpoint:VpcEndpoint": VpcEndpoint(),
    "aws:ec2/vpcEndpointService:VpcEndpointService": VpcEndpointService(),
    "aws:iam/instanceProfile:InstanceProfile": InstanceProfile(),
    "aws:iam/role:Role": Role(),
    "aws:iam/rolePolicy:RolePolicy": RolePolicy(),
    "aws:lb/listener:Listener": Listener(),
    "aws:lb/loadBalancer:LoadBalancer": LoadBalancer(),
    "aws:lb/targetGroup:TargetGroup": TargetGroup(),
    "aws:lb/targetGroupAttachment:TargetGroupAttachment": TargetGroupAttachment(),
    "aws:route53/record:Record": Record(),
    "aws:route53/zone:Zone": Zone(),
    "aws:route53/zoneAssociation:ZoneAssociation": ZoneAssociation(),
    "aws:s3/bucket:Bucket": Bucket(),
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": (
        BucketLifecycleConfiguration()
    ),
    "aws:s3/bucketObject:BucketObject": BucketObject(),
    "aws:s3/bucketPolicy:BucketPolicy": BucketPolicy(),
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": BucketPublicAccessBlock(),
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": (
        BucketServerSideEncryptionConfiguration()
    ),
    "aws:ssm/parameter:Parameter": Parameter(),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": SecurityGroupRule("egress"),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": SecurityGroupRule("ingress"),
}
SETTINGS = frozenset(
    {"accessKey", "defaultTags", "endpoints", "region", "s3UsePathStyle", "secretKey",
     "skipCredentialsValidation", "skipMetadataApiCheck", "skipRegionValidation",
     "skipRequestingAccountId", "version"}
)  # fmt: skip

log = logging.getLogger(__name__)


class AwsDouble(Double[Cloud]):
    """As the official plugin it supports previews: what a change in place leaves alone is known."""

    official = "the AWS provider"
    kinds = KINDS
    settings = SETTINGS

    def __init__(self) -> None:
        self._cloud = Cloud({})

    def set_up(self, settings: Plain) -> None:
        self._cloud = Cloud(settings)

    def run(self, work: Callable[[Cloud], Result]) -> Result:
        try:
            return work(self._cloud)
        except (ClientError, BotoCoreError) as error:
            raise ProviderError(reported(error)) from error

    async def configure(self, request: protocol.ConfigureRequest) -> protocol.ConfigureResponse:
        await super().configure(request)
        return protocol.ConfigureResponse(supports_preview=True)

    async def check(self, request: protocol.CheckRequest) -> protocol.CheckResponse:
        """With what the official plugin adds: the provider's own tags, and whether the name is made
        up."""
        response = await super().check(request)
        kind, inputs = self.kind(request.type), plain(request.new_inputs)
        added: Plain = {"__defaults": []}
        if kind.named is not None and kind.named not in inputs:
            added["__defaults"] = [kind.named]
        if "tags" in kind.shape:
            tags = inputs.get("tags", {})
            added["tagsAll"] = (
                UNKNOWN if contains_unknown(tags) else self._cloud.default_tags | tags
            )
        return protocol.CheckResponse((response.inputs or {}) | wrapped(added), response.failures)

    async def create(self, request: protocol.CreateRequest) -> protocol.CreateResponse:
        if request.preview:
            return protocol.CreateResponse(properties=request.properties)
        return await super().create(request)

    async def update(self, request: protocol.UpdateRequest) -> protocol.UpdateResponse:
        if request.preview:
            kind = self.kind(request.type)
            plan = kind.planned(plain(request.olds), plain(request.news))
            return protocol.UpdateResponse(wrapped(plan))
        return await super().update(request)

    async def invoke(self, request: protocol.InvokeRequest) -> protocol.InvokeResponse:
        lookup = LOOKUPS.get(request.tok)
        if lookup is None:
            raise ProviderError(
                f"{request.tok} is not implemented by this test double of {self.official}; it"
                f" knows {', '.join(LOOKUPS)}"
            )
        arguments = plain(request.args)
        refused = [self.refused(path) for path in not_implemented(arguments, lookup.shape)]
        if refused:
            return protocol.InvokeResponse(failures=refused)
        log.info("invoke %s", request.tok)
        found = await asyncio.to_thread(self.run, lambda cloud: lookup.find(cloud, arguments))
        return protocol.InvokeResponse(wrapped(arguments | found))
