"""Doubles of the functions that look something up. Like the inputs of a resource, arguments that
are not implemented are refused by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import filters, outputs_of, shape
from tests.doubles.aws.names import partition
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
    answer = cloud.client("ssm", inputs).get_parameter(Name=inputs["name"], WithDecryption=True)
    parameter = answer["Parameter"]
    insecure = {} if parameter["Type"] == "SecureString" else {"insecureValue": parameter["Value"]}
    return insecure | {"id": parameter["Name"], "value": parameter["Value"]}


def _zones(cloud: Cloud, inputs: Plain) -> Plain:
    answer = cloud.client("ec2", inputs).describe_availability_zones(Filters=_filters(inputs))
    zones = sorted((zone["ZoneName"], zone["ZoneId"]) for zone in answer["AvailabilityZones"])
    return {
        "id": cloud.region_of(inputs),
        "names": [name for name, _ in zones],
        "zoneIds": [id for _, id in zones],
    }


def _caller(cloud: Cloud, inputs: Plain) -> Plain:
    account = cloud.account()
    return {"id": account, "accountId": account}


def _region(cloud: Cloud, inputs: Plain) -> Plain:
    return {"id": cloud.region_of(inputs), "region": cloud.region_of(inputs)}


def _partition(cloud: Cloud, inputs: Plain) -> Plain:
    name = partition(cloud.region_of({}))
    return {"id": name, "partition": name}


def _vpc(cloud: Cloud, inputs: Plain) -> Plain:
    vpc = _only("getVpc", "VPC", _described_resources(cloud, inputs, "vpcs", "VpcIds"))
    attributes = dns_attributes(cloud, vpc["VpcId"], inputs)
    return {"id": vpc["VpcId"], "cidrBlock": vpc["CidrBlock"], **attributes}


def _subnet(cloud: Cloud, inputs: Plain) -> Plain:
    resources = _described_resources(cloud, inputs, "subnets", "SubnetIds")
    subnet = _only("getSubnet", "subnet", resources)
    return {"id": subnet["SubnetId"], "availabilityZoneId": subnet["AvailabilityZoneId"]}


def _volumes(cloud: Cloud, inputs: Plain) -> Plain:
    volumes = _described_resources(cloud, inputs, "volumes")
    ids = sorted(volume["VolumeId"] for volume in volumes)
    return {"id": cloud.region_of(inputs), "ids": ids}


def _volume(cloud: Cloud, inputs: Plain) -> Plain:
    volume = _only("getVolume", "EBS volume", _described_resources(cloud, inputs, "volumes"))
    outputs = outputs_of(volume, *VOLUME_OUTPUTS)
    tags = {tag["Key"]: tag["Value"] for tag in volume.get("Tags", [])}
    return outputs | {"id": volume["VolumeId"], "tags": tags}


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


def _lookup(inputs: Shape, find: Callable[[Cloud, Plain], Plain], *outputs: str) -> Lookup:
    return Lookup(inputs, find, frozenset({"id", *outputs}))


VOLUME_OUTPUTS = ("volumeId", "availabilityZone", "size", "volumeType", "encrypted")
LOOKUPS: Mapping[str, Lookup] = {
    "aws:ssm/getParameter:getParameter": _lookup(
        shape("name", "region"), _parameter, "value", "insecureValue"
    ),
    "aws:index/getAvailabilityZones:getAvailabilityZones": _lookup(
        shape("region", filters=FILTERS), _zones, "names", "zoneIds"
    ),
    "aws:index/getCallerIdentity:getCallerIdentity": _lookup(shape(), _caller, "accountId"),
    "aws:index/getRegion:getRegion": _lookup(shape("region"), _region),
    "aws:index/getPartition:getPartition": _lookup(shape(), _partition, "partition"),
    "aws:ec2/getVpc:getVpc": _lookup(
        FILTERED | shape("id"), _vpc, "cidrBlock", "enableDnsSupport", "enableDnsHostnames"
    ),
    "aws:ec2/getSubnet:getSubnet": _lookup(FILTERED | shape("id"), _subnet, "availabilityZoneId"),
    "aws:ebs/getEbsVolumes:getEbsVolumes": _lookup(FILTERED, _volumes, "ids"),
    "aws:ebs/getVolume:getVolume": _lookup(FILTERED, _volume, *VOLUME_OUTPUTS),
}
