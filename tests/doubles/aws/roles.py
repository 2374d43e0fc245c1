"""Doubles of aws:iam Role, RolePolicy and InstanceProfile."""

import json
import urllib.parse
from typing import Any

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.endpoints import same_document
from tests.doubles.aws.kind import (
    AwsKind,
    arguments,
    constant,
    outputs_of,
    pairs,
    shape,
    tags_of,
)
from tests.doubles.plugin.values import Plain


class Role(AwsKind):
    name_input = "name"
    shape = shape("name", "assumeRolePolicy", "description", "path", "tags")
    defaults = constant(path="/")
    in_place = frozenset({"assumeRolePolicy", "description"})
    outputs = frozenset({"arn"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        cloud.client("iam").create_role(
            RoleName=inputs["name"],
            AssumeRolePolicyDocument=inputs["assumeRolePolicy"],
            **arguments(inputs, "description", "path"),
        )
        return str(inputs["name"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        role = cloud.client("iam").get_role(RoleName=id)["Role"]
        document = _text(role["AssumeRolePolicyDocument"])
        return tags_of(cloud, role.get("Tags", []), state) | {
            **outputs_of(role, "arn", "path", "description"),
            "name": role["RoleName"],
            "assumeRolePolicy": same_document(state.get("assumeRolePolicy"), document),
        }

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        iam = cloud.client("iam")
        if current["assumeRolePolicy"] != inputs["assumeRolePolicy"]:
            iam.update_assume_role_policy(RoleName=id, PolicyDocument=inputs["assumeRolePolicy"])
        if (current["description"] or "") != (description := inputs.get("description", "")):
            iam.update_role(RoleName=id, Description=description)

    def tag(self, cloud: Cloud, id: str, inputs: Plain, tags: Plain, removed: list[str]) -> None:
        iam = cloud.client("iam")
        if removed:
            iam.untag_role(RoleName=id, TagKeys=removed)
        if tags:
            iam.tag_role(RoleName=id, Tags=pairs(tags))

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("iam").delete_role(RoleName=id)


class RolePolicy(AwsKind):
    name_input = "name"
    shape = shape("name", "role", "policy")
    in_place = frozenset({"policy"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        cloud.client("iam").put_role_policy(
            **arguments(inputs, RoleName="role", PolicyName="name", PolicyDocument="policy")
        )
        return f"{inputs['role']}:{inputs['name']}"

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        role, _, name = id.partition(":")
        answer = cloud.client("iam").get_role_policy(RoleName=role, PolicyName=name)
        text = _text(answer["PolicyDocument"])
        return {"role": role, "name": name, "policy": same_document(state.get("policy"), text)}

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        if current["policy"] != inputs["policy"]:
            self.make(cloud, inputs)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        role, _, name = id.partition(":")
        cloud.client("iam").delete_role_policy(RoleName=role, PolicyName=name)


class InstanceProfile(AwsKind):
    name_input = "name"
    shape = shape("name", "path", "role", "tags")
    defaults = constant(path="/")
    in_place = frozenset({"role"})
    outputs = frozenset({"arn"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        cloud.client("iam").create_instance_profile(
            **arguments(inputs, "path", InstanceProfileName="name")
        )
        return str(inputs["name"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        answer = cloud.client("iam").get_instance_profile(InstanceProfileName=id)
        profile = answer["InstanceProfile"]
        roles = [role["RoleName"] for role in profile["Roles"]]
        return tags_of(cloud, profile.get("Tags", []), state) | {
            **outputs_of(profile, "arn", "path"),
            "name": profile["InstanceProfileName"],
            "role": roles[0] if roles else None,
        }

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        iam, role = cloud.client("iam"), inputs.get("role")
        if current["role"] == role:
            return
        if current["role"]:
            iam.remove_role_from_instance_profile(InstanceProfileName=id, RoleName=current["role"])
        if role:
            iam.add_role_to_instance_profile(InstanceProfileName=id, RoleName=role)

    def tag(self, cloud: Cloud, id: str, inputs: Plain, tags: Plain, removed: list[str]) -> None:
        iam = cloud.client("iam")
        if removed:
            iam.untag_instance_profile(InstanceProfileName=id, TagKeys=removed)
        if tags:
            iam.tag_instance_profile(InstanceProfileName=id, Tags=pairs(tags))

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        iam = cloud.client("iam")
        if role := self.find(cloud, id, state)["role"]:
            iam.remove_role_from_instance_profile(InstanceProfileName=id, RoleName=role)
        iam.delete_instance_profile(InstanceProfileName=id)


def _text(document: Any) -> str:
    """A policy as JSON. IAM sends it URL-quoted, and boto3 unquotes and parses some."""
    if isinstance(document, str):
        return urllib.parse.unquote(document)
    return json.dumps(document)
