"""Doubles of aws:route53 Zone, ZoneAssociation and Record."""

import uuid
from typing import Any

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import AwsKind, constant, pairs, shape, tags_of
from tests.doubles.aws.names import partition
from tests.doubles.plugin.kind import ProviderError
from tests.doubles.plugin.values import Plain

COMMENT = "Managed by Pulumi"
VALUES = ("ttl", "records", "aliases")
"""Inputs with the values of a record."""


class Zone(AwsKind):
    """Private with `vpcs`, public without. moto needs `PrivateZone` to know it."""

    name_input = "name"
    shape = shape("name", "comment", "tags", vpcs=shape("vpcId", "vpcRegion"))
    defaults = constant(comment=COMMENT)
    in_place = frozenset({"comment", "vpcs"})
    outputs = frozenset({"arn", "zoneId"})

    def needs_replacement(self, name: str, state: Plain, inputs: Plain) -> bool:
        """A zone never turns from private to public or back."""
        if name == "vpcs":
            return bool(state.get("vpcs")) != bool(inputs.get("vpcs"))
        return super().needs_replacement(name, state, inputs)

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        vpcs = _vpcs(cloud, inputs)
        comment = inputs.get("comment", COMMENT)
        answer = cloud.client("route53").create_hosted_zone(
            Name=inputs["name"],
            CallerReference=str(uuid.uuid4()),
            HostedZoneConfig={"Comment": comment, "PrivateZone": bool(vpcs)},
            **({"VPC": _argument(vpcs[0])} if vpcs else {}),
        )
        return str(answer["HostedZone"]["Id"].rpartition("/")[2])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        route53 = cloud.client("route53")
        answer = route53.get_hosted_zone(Id=id)
        zone = answer["HostedZone"]
        tags = route53.list_tags_for_resource(ResourceType="hostedzone", ResourceId=id)
        vpcs = [
            {"vpcId": vpc["VPCId"], "vpcRegion": vpc["VPCRegion"]}
            for vpc in answer.get("VPCs", [])
            if vpc.get("VPCId")
        ]
        # the program's own, in its order and words, and then all others
        zone_vpcs = [vpc for vpc in state.get("vpcs", []) if _with_region(cloud, vpc) in vpcs]
        unlisted = [vpc for vpc in vpcs if vpc not in _vpcs(cloud, {"vpcs": zone_vpcs})]
        return tags_of(cloud, tags["ResourceTagSet"]["Tags"], state) | {
            "name": zone["Name"].rstrip("."),
            "comment": zone["Config"].get("Comment", ""),
            "zoneId": id,
            "arn": f"arn:{partition(cloud.region)}:route53:::hostedzone/{id}",
            "vpcs": zone_vpcs + unlisted,
        }

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        route53 = cloud.client("route53")
        comment = inputs.get("comment", COMMENT)
        if current["comment"] != comment:
            route53.update_hosted_zone_comment(Id=id, Comment=comment)
        wanted_vpcs, vpcs = _vpcs(cloud, inputs), _vpcs(cloud, current)
        for vpc in [vpc for vpc in wanted_vpcs if vpc not in vpcs]:
            route53.associate_vpc_with_hosted_zone(HostedZoneId=id, VPC=_argument(vpc))
        for vpc in [vpc for vpc in vpcs if vpc not in wanted_vpcs]:
            route53.disassociate_vpc_from_hosted_zone(HostedZoneId=id, VPC=_argument(vpc))

    def tag(self, cloud: Cloud, id: str, inputs: Plain, tags: Plain, removed: list[str]) -> None:
        change: dict[str, Any] = {"AddTags": pairs(tags)} if tags else {}
        if removed:
            change["RemoveTagKeys"] = removed
        cloud.client("route53").change_tags_for_resource(
            ResourceType="hostedzone", ResourceId=id, **change
        )

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("route53").delete_hosted_zone(Id=id)


