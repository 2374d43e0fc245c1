"""Doubles of the functions that look something up. Like the inputs of a resource, arguments that
are not implemented are refused by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import filters, outputs_of, shape
from tests.doubles.aws.names import domain, partition
from tests.doubles.aws.network import dns_attributes
from tests.doubles.plugin.kind import ProviderError, Shape
from tests.doubles.plugin.values import Plain

FILTERS = shape("name", "values")
FILTERED = shape("tags", "region", filters=FILTERS)


@dataclass(frozen=True)
class Lookup:
    shape: Shape
    find: Callable[[Cloud, Plain], Plain]
    """From arguments to the answer, which repeats the arguments."""
    outputs: frozenset[str]


def _parameter(cloud: Cloud, inputs: Plain) -> Plain:
    parameter = cloud.client("ssm", inputs).get_parameter(
        Name=inputs["name"], WithDecryption=inputs.get("withDecryption", True)
    )["Parameter"]
    value = parameter["Value"]
    insecure = {} if parameter["Type"] == "SecureString" else {"insecureValue": value}
    return insecure | {
        **outputs_of(parameter, "type", "value", "version"),
        "id": parameter["Name"],
        "arn": parameter["ARN"],
    }


def _zones(cloud: Cloud, inputs: Plain) -> Plain:
    answer = cloud.client("ec2", inputs).describe_availability_zones(Filters=_filters(inputs))
    zones = sorted(
        (zone["ZoneName"], zone["ZoneId"])
        for zone in answer["AvailabilityZones"]
        if zone["State"] == inputs.get("state", zone["State"])
        and zone["ZoneName"] not in inputs.get("excludeNames", [])
    )
    return {
        "id": cloud.region_of(inputs),
        "names": [name for name, _ in zones],
        "zoneIds": [id for _, id in zones],
        "groupNames": [cloud.region_of(inputs)],
    }


def _caller(cloud: Cloud, inputs: Plain) -> Plain:
    answer = cloud.client("sts").get_caller_identity()
    account = answer["Account"]
    return {"id": account, "accountId": account, **outputs_of(answer, "arn", "userId")}


def _region(cloud: Cloud, inputs: Plain) -> Plain:
    region = inputs.get("region") or inputs.get("name") or cloud.region_of({})
    endpoint = f"ec2.{region}.{domain(region)}"
    return {"id": region, "name": region, "region": region, "endpoint": endpoint}


def _partition(cloud: Cloud, inputs: Plain) -> Plain:
    region = cloud.region_of({})
    return {
        "id": partition(region),
        "partition": partition(region),
        "dnsSuffix": domain(region),
        "reverseDnsPrefix": ".".join(reversed(domain(region).split("."))),
    }


def _vpc(cloud: Cloud, inputs: Plain) -> Plain:
    vpc = _only("getVpc", "VPC", _described_resources(cloud, inputs, "vpcs", "VpcIds"))
    id, owner = vpc["VpcId"], vpc["OwnerId"]
    return {
        **outputs_of(vpc, "ownerId", "cidrBlock", "state"),
        "id": id,
        "arn": cloud.arn("ec2", inputs, owner, f"vpc/{id}"),
        "default": vpc["IsDefault"],
        "tags": _tags(vpc),
        **dns_attributes(cloud, id, inputs),
    }


def _subnet(cloud: Cloud, inputs: Plain) -> Plain:
    subnet = _only(
        "getSubnet", "subnet", _described_resources(cloud, inputs, "subnets", "SubnetIds")
    )
    return {
        **outputs_of(subnet, *SUBNET_OUTPUTS),
        "id": subnet["SubnetId"],
        "arn": subnet["SubnetArn"],
        "availableIpAddressCount": subnet["AvailableIpAddressCount"],
        "tags": _tags(subnet),
    }


def _volumes(cloud: Cloud, inputs: Plain) -> Plain:
    volumes = _described_resources(cloud, inputs, "volumes")
    ids = sorted(volume["VolumeId"] for volume in volumes)
    return {"id": cloud.region_of(inputs), "ids": ids}


def _volume(cloud: Cloud, inputs: Plain) -> Plain:
    volume = _only("getVolume", "EBS volume", _described_resources(cloud, inputs, "volumes"))
    outputs = outputs_of(volume, *VOLUME_OUTPUTS)
    return outputs | {"id": volume["VolumeId"], "tags": _tags(volume)}


def _described_resources(cloud: Cloud, inputs: Plain, kind: str, ids: str = "") -> list[Plain]:
    """EC2's resources of a kind; ``ids`` is the argument that selects one by its id."""
    by_tag = filters({f"tag:{key}": value for key, value in inputs.get("tags", {}).items()})
    by_id = {ids: [inputs["id"]]} if "id" in inputs else {}
    describe = getattr(cloud.client("ec2", inputs), f"describe_{kind}")
    resources: list[Plain] = describe(Filters=_filters(inputs) + by_tag, **by_id)[kind.capitalize()]
    return resources


def _only(function: str, kind: str, resources: list[Plain]) -> Plain:
    if len(resources) != 1:
        raise ProviderError(
            f"{function}: {len(resources) or 'no'} matching {kind} found, one is needed"
        )
    return resources[0]


def _filters(inputs: Plain) -> list[dict[str, Any]]:
    return [
        {"Name": filter_input["name"], "Values": filter_input["values"]}
        for filter_input in inputs.get("filters", [])
    ]


def _tags(resource: Plain) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in resource.get("Tags", [])}


def _lookup(inputs: Shape, find: Callable[[Cloud, Plain], Plain], *outputs: str) -> Lookup:
    return Lookup(inputs, find, frozenset({"id", *outputs}))


SUBNET_OUTPUTS = (
    "ownerId", "vpcId", "cidrBlock", "availabilityZone", "availabilityZoneId",
    "mapPublicIpOnLaunch", "state",
)  # fmt: skip
VOLUME_OUTPUTS = ("volumeId", "availabilityZone", "size", "volumeType", "encrypted")
LOOKUPS: Mapping[str, Lookup] = {
    "aws:ssm/getParameter:getParameter": _lookup(
        shape("name", "withDecryption", "region"), _parameter,
        "arn", "type", "value", "insecureValue", "version",
    ),
    "aws:index/getAvailabilityZones:getAvailabilityZones": _lookup(
        shape("state", "excludeNames", "region", filters=FILTERS), _zones,
        "names", "zoneIds", "groupNames",
    ),
    "aws:index/getCallerIdentity:getCallerIdentity": _lookup(
        shape(), _caller, "accountId", "arn", "userId"
    ),
    "aws:index/getRegion:getRegion": _lookup(shape("name", "region"), _region, "endpoint"),
    "aws:index/getPartition:getPartition": _lookup(
        shape(), _partition, "partition", "dnsSuffix", "reverseDnsPrefix"
    ),
    "aws:ec2/getVpc:getVpc": _lookup(
        FILTERED | shape("id"), _vpc,
        "arn", "ownerId", "cidrBlock", "state", "default", "enableDnsSupport", "enableDnsHostnames",
    ),
    "aws:ec2/getSubnet:getSubnet": _lookup(
        FILTERED | shape("id"), _subnet, "arn", "availableIpAddressCount", *SUBNET_OUTPUTS
    ),
    "aws:ebs/getEbsVolumes:getEbsVolumes": _lookup(FILTERED, _volumes, "ids"),
    "aws:ebs/getVolume:getVolume": _lookup(FILTERED, _volume, *VOLUME_OUTPUTS),
}  # fmt: skip
