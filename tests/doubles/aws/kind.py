"""Base classes of the resource types of the AWS double.

A type creates the resource, describes it as it is now, and changes it to what is asked for. The
last step follows creation and every change, and begins with the description, so that the next run
finishes one that was interrupted.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from tests.doubles.aws.cloud import BotoCoreError, ClientError, Cloud, error_line, is_missing
from tests.doubles.plugin.kind import Kind, PartlyCreated, ProviderError, Shape
from tests.doubles.plugin.values import Plain


class AwsKind(Kind[Cloud]):
    """A kind with `region` settles it later; one with `tags` has the output `tagsAll`."""

    outputs: frozenset[str] = frozenset()
    """Computed values, which are not inputs; only those that a program or a test reads."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "region" in getattr(cls, "shape", ()):
            cls.computed_later |= {"region"}
        if "tags" in getattr(cls, "shape", ()):
            cls.outputs |= {"tagsAll"}

    @abstractmethod
    def make(self, cloud: Cloud, inputs: Plain) -> str:
        """Creates the resource without what `adjust` can add. Returns its id."""

    @abstractmethod
    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        """The resource as it is now, inputs included. If it is gone: None, or the cloud's error.

        ``state`` has its last known values, or the inputs of a new one.
        """

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        """Changes values of ``current`` to the ``inputs``, unless that takes a replacement."""

    @abstractmethod
    def remove(self, cloud: Cloud, id: str, state: Plain) -> None: ...

    def tag(self, cloud: Cloud, id: str, inputs: Plain, tags: Plain, removed: list[str]) -> None:
        """Sets ``tags``, and removes those with the keys ``removed``."""
        raise NotImplementedError(f"{type(self).__name__} takes no tags")

    def compared(self) -> Iterator[str]:
        yield from self.shape
        if "tags" in self.shape:
            yield "tagsAll"

    def needs_replacement(self, name: str, state: Plain, inputs: Plain) -> bool:
        return name not in self.in_place and name not in ("tags", "tagsAll")

    def deletes_first(self, state: Plain, inputs: Plain) -> bool:
        """True if the program chose the name: two resources cannot have it."""
        is_generated = self.name_input in inputs.get("__defaults", [])
        return not is_generated and super().deletes_first(state, inputs)

    def create(self, cloud: Cloud, inputs: Plain) -> tuple[str, Plain]:
        id = self.make(cloud, inputs)
        try:
            return id, self._applied(cloud, id, inputs)
        except (ClientError, BotoCoreError) as error:
            raise PartlyCreated(error_line(error), id, inputs) from error

    def read(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        current = self._current(cloud, id, state)
        return None if current is None else state | current

    def update(self, cloud: Cloud, id: str, state: Plain, inputs: Plain) -> Plain:
        return self._applied(cloud, id, inputs)

    def delete(self, cloud: Cloud, id: str, state: Plain) -> None:
        try:
            self.remove(cloud, id, state)
        except ClientError as error:
            if not is_missing(error):
                raise

    def _applied(self, cloud: Cloud, id: str, inputs: Plain) -> Plain:
        current = self._current(cloud, id, inputs)
        if current is None:
            raise ProviderError(f"{id} exists no more; a refresh takes it out of the state")
        if "tags" in self.shape:
            all_tags, current_tags = inputs.get("tagsAll", {}), current.get("tagsAll", {})
            tags = {k: value for k, value in all_tags.items() if current_tags.get(k) != value}
            removed = sorted(current_tags.keys() - all_tags.keys())
            if tags or removed:
                self.tag(cloud, id, inputs, tags, removed)
        self.adjust(cloud, id, current, inputs)
        return inputs | (self._current(cloud, id, inputs) or {})

    def _current(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        try:
            current = self.find(cloud, id, state)
        except ClientError as error:
            if is_missing(error):
                return None
            raise
        if current is None:
            return None
        if "region" in self.shape:
            current["region"] = cloud.region_of(state)
        undeclared = current.keys() - self.shape.keys() - self.outputs
        assert not undeclared, f"{type(self).__name__} does not declare {undeclared}"
        return current


def tags_of(cloud: Cloud, aws_tags: list[dict[str, str]], state: Plain) -> Plain:
    """`tags` and `tagsAll` from AWS's list of keys and values.

    A tag that the provider adds to every resource is in `tags` only if the program has it too.
    """
    all_tags = {tag["Key"]: tag["Value"] for tag in aws_tags}
    inputs = state.get("tags", {})
    tags = {
        key: value
        for key, value in all_tags.items()
        if key in inputs or cloud.default_tags.get(key) != value
    }
    return {"tags": tags, "tagsAll": all_tags}


def pairs(tags: Plain) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def aws_name(name: str) -> str:
    """`vpcId` -> `VpcId`."""
    return name[0].upper() + name[1:]


def arguments(inputs: Plain, *names: str, **renamed: str) -> dict[str, Any]:
    """Arguments of a call that ``inputs`` has: `name` as `Name`, or `Argument="input"`."""
    inputs_by_argument = {aws_name(name): name for name in names} | renamed
    return {key: inputs[name] for key, name in inputs_by_argument.items() if name in inputs}


def outputs_of(answer: Plain, *names: str) -> Plain:
    """The values of `Name` in AWS's ``answer`` as `name`; None where it has none."""
    return {name: answer.get(aws_name(name)) for name in names}


def filters(values: Mapping[str, str]) -> list[dict[str, Any]]:
    """The argument `Filters` of EC2's calls, from the value of each filter."""
    return [{"Name": name, "Values": [value]} for name, value in values.items()]


class Ec2Kind(AwsKind):
    """A resource type of EC2 with tags; ``kind_of_arn`` is its part of the ARN."""

    kind_of_arn: str

    def tag(self, cloud: Cloud, id: str, inputs: Plain, tags: Plain, removed: list[str]) -> None:
        ec2 = cloud.client("ec2", inputs)
        if removed:
            ec2.delete_tags(Resources=[id], Tags=[{"Key": key} for key in removed])
        if tags:
            ec2.create_tags(Resources=[id], Tags=pairs(tags))

    def common(self, cloud: Cloud, id: str, state: Plain, answer: Plain) -> Plain:
        """Tags and ARN from EC2's ``answer``."""
        owner = answer.get("OwnerId") or cloud.account()
        arn = cloud.arn("ec2", state, owner, f"{self.kind_of_arn}/{id}")
        tags = answer.get("Tags") or answer.get("TagSet") or []
        return tags_of(cloud, tags, state) | ({"arn": arn} if "arn" in self.outputs else {})


def shape(*names: str, **parts: Shape) -> dict[str, Shape | None]:
    """Inputs without parts by name, those with parts as keywords."""
    return dict.fromkeys(names) | parts


def constant(**values: Any) -> Mapping[str, Any]:
    return MappingProxyType(values)