class ZoneAssociation(AwsKind):
    """A second VPC of a private zone; the zone itself then has to ignore changes of its `vpcs`."""

    shape = shape("zoneId", "vpcId", "vpcRegion")
    computed_later = frozenset({"vpcRegion"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        cloud.client("route53").associate_vpc_with_hosted_zone(
            HostedZoneId=inputs["zoneId"], VPC=_argument(_with_region(cloud, inputs))
        )
        return f"{inputs['zoneId']}:{inputs['vpcId']}"

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        zone, _, vpc = id.partition(":")
        answer = cloud.client("route53").get_hosted_zone(Id=zone)
        regions = {zone_vpc["VPCId"]: zone_vpc["VPCRegion"] for zone_vpc in answer.get("VPCs", [])}
        if vpc not in regions:
            return None
        return {"zoneId": zone, "vpcId": vpc, "vpcRegion": regions[vpc]}

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        if self.find(cloud, id, state) is None:
            return
        cloud.client("route53").disassociate_vpc_from_hosted_zone(
            HostedZoneId=state["zoneId"], VPC=_argument(_with_region(cloud, state))
        )


class Record(AwsKind):
    """A record that exists already is refused."""

    shape = shape(
        "zoneId", "name", "type", "ttl", "records",
        aliases=shape("name", "zoneId", "evaluateTargetHealth"),
    )  # fmt: skip
    in_place = frozenset(VALUES)
    unordered = frozenset({"records"})
    outputs = frozenset({"fqdn"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        zone, record = inputs["zoneId"], self._set(cloud, inputs)
        name, type = _key(record)
        if (name, type) in map(_key, _record_sets(cloud, zone)):
            raise ProviderError(
                "ChangeResourceRecordSets: InvalidChangeBatch: Tried to create resource record "
                f"set [name='{name}.', type='{type}'] but it already exists"
            )
        # not CREATE: moto refuses to make again what was deleted, if a later name is there
        _change(cloud, zone, "UPSERT", record)
        return f"{zone}_{inputs['name']}_{inputs['type']}"

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        zone, name, type = id.split("_", 2) if "zoneId" not in state else self._id(state)
        full_name = _full_name(cloud, zone, name)
        for record in _record_sets(cloud, zone):
            if _key(record) == (full_name, type):
                key = {"zoneId": zone, "name": name, "type": type, "fqdn": full_name}
                return _values(type, record) | key
        return None

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        if any(_sorted(current.get(key)) != _sorted(inputs.get(key)) for key in VALUES):
            _change(cloud, inputs["zoneId"], "UPSERT", self._set(cloud, inputs))

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        key = (_full_name(cloud, state["zoneId"], state["name"]), state["type"])
        for record in _record_sets(cloud, state["zoneId"]):
            if _key(record) == key:
                _change(cloud, state["zoneId"], "DELETE", record)

    def deletes_first(self, state: Plain, inputs: Plain) -> bool:
        """A zone has one record set of a name and type."""
        return self._id(state) == self._id(inputs)

    def _id(self, values: Plain) -> tuple[str, str, str]:
        return values["zoneId"], values["name"], values["type"]

    def _set(self, cloud: Cloud, inputs: Plain) -> Plain:
        type = inputs["type"]
        key = {"Name": _full_name(cloud, inputs["zoneId"], inputs["name"]), "Type": type}
        if inputs.get("aliases"):
            (alias,) = inputs["aliases"]
            target = {
                "HostedZoneId": alias["zoneId"],
                "DNSName": alias["name"],
                "EvaluateTargetHealth": alias["evaluateTargetHealth"],
            }
            return {**key, "AliasTarget": target}
        if "ttl" not in inputs or not inputs.get("records"):
            raise ProviderError(
                f"record {inputs['name']}: ttl and records, or aliases, are required"
            )
        values = [f'"{text}"' if type == "TXT" else text for text in inputs["records"]]
        records = [{"Value": value} for value in values]
        return {**key, "TTL": inputs["ttl"], "ResourceRecords": records}


def _values(type: str, record: Plain) -> Plain:
    """TTL and values, or the alias, of a record set."""
    if alias := record.get("AliasTarget"):
        target = {
            "name": alias["DNSName"].rstrip("."),
            "zoneId": alias["HostedZoneId"],
            "evaluateTargetHealth": alias["EvaluateTargetHealth"],
        }
        return {"aliases": [target]}
    texts = [value_record["Value"] for value_record in record.get("ResourceRecords", [])]
    records = [text[1:-1] if type == "TXT" else text for text in texts]
    return {"ttl": record.get("TTL"), "records": records}


def _sorted(value: Any) -> Any:
    """``value``, with the texts of a list in order."""
    is_texts = isinstance(value, list) and all(isinstance(text, str) for text in value)
    return sorted(value) if is_texts else value


def _change(cloud: Cloud, zone: str, action: str, record: Plain) -> None:
    changes = [{"Action": action, "ResourceRecordSet": record}]
    cloud.client("route53").change_resource_record_sets(
        HostedZoneId=zone, ChangeBatch={"Changes": changes}
    )


def _record_sets(cloud: Cloud, zone: str) -> list[Plain]:
    pages = cloud.client("route53").get_paginator("list_resource_record_sets")
    return [
        record
        for page in pages.paginate(HostedZoneId=zone)
        for record in page["ResourceRecordSets"]
    ]


def _full_name(cloud: Cloud, zone: str, name: str) -> str:
    """Route 53's form: with the zone's name at the end, in small letters."""
    answer = cloud.client("route53").get_hosted_zone(Id=zone)
    domain = str(answer["HostedZone"]["Name"].rstrip("."))
    name = name.rstrip(".").lower()
    if name == domain or name.endswith(f".{domain}"):
        return name
    return f"{name}.{domain}" if name else domain


def _key(record: Plain) -> tuple[str, str]:
    return str(record["Name"]).rstrip(".").lower(), record["Type"]


def _with_region(cloud: Cloud, values: Plain) -> Plain:
    return {"vpcId": values["vpcId"], "vpcRegion": values.get("vpcRegion") or cloud.region}


def _vpcs(cloud: Cloud, values: Plain) -> list[Plain]:
    return [_with_region(cloud, vpc) for vpc in values.get("vpcs", [])]


def _argument(vpc: Plain) -> dict[str, str]:
    return {"VPCId": vpc["vpcId"], "VPCRegion": vpc["vpcRegion"]}
