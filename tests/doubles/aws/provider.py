"""A test double of the AWS provider plugin: the resource types and functions that brokers on EC2
need, over boto3 and a moto server.

For tests on machines without the official plugin or an account. It is not in the distribution, and
calls only the endpoints in its settings.
"""

import asyncio
import logging
from collections.abc import Callable

from pulumi.provider.experimental import provider as protocol
from pulumi.runtime.rpc import UNKNOWN

from tests.doubles.aws.addresses import Eip, EipAssociation
from tests.doubles.aws.balancers import Listener, LoadBalancer, TargetGroup, TargetGroupAttachment
from tests.doubles.aws.bucket import (
    Bucket,
    BucketLifecycleConfiguration,
    BucketObject,
    BucketPolicy,
    BucketPublicAccessBlock,
    BucketServerSideEncryptionConfiguration,
)
from tests.doubles.aws.cloud import BotoCoreError, ClientError, Cloud, error_line
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

_MODULES: dict[str, dict[str, AwsKind]] = {
    "ebs": {"Volume": Volume()},
    "ec2": {"Eip": Eip(), "EipAssociation": EipAssociation(), "FlowLog": FlowLog(),
            "Instance": Instance(), "InternetGateway": InternetGateway(),
            "NatGateway": NatGateway(), "NetworkInterface": NetworkInterface(), "Route": Route(),
            "RouteTable": RouteTable(), "RouteTableAssociation": RouteTableAssociation(),
            "SecurityGroup": SecurityGroup(), "Subnet": Subnet(),
            "VolumeAttachment": VolumeAttachment(), "Vpc": Vpc(), "VpcEndpoint": VpcEndpoint(),
            "VpcEndpointService": VpcEndpointService()},
    "iam": {"InstanceProfile": InstanceProfile(), "Role": Role(), "RolePolicy": RolePolicy()},
    "lb": {"Listener": Listener(), "LoadBalancer": LoadBalancer(), "TargetGroup": TargetGroup(),
           "TargetGroupAttachment": TargetGroupAttachment()},
    "route53": {"Record": Record(), "Zone": Zone(), "ZoneAssociation": ZoneAssociation()},
    "s3": {"Bucket": Bucket(), "BucketLifecycleConfiguration": BucketLifecycleConfiguration(),
           "BucketObject": BucketObject(), "BucketPolicy": BucketPolicy(),
           "BucketPublicAccessBlock": BucketPublicAccessBlock(),
           "BucketServerSideEncryptionConfiguration": BucketServerSideEncryptionConfiguration()},
    "ssm": {"Parameter": Parameter()},
    "vpc": {"SecurityGroupEgressRule": SecurityGroupRule("egress"),
            "SecurityGroupIngressRule": SecurityGroupRule("ingress")},
}  # fmt: skip
KINDS = {
    f"aws:{module}/{name[0].lower()}{name[1:]}:{name}": kind
    for module, kinds in _MODULES.items()
    for name, kind in kinds.items()
}
SETTINGS = frozenset(
    {"accessKey", "defaultTags", "endpoints", "region", "s3UsePathStyle", "secretKey",
     "skipCredentialsValidation", "skipMetadataApiCheck", "skipRegionValidation",
     "skipRequestingAccountId", "version"}
)  # fmt: skip

log = logging.getLogger(__name__)


class AwsDouble(Double[Cloud]):
    """Supports previews, as the official plugin does: a change in place keeps computed values."""

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
            raise ProviderError(error_line(error)) from error

    async def configure(self, request: protocol.ConfigureRequest) -> protocol.ConfigureResponse:
        await super().configure(request)
        return protocol.ConfigureResponse(supports_preview=True)

    async def check(self, request: protocol.CheckRequest) -> protocol.CheckResponse:
        """Adds what the official plugin adds: the provider's own tags, and whether the name is
        generated."""
        response = await super().check(request)
        kind, inputs = self.kind(request.type), plain(request.new_inputs)
        added_inputs: Plain = {"__defaults": []}
        if kind.name_input is not None and kind.name_input not in inputs:
            added_inputs["__defaults"] = [kind.name_input]
        if "tags" in kind.shape:
            tags = inputs.get("tags", {})
            added_inputs["tagsAll"] = (
                UNKNOWN if contains_unknown(tags) else self._cloud.default_tags | tags
            )
        return protocol.CheckResponse(
            (response.inputs or {}) | wrapped(added_inputs), response.failures
        )

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
        refusals = [self.refusal(path) for path in not_implemented(arguments, lookup.shape)]
        if refusals:
            return protocol.InvokeResponse(failures=refusals)
        log.info("invoke %s", request.tok)
        answer = await asyncio.to_thread(self.run, lambda cloud: lookup.find(cloud, arguments))
        return protocol.InvokeResponse(wrapped(arguments | answer))
