"""Doubles of aws:iam Role, RolePolicy and InstanceProfile."""

import json
import urllib.parse
from typing import Any

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.endpoints import same_document
from tests.doubles.aws.kind import AwsKind, constant, given, pairs, shape, tags_found
from tests.doubles.plugin.values import Plain


class Role(AwsKind):
    named = "name"
    shape = shape("name", "assumeRolePolicy", "description", "path", "tags")
    defaults = constant(path="/")
    in_place = frozenset({"assumeRolePolicy", "description"})
    outputs = frozenset({"arn", "createDate", "tagsAll", "uniqueId"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        cloud.client("iam").create_role(
            RoleName=inputs["name"],
            AssumeRolePolicyDocument=inputs["assumeRolePolicy"],
            **given(inputs, Description="description", Path="path"),
        )
        return str(inputs["name"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        found = cloud.client("iam").get_role(RoleName=id)["Role"]
        document = found["AssumeRolePolicyDocument"]
        return tags_found(cloud, found.get("Tags", []), state) | {
            "name": found["RoleName"],
            "arn": found["Arn"],
            "path": found["Path"],
            "uniqueId": found["RoleId"],
            "createDate": found["CreateDate"].isoformat(),
            "description": found.get("Description"),
            "assumeRolePolicy": same_document(state.get("assumeRolePolicy"), _text(document)),
        }

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        iam = cloud.client("iam")
        if found["assumeRolePolicy"] != inputs["assumeRolePolicy"]:
            iam.update_assume_role_policy(RoleName=id, PolicyDocument=inputs["assumeRolePolicy"])
        if (found["description"] or "") != (description := inputs.get("description", "")):
            iam.update_role(RoleName=id, Description=description)

    def tag(self, cloud: Cloud, id: str, inputs: Plain, new: Plain, old: list[str]) -> None:
        iam = cloud.client("iam")
        if old:
            iam.untag_role(RoleName=id, TagKeys=old)
        if new:
            iam.tag_role(RoleName=id, Tags=pairs(new))

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("iam").delete_role(RoleName=id)


class RolePolicy(AwsKind):
    named = "name"
    shape = shape("name", "role", "policy")
    in_place = frozenset({"policy"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        self._put(cloud, inputs)
        return f"{inputs['role']}:{inputs['name']}"

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        role, _, name = id.partition(":")
        found = cloud.client("iam").get_role_policy(RoleName=role, PolicyName=name)
        text = _text(found["PolicyDocument"])
        return {"role": role, "name": name, "policy": same_document(state.get("policy"), text)}

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        if found["policy"] != inputs["policy"]:
            self._put(cloud, inputs)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        role, _, name = id.partition(":")
        cloud.client("iam").delete_role_policy(RoleName=role, PolicyName=name)

    def _put(self, cloud: Cloud, inputs: Plain) -> None:
        cloud.client("iam").put_role_policy(
            **given(inputs, RoleName="role", PolicyName="name", PolicyDocument="policy")
        )


class InstanceProfile(AwsKind):
    named = "name"
    shape = shape("name", "path", "role", "tags")
    defaults = constant(path="/")
    in_place = frozenset({"role"})
    outputs = frozenset({"arn", "createDate", "tagsAll", "uniqueId"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        cloud.client("iam").create_instance_profile(
            **given(inputs, InstanceProfileName="name", Path="path")
        )
        return str(inputs["name"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        found = cloud.client("iam").get_instance_profile(InstanceProfileName=id)["InstanceProfile"]
        roles = [role["RoleName"] for role in found["Roles"]]
        return tags_found(cloud, found.get("Tags", []), state) | {
            "name": found["InstanceProfileName"],
            "path": found["Path"],
            "role": roles[0] if roles else None,
            "arn": found["Arn"],
            "uniqueId": found["InstanceProfileId"],
            "createDate": found["CreateDate"].isoformat(),
        }

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        iam, wanted = cloud.client("iam"), inputs.get("role")
        if found["role"] == wanted:
            return
        if found["role"]:
            iam.remove_role_from_instance_profile(InstanceProfileName=id, RoleName=found["role"])
        if wanted:
            iam.add_role_to_instance_profile(InstanceProfileName=id, RoleName=wanted)

    def tag(self, cloud: Cloud, id: str, inputs: Plain, new: Plain, old: list[str]) -> None:
        iam = cloud.client("iam")
        if old:
            iam.untag_instance_profile(InstanceProfileName=id, TagKeys=old)
        if new:
            iam.tag_instance_profile(InstanceProfileName=id, Tags=pairs(new))

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        iam = cloud.client("iam")
        if role := self.find(cloud, id, state)["role"]:
            iam.remove_role_from_instance_profile(InstanceProfileName=id, RoleName=role)
        iam.delete_instance_profile(InstanceProfileName=id)


def _text(document: Any) -> str:
    """A policy as JSON; IAM sends it in quotes of its own, boto3 takes some of them off."""
    if isinstance(document, str):
        return urllib.parse.unquote(document)
    return json.dumps(document)
