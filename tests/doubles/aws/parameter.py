"""Double of aws:ssm:Parameter."""

from pulumi.runtime.rpc import UNKNOWN

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import AwsKind, arguments, outputs_of, pairs, shape, tags_of
from tests.doubles.plugin.values import Plain

TAGGED_AS = "Parameter"
WRITTEN = ("type", "value", "insecureValue", "description")


class Parameter(AwsKind):
    """The program has either `value`, a secret in the state, or `insecureValue`."""

    name_input = "name"
    shape = shape("name", *WRITTEN, "tags", "region")
    in_place = frozenset(WRITTEN)
    computed_later = frozenset({"value", "insecureValue"})
    outputs = frozenset({"arn", "version"})

    def planned(self, state: Plain, inputs: Plain) -> Plain:
        return super().planned(state, inputs) | {"version": UNKNOWN}

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        self._put(cloud, inputs, overwrite=False)
        return str(inputs["name"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        ssm = cloud.client("ssm", state)
        parameter = ssm.get_parameter(Name=id, WithDecryption=True)["Parameter"]
        by_name = [{"Key": "Name", "Option": "Equals", "Values": [id]}]
        metadata = ssm.describe_parameters(ParameterFilters=by_name)["Parameters"][0]
        tags = ssm.list_tags_for_resource(ResourceType=TAGGED_AS, ResourceId=id)["TagList"]
        value_input = "insecureValue" if "insecureValue" in state else "value"
        return tags_of(cloud, tags, state) | {
            **outputs_of(parameter, "name", "type", "version"),
            value_input: parameter["Value"],
            "description": metadata.get("Description"),
            "arn": parameter["ARN"],
        }

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        if any(inputs.get(name, current.get(name)) != current.get(name) for name in WRITTEN):
            self._put(cloud, inputs, overwrite=True)

    def tag(self, cloud: Cloud, id: str, inputs: Plain, tags: Plain, removed: list[str]) -> None:
        ssm = cloud.client("ssm", inputs)
        if removed:
            ssm.remove_tags_from_resource(ResourceType=TAGGED_AS, ResourceId=id, TagKeys=removed)
        if tags:
            ssm.add_tags_to_resource(ResourceType=TAGGED_AS, ResourceId=id, Tags=pairs(tags))

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("ssm", state).delete_parameter(Name=id)

    def _put(self, cloud: Cloud, inputs: Plain, overwrite: bool) -> None:
        value = inputs["insecureValue"] if "insecureValue" in inputs else inputs["value"]
        cloud.client("ssm", inputs).put_parameter(
            Value=value, Overwrite=overwrite, **arguments(inputs, "name", "type", "description")
        )
