"""Doubles of the functions that look something up. Like the inputs of a resource, arguments that
are not implemented are refused by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import shape
from tests.doubles.aws.names import domain, partition
from tests.doubles.aws.network import dns_attributes
from tests.doubles.plugin.kind import ProviderError, Shape
from tests.doubles.plugin.values import Plain

FILTERS = shape("name", "values")


@dataclass(frozen=True)
class Lookup:
    shape: Shape
    find: Callable[[Cloud, Plain], Plain]
    """From arguments to the answer, which repeats the arguments."""
    outputs: frozenset[str]


def _parameter(cloud: Cloud, inputs: Plain) -> Plain:
    found = cloud.client("ssm", inputs).get_parameter(
        Name=inputs["name"], WithDecryption=inputs.get("withDecryption", True)
    )["Parameter"]
    shown = {} if found["Type"] == "SecureString" else {"insecureValue": found["Value"]}
    return shown | {
        "id": found["Name"],
        "arn": found["ARN"],
        "type": found["Type"],
        "value": found["Value"],
        "version": found["Version"],
    }


def _zones(cloud: Cloud, inputs: Plain) -> Plain:
    listed = cloud.client("ec2", inputs).describe_availability_zones(Filters=_filters(inputs))
    found = sorted(
        (zone["ZoneName"], zone["ZoneId"])
        for zone in listed["AvailabilityZones"]
        if zone["State"] == inputs.get("state", zone["State"])
        and zone["ZoneName"] not in inputs.get("excludeNames", [])
    )
    return {
        "id": cloud.region_of(inputs),
        "names": [name for name, _ in found],
        "zoneIds": [id for _, id in found],
        "groupNames": [cloud.region_of(inputs)],
    }


def _caller(cloud: Cloud, inputs: Plain) -> Plain:
    found = cloud.client("sts").get_caller_identity()
    account = found["Account"]
    return {"id": account, "accountId": account, "arn": found["Arn"], "userId": found["UserId"]}


def _region(cloud: Cloud, inputs: Plain) -> Plain:
    region = inputs.get("region") or inputs.get("name") or cloud.region_of({})
    return {
        "id": region,
        "name": region,
        "region": region,
        "endpoint": f"ec2.{region}.{domain(region)}",
    }


def _partition(cloud: Cloud, inputs: Plain) -> Plain:
    region = cloud.region_of({})
    found = partition(region)
    reverse = ".".join(reversed(domain(region).split(".")))
    return {
        "id": found,
        "partition": found,
        "dnsSuffix": domain(region),
        "reverseDnsPrefix": reverse,
    }


def _vpc(cloud: Cloud, inputs: Plain) -> Plain:
    arguments = {"VpcIds": [inputs["id"]]} if "id" in inputs else {}
    listed = cloud.client("ec2", inputs).describe_vpcs(
        Filters=_filters(inputs) + _tag_filters(inputs), **arguments
    )
    found = _only("getVpc", "VPC", listed["Vpcs"])
    id, owner = found["VpcId"], found["OwnerId"]
    return {
        "id": id,
        "arn": cloud.arn("ec2", inputs, owner, f"vpc/{id}"),
        "ownerId": owner,
        "cidrBlock": found["CidrBlock"],
        "state": found["State"],
        "default": found["IsDefault"],
        "tags": _tags(found),
        **dns_attributes(cloud, id, inputs),
    }


def _subnet(cloud: Cloud, inputs: Plain) -> Plain:
    arguments = {"SubnetIds": [inputs["id"]]} if "id" in inputs else {}
    listed = cloud.client("ec2", inputs).describe_subnets(
        Filters=_filters(inputs) + _tag_filters(inputs), **arguments
    )
    found = _only("getSubnet", "subnet", listed["Subnets"])
    return {
        "id": found["SubnetId"],
        "arn": found["SubnetArn"],
        "ownerId": found["OwnerId"],
        "vpcId": found["VpcId"],
        "cidrBlock": found["CidrBlock"],
        "availabilityZone": found["AvailabilityZone"],
        "availabilityZoneId": found["AvailabilityZoneId"],
        "availableIpAddressCount": found["AvailableIpAddressCount"],
        "mapPublicIpOnLaunch": found["MapPublicIpOnLaunch"],
        "state": found["State"],
        "tags": _tags(found),
    }


def _volumes(cloud: Cloud, inputs: Plain) -> Plain:
    listed = cloud.client("ec2", inputs).describe_volumes(
        Filters=_filters(inputs) + _tag_filters(inputs)
    )
    return {
        "id": cloud.region_of(inputs),
        "ids": sorted(found["VolumeId"] for found in listed["Volumes"]),
    }


def _volume(cloud: Cloud, inputs: Plain) -> Plain:
    listed = cloud.client("ec2", inputs).describe_volumes(
        Filters=_filters(inputs) + _tag_filters(inputs)
    )
    found = _only("getVolume", "EBS volume", listed["Volumes"])
    return {
        "id": found["VolumeId"],
        "volumeId": found["VolumeId"],
        "availabilityZone": found["AvailabilityZone"],
        "size": found["Size"],
        "volumeType": found["VolumeType"],
        "encrypted": found["Encrypted"],
        "tags": _tags(found),
    }


def _only(function: str, what: str, found: list[Plain]) -> Plain:
    if len(found) != 1:
        raise ProviderError(
            f"{function}: {len(found) or 'no'} matching {what} found, one is needed"
        )
    return found[0]


def _filters(inputs: Plain) -> list[dict[str, Any]]:
    return [{"Name": item["name"], "Values": item["values"]} for item in inputs.get("filters", [])]


def _tag_filters(inputs: Plain) -> list[dict[str, Any]]:
    return [
        {"Name": f"tag:{key}", "Values": [value]} for key, value in inputs.get("tags", {}).items()
    ]


def _tags(found: Plain) -> dict[str, str]:
    return {item["Key"]: item["Value"] for item in found.get("Tags", [])}


def _lookup(arguments: Shape, find: Callable[[Cloud, Plain], Plain], *outputs: str) -> Lookup:
    return Lookup(arguments, find, frozenset({"id", *outputs}))


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
    "aws:index/getRegion:getRegion": _lookup(
        shape("name", "region"), _region, "endpoint"
    ),
    "aws:index/getPartition:getPartition": _lookup(
        shape(), _partition, "partition", "dnsSuffix", "reverseDnsPrefix"
    ),
    "aws:ec2/getVpc:getVpc": _lookup(
        shape("id", "tags", "region", filters=FILTERS), _vpc,
        "arn", "ownerId", "cidrBlock", "state", "default", "enableDnsSupport", "enableDnsHostnames",
    ),
    "aws:ec2/getSubnet:getSubnet": _lookup(
        shape("id", "tags", "region", filters=FILTERS), _subnet,
        "arn", "ownerId", "vpcId", "cidrBlock", "availabilityZone", "availabilityZoneId",
        "availableIpAddressCount", "mapPublicIpOnLaunch", "state",
    ),
    "aws:ebs/getEbsVolumes:getEbsVolumes": _lookup(
        shape("tags", "region", filters=FILTERS), _volumes, "ids"
    ),
    "aws:ebs/getVolume:getVolume": _lookup(
        shape("tags", "region", filters=FILTERS), _volume,
        "volumeId", "availabilityZone", "size", "volumeType", "encrypted",
    ),
}  # fmt: skip
