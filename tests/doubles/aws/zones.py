"""Doubles of aws:route53 Zone, ZoneAssociation and Record."""

import uuid
from typing import Any

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import AwsKind, constant, pairs, shape, tags_found
from tests.doubles.aws.names import partition
from tests.doubles.plugin.kind import ProviderError
from tests.doubles.plugin.values import Plain

COMMENT = "Managed by Pulumi"
LEADS = ("ttl", "records", "aliases")
"""Inputs that say what a record leads to."""


class Zone(AwsKind):
    """Private with `vpcs`, public without. moto has to be told so in so many words."""

    named = "name"
    shape = shape("name", "comment", "tags", vpcs=shape("vpcId", "vpcRegion"))
    defaults = constant(comment=COMMENT)
    in_place = frozenset({"comment", "vpcs"})
    outputs = frozenset({"arn", "nameServers", "primaryNameServer", "tagsAll", "zoneId"})

    def needs_replacement(self, name: str, state: Plain, inputs: Plain) -> bool:
        """A zone never turns from private to public or back."""
        if name == "vpcs":
            return bool(state.get("vpcs")) != bool(inputs.get("vpcs"))
        return super().needs_replacement(name, state, inputs)

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        vpcs = _vpcs(cloud, inputs)
        arguments: dict[str, Any] = {
            "Name": inputs["name"],
            "CallerReference": str(uuid.uuid4()),
            "HostedZoneConfig": {
                "Comment": inputs.get("comment", COMMENT),
                "PrivateZone": bool(vpcs),
            },
        }
        if vpcs:
            arguments["VPC"] = _vpc(vpcs[0])
        made = cloud.client("route53").create_hosted_zone(**arguments)
        return _bare(made["HostedZone"]["Id"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        route53 = cloud.client("route53")
        answer = route53.get_hosted_zone(Id=id)
        found = answer["HostedZone"]
        listed = route53.list_tags_for_resource(ResourceType="hostedzone", ResourceId=id)
        servers = answer.get("DelegationSet", {}).get("NameServers", [])
        vpcs = [
            {"vpcId": item["VPCId"], "vpcRegion": item["VPCRegion"]}
            for item in answer.get("VPCs", [])
            if item.get("VPCId")
        ]
        return tags_found(cloud, listed["ResourceTagSet"]["Tags"], state) | {
            "name": found["Name"].rstrip("."),
            "comment": found["Config"].get("Comment", ""),
            "zoneId": id,
            "arn": f"arn:{partition(cloud.region)}:route53:::hostedzone/{id}",
            "nameServers": servers,
            "primaryNameServer": servers[0] if servers else None,
            "vpcs": self._known(cloud, vpcs, state),
        }

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        route53 = cloud.client("route53")
        comment = inputs.get("comment", COMMENT)
        if found["comment"] != comment:
            route53.update_hosted_zone_comment(Id=id, Comment=comment)
        wanted, there = _vpcs(cloud, inputs), _vpcs(cloud, found)
        for vpc in wanted:
            if vpc not in there:
                route53.associate_vpc_with_hosted_zone(HostedZoneId=id, VPC=_vpc(vpc))
        known = _vpcs(cloud, {"vpcs": inputs.get("vpcs", [])})
        for vpc in there:
            if vpc not in known:
                route53.disassociate_vpc_from_hosted_zone(HostedZoneId=id, VPC=_vpc(vpc))

    def tag(self, cloud: Cloud, id: str, inputs: Plain, new: Plain, old: list[str]) -> None:
        change: dict[str, Any] = {"AddTags": pairs(new)} if new else {}
        if old:
            change["RemoveTagKeys"] = old
        cloud.client("route53").change_tags_for_resource(
            ResourceType="hostedzone", ResourceId=id, **change
        )

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("route53").delete_hosted_zone(Id=id)

    def _known(self, cloud: Cloud, vpcs: list[Plain], state: Plain) -> list[Plain]:
        """What the program asked for, in its own order and words, then what else is there."""
        asked = [item for item in state.get("vpcs", []) if _full(cloud, item) in vpcs]
        full = [_full(cloud, item) for item in asked]
        return asked + [item for item in vpcs if item not in full]


class ZoneAssociation(AwsKind):
    """A second VPC of a private zone; the zone itself then has to ignore changes of its `vpcs`."""

    shape = shape("zoneId", "vpcId", "vpcRegion")
    settled_later = frozenset({"vpcRegion"})
    outputs = frozenset({"owningAccount"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        vpc = _full(cloud, inputs)
        cloud.client("route53").associate_vpc_with_hosted_zone(
            HostedZoneId=inputs["zoneId"], VPC=_vpc(vpc)
        )
        return f"{inputs['zoneId']}:{inputs['vpcId']}"

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        zone, _, vpc = id.partition(":")
        for item in cloud.client("route53").get_hosted_zone(Id=zone).get("VPCs", []):
            if item["VPCId"] == vpc:
                owner = cloud.account()
                region = item["VPCRegion"]
                return {"zoneId": zone, "vpcId": vpc, "vpcRegion": region, "owningAccount": owner}
        return None

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        if self.find(cloud, id, state) is None:
            return
        cloud.client("route53").disassociate_vpc_from_hosted_zone(
            HostedZoneId=state["zoneId"], VPC=_vpc(_full(cloud, state))
        )


class Record(AwsKind):
    """A record that is there already is refused."""

    shape = shape(
        "zoneId", "name", "type", "ttl", "records",
        aliases=shape("name", "zoneId", "evaluateTargetHealth"),
    )  # fmt: skip
    in_place = frozenset(LEADS)
    unordered = frozenset({"records"})
    outputs = frozenset({"fqdn"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        zone, record = inputs["zoneId"], self._set(cloud, inputs)
        key = (_name(record), record["Type"])
        if any((_name(it), it["Type"]) == key for it in _record_sets(cloud, zone)):
            raise ProviderError(
                "ChangeResourceRecordSets: InvalidChangeBatch: Tried to create resource record "
                f"set [name='{key[0]}.', type='{key[1]}'] but it already exists"
            )
        # not CREATE: moto refuses to make again what was deleted, if a later name is there
        _change(cloud, zone, "UPSERT", record)
        return f"{zone}_{inputs['name']}_{inputs['type']}"

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        zone, name, type = id.split("_", 2) if "zoneId" not in state else self._key(state)
        full = _full_name(cloud, zone, name)
        for found in _record_sets(cloud, zone):
            if (_name(found), found["Type"]) == (full, type):
                return _led_to(type, found) | {
                    "zoneId": zone,
                    "name": name,
                    "type": type,
                    "fqdn": full,
                }
        return None

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        if any(_sorted(found.get(key)) != _sorted(inputs.get(key)) for key in LEADS):
            _change(cloud, inputs["zoneId"], "UPSERT", self._set(cloud, inputs))

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        full = _full_name(cloud, state["zoneId"], state["name"])
        for found in _record_sets(cloud, state["zoneId"]):
            if (_name(found), found["Type"]) == (full, state["type"]):
                _change(cloud, state["zoneId"], "DELETE", found)

    def goes_first(self, state: Plain, inputs: Plain) -> bool:
        """A zone has one record set of a name and type."""
        return self._key(state) == self._key(inputs)

    def _key(self, values: Plain) -> tuple[str, str, str]:
        return values["zoneId"], values["name"], values["type"]

    def _set(self, cloud: Cloud, inputs: Plain) -> Plain:
        type = inputs["type"]
        named = {"Name": _full_name(cloud, inputs["zoneId"], inputs["name"]), "Type": type}
        if inputs.get("aliases"):
            (alias,) = inputs["aliases"]
            target = {
                "HostedZoneId": alias["zoneId"],
                "DNSName": alias["name"],
                "EvaluateTargetHealth": alias["evaluateTargetHealth"],
            }
            return {**named, "AliasTarget": target}
        if "ttl" not in inputs or not inputs.get("records"):
            raise ProviderError(
                f"record {inputs['name']}: ttl and records, or aliases, are required"
            )
        return {
            **named,
            "TTL": inputs["ttl"],
            "ResourceRecords": [{"Value": _quoted(type, item)} for item in inputs["records"]],
        }


def _led_to(type: str, found: Plain) -> Plain:
    """What a record set leads to."""
    if alias := found.get("AliasTarget"):
        target = {
            "name": alias["DNSName"].rstrip("."),
            "zoneId": alias["HostedZoneId"],
            "evaluateTargetHealth": alias["EvaluateTargetHealth"],
        }
        return {"aliases": [target]}
    return {"ttl": found.get("TTL"), "records": [_unquoted(type, it) for it in _values(found)]}


def _sorted(value: Any) -> Any:
    """``value``, with the texts of a list in order."""
    is_texts = isinstance(value, list) and all(isinstance(it, str) for it in value)
    return sorted(value) if is_texts else value


def _change(cloud: Cloud, zone: str, action: str, record: Plain) -> None:
    changes = [{"Action": action, "ResourceRecordSet": record}]
    cloud.client("route53").change_resource_record_sets(
        HostedZoneId=zone, ChangeBatch={"Changes": changes}
    )


def _record_sets(cloud: Cloud, zone: str) -> list[Plain]:
    pages = cloud.client("route53").get_paginator("list_resource_record_sets")
    return [
        item for page in pages.paginate(HostedZoneId=zone) for item in page["ResourceRecordSets"]
    ]


def _full_name(cloud: Cloud, zone: str, name: str) -> str:
    """As Route 53 keeps it: with the zone's own name at its end, in small letters."""
    found = cloud.client("route53").get_hosted_zone(Id=zone)["HostedZone"]["Name"].rstrip(".")
    name = name.rstrip(".").lower()
    if name == found or name.endswith(f".{found}"):
        return name
    return f"{name}.{found}" if name else str(found)


def _name(record: Plain) -> str:
    return str(record["Name"]).rstrip(".").lower()


def _values(record: Plain) -> list[str]:
    return [item["Value"] for item in record.get("ResourceRecords", [])]


def _quoted(type: str, text: str) -> str:
    return f'"{text}"' if type == "TXT" else text


def _unquoted(type: str, text: str) -> str:
    return text[1:-1] if type == "TXT" else text


def _bare(id: str) -> str:
    return id.rpartition("/")[2]


def _full(cloud: Cloud, values: Plain) -> Plain:
    return {"vpcId": values["vpcId"], "vpcRegion": values.get("vpcRegion") or cloud.region}


def _vpcs(cloud: Cloud, values: Plain) -> list[Plain]:
    return [_full(cloud, item) for item in values.get("vpcs", [])]


def _vpc(values: Plain) -> dict[str, str]:
    return {"VPCId": values["vpcId"], "VPCRegion": values["vpcRegion"]}
