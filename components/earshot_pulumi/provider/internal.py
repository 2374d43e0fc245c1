"""Base classes of custom resources that only earshot's components create.

They are not in the schema. Their properties have Python names in states.
"""

from collections.abc import Iterable

import pulumi

from earshot import __version__
from earshot.errors import EarshotError
from earshot_pulumi.provider.kind import (
    Difference,
    InvalidInputs,
    Kind,
    Operation,
    Properties,
    changed,
)
from earshot_pulumi.provider.resource import type_token

DYNAMIC = "pulumi-python:dynamic/earshot"
"""Package and module of types in states of earlier releases, which used dynamic providers."""


class InternalResource(pulumi.CustomResource):
    """A custom resource; `parts.kinds` has its kind by the name of its class."""

    FORMER_NAMES: tuple[str, ...] = ()
    """Names of its type as a dynamic resource; the default is the class's name."""

    def __init__(self, name: str, props: Properties, opts: pulumi.ResourceOptions) -> None:
        kind = type(self).__name__
        former_types = [f"{DYNAMIC}:{type_name}" for type_name in self.FORMER_NAMES or (kind,)]
        aliases = [pulumi.Alias(type_=type_name) for type_name in former_types]
        for alias in opts.aliases or ():  # the former types also had a former parent
            if isinstance(alias, pulumi.Alias) and alias.parent is pulumi.ROOT_STACK_RESOURCE:
                aliases += [
                    pulumi.Alias(type_=type_name, parent=alias.parent) for type_name in former_types
                ]
        options = pulumi.ResourceOptions(version=__version__, aliases=[*aliases])
        options = pulumi.ResourceOptions.merge(options, opts)
        super().__init__(type_token(kind), name, props, options)


def types_of(name: str) -> tuple[str, ...]:
    """The types that resources of the class ``name`` may have in a state."""
    return type_token(name), f"{DYNAMIC}:{name}"


class InternalKind(Kind):
    """A kind that creates and updates its resource in the same way."""

    ID = ""
    """The fixed id of its resource."""
    ID_IN = ""
    """The output that is the id, if it is not fixed."""
    DECISIVE: tuple[str, ...] = ()
    """The inputs whose change updates the resource. Empty: all inputs except those in `IDLE`."""
    IDLE: tuple[str, ...] = ()
    """The inputs whose change does not update the resource."""

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        """Creates or updates the resource and returns its outputs; ``olds`` are empty at first."""
        return news

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        """True if the resource must be updated."""
        return changed(olds, news, self.DECISIVE or news.keys() - set(self.IDLE))

    def diff(self, operation: Operation, id: str, olds: Properties, news: Properties) -> Difference:
        return Difference(self.differs(operation, olds, news))

    def create(self, operation: Operation, news: Properties) -> tuple[str, Properties]:
        if operation.preview:
            return "", news  # to the SDK, missing outputs are unknown in a preview
        outputs = self.apply(operation, {}, news)
        return outputs[self.ID_IN] if self.ID_IN else self.ID, outputs

    def update(
        self, operation: Operation, id: str, olds: Properties, news: Properties
    ) -> Properties:
        return news if operation.preview else self.apply(operation, olds, news)


class CheckedKind(InternalKind):
    """Refuses inputs that have problems, before anything is changed."""

    ID = "good"
    interrupted = "interrupted: nothing was changed"

    def problems(self, operation: Operation, olds: Properties, news: Properties) -> Iterable[str]:
        """Why ``news`` must not replace ``olds``, which are empty at first.

        May complete ``news``. An EarshotError that it raises becomes one more problem.
        """
        raise NotImplementedError

    def check(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        problems: list[str] = []
        try:
            for problem in self.problems(operation, olds, news):
                problems.append(problem)
        except EarshotError as error:
            problems.append(str(error))
        if problems:
            raise InvalidInputs({"": "\n" + "\n".join(f"- {problem}" for problem in problems)})
        return news
