"""Double of aws:ssm:Parameter."""

from pulumi.runtime.rpc import UNKNOWN

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import AwsKind, given, pairs, shape, tags_found
from tests.doubles.plugin.values import Plain

TAGGED_AS = "Parameter"
WRITTEN = ("type", "value", "insecureValue", "description")


class Parameter(AwsKind):
    """`value` is kept secret in the state, `insecureValue` is not; either is asked for."""

    named = "name"
    shape = shape("name", *WRITTEN, "tags", "region")
    in_place = frozenset(WRITTEN)
    settled_later = frozenset({"value", "insecureValue", "region"})
    outputs = frozenset({"arn", "hasValueWo", "tagsAll", "version"})

    def planned(self, state: Plain, inputs: Plain) -> Plain:
        return super().planned(state, inputs) | {"version": UNKNOWN}

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        self._put(cloud, inputs, overwrite=False)
        return str(inputs["name"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        ssm = cloud.client("ssm", state)
        found = ssm.get_parameter(Name=id, WithDecryption=True)["Parameter"]
        named = [{"Key": "Name", "Option": "Equals", "Values": [id]}]
        about = ssm.describe_parameters(ParameterFilters=named)["Parameters"][0]
        tags = ssm.list_tags_for_resource(ResourceType=TAGGED_AS, ResourceId=id)["TagList"]
        kept = "insecureValue" if "insecureValue" in state else "value"
        return tags_found(cloud, tags, state) | {
            "name": found["Name"],
            "type": found["Type"],
            kept: found["Value"],
            "description": about.get("Description"),
            "arn": found["ARN"],
            "version": found["Version"],
            "hasValueWo": False,
        }

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        if any(inputs.get(name, found.get(name)) != found.get(name) for name in WRITTEN):
            self._put(cloud, inputs, overwrite=True)

    def tag(self, cloud: Cloud, id: str, inputs: Plain, new: Plain, old: list[str]) -> None:
        ssm = cloud.client("ssm", inputs)
        if old:
            ssm.remove_tags_from_resource(ResourceType=TAGGED_AS, ResourceId=id, TagKeys=old)
        if new:
            ssm.add_tags_to_resource(ResourceType=TAGGED_AS, ResourceId=id, Tags=pairs(new))

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("ssm", state).delete_parameter(Name=id)

    def _put(self, cloud: Cloud, inputs: Plain, overwrite: bool) -> None:
        value = inputs["insecureValue"] if "insecureValue" in inputs else inputs["value"]
        cloud.client("ssm", inputs).put_parameter(
            Value=value,
            Overwrite=overwrite,
            **given(inputs, Name="name", Type="type", Description="description"),
        )
