"""What the resource types of the AWS double have in common.

A type says how to make the thing, how to find out what it is now, and how to bring it to what is
asked for. The last step is taken after creation and for every change, from what is found, so that
a run that broke off half-way is finished by the next.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from tests.doubles.aws.cloud import BotoCoreError, ClientError, Cloud, gone, reported
from tests.doubles.plugin.kind import Kind, PartlyCreated, ProviderError, Shape
from tests.doubles.plugin.values import Plain


class AwsKind(Kind[Cloud]):
    outputs: frozenset[str] = frozenset()
    """What it computes besides its inputs."""
    absent: frozenset[str] = frozenset()
    """Outputs of the official plugin that stay unset: nothing that is implemented leads to them."""

    @abstractmethod
    def make(self, cloud: Cloud, inputs: Plain) -> str:
        """The new thing's id, at once: whatever else it takes is `adjust`'s to do."""

    @abstractmethod
    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        """What is known of it now, inputs included; None, or the cloud's error, where it is gone.

        ``state`` is what was last known of it, or the inputs it is made from.
        """

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        """Bring what was found to what is asked for, as far as that needs no replacement."""

    @abstractmethod
    def remove(self, cloud: Cloud, id: str, state: Plain) -> None: ...

    def tag(self, cloud: Cloud, id: str, inputs: Plain, new: Plain, old: list[str]) -> None:
        """Set the tags ``new`` and take those off whose keys are ``old``."""
        raise NotImplementedError(f"{type(self).__name__} takes no tags")

    def compared(self) -> Iterator[str]:
        yield from self.shape
        if "tags" in self.shape:
            yield "tagsAll"

    def needs_replacement(self, name: str, state: Plain, inputs: Plain) -> bool:
        return name not in self.in_place and name not in ("tags", "tagsAll")

    def goes_first(self, state: Plain, inputs: Plain) -> bool:
        """Where its name was asked for, not made up: two cannot have it."""
        made_up = self.named in inputs.get("__defaults", [])
        return not made_up and super().goes_first(state, inputs)

    def create(self, cloud: Cloud, inputs: Plain) -> tuple[str, Plain]:
        id = self.make(cloud, inputs)
        try:
            return id, self._brought(cloud, id, inputs)
        except (ClientError, BotoCoreError) as error:
            raise PartlyCreated(reported(error), id, inputs) from error

    def read(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        found = self._found(cloud, id, state)
        return None if found is None else state | found

    def update(self, cloud: Cloud, id: str, state: Plain, inputs: Plain) -> Plain:
        return self._brought(cloud, id, inputs)

    def delete(self, cloud: Cloud, id: str, state: Plain) -> None:
        try:
            self.remove(cloud, id, state)
        except ClientError as error:
            if not gone(error):
                raise

    def _brought(self, cloud: Cloud, id: str, inputs: Plain) -> Plain:
        found = self._found(cloud, id, inputs)
        if found is None:
            raise ProviderError(f"{id} exists no more; a refresh takes it out of the state")
        if "tags" in self.shape:
            wanted, there = inputs.get("tagsAll", {}), found.get("tagsAll", {})
            new = {key: value for key, value in wanted.items() if there.get(key) != value}
            old = sorted(there.keys() - wanted.keys())
            if new or old:
                self.tag(cloud, id, inputs, new, old)
        self.adjust(cloud, id, found, inputs)
        return inputs | (self._found(cloud, id, inputs) or {})

    def _found(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        try:
            found = self.find(cloud, id, state)
        except ClientError as error:
            if gone(error):
                return None
            raise
        if found is None:
            return None
        if "region" in self.shape:
            found["region"] = cloud.region_of(state)
        made_up = found.keys() - self.shape.keys() - self.outputs
        assert not made_up, f"{type(self).__name__} does not say that it has {made_up}"
        return found


def tags_found(cloud: Cloud, found: list[dict[str, str]], state: Plain) -> Plain:
    """`tags` and `tagsAll` of what the cloud lists as keys and values.

    A tag that the provider adds to everything belongs to `tags` only if the program gave it too.
    """
    every = {item["Key"]: item["Value"] for item in found}
    given = state.get("tags", {})
    own = {
        key: value
        for key, value in every.items()
        if key in given or cloud.default_tags.get(key) != value
    }
    return {"tags": own, "tagsAll": every}


def pairs(tags: Plain) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def given(inputs: Plain, **names: str) -> dict[str, Any]:
    """Arguments of a call: for each that ``inputs`` have, `Argument="input"`."""
    return {argument: inputs[name] for argument, name in names.items() if name in inputs}


class Ec2Kind(AwsKind):
    """What EC2 has, with the tags it takes. ``kind_of_arn`` is how its ARN names it."""

    kind_of_arn: str

    def tag(self, cloud: Cloud, id: str, inputs: Plain, new: Plain, old: list[str]) -> None:
        ec2 = cloud.client("ec2", inputs)
        tagged = self.tagged(id, inputs)
        if old:
            ec2.delete_tags(Resources=[tagged], Tags=[{"Key": key} for key in old])
        if new:
            ec2.create_tags(Resources=[tagged], Tags=pairs(new))

    def tagged(self, id: str, inputs: Plain) -> str:
        return id

    def common(self, cloud: Cloud, id: str, state: Plain, found: Plain) -> Plain:
        """Tags, owner and ARN of what EC2 describes."""
        owner = found.get("OwnerId") or cloud.account()
        arn = cloud.arn("ec2", state, owner, f"{self.kind_of_arn}/{id}")
        tags = found.get("Tags") or found.get("TagSet") or []
        result = tags_found(cloud, tags, state) | {"arn": arn, "ownerId": owner}
        return {name: value for name, value in result.items() if self._has(name)}

    def _has(self, name: str) -> bool:
        return name in self.outputs or name in self.shape


def shape(*names: str, **parts: Shape) -> Shape:
    """Inputs without parts by name, those with parts as keywords."""
    return dict.fromkeys(names) | parts


def constant(**values: Any) -> Mapping[str, Any]:
    return MappingProxyType(values)
