"""Custom resources that earshot's components make for themselves.

They are not in the schema. Their properties have Python's names in states too.
"""

from __future__ import annotations

from collections.abc import Iterable

import pulumi

from earshot import __version__
from earshot.errors import EarshotError
from earshot_pulumi.provider.kind import Difference, InvalidInputs, Kind, Operation, Properties
from earshot_pulumi.provider.resource import type_token

DYNAMIC = "pulumi-python:dynamic/earshot"
"""Package and module of types in states that dynamic providers wrote."""


class InternalResource(pulumi.CustomResource):
    """A custom resource whose kind is in `parts.kinds` under the name of its class."""

    FORMER_NAMES: tuple[str, ...] = ()
    """Names of its type as a dynamic resource; without any, the class's own."""

    def __init__(self, name: str, props: Properties, opts: pulumi.ResourceOptions) -> None:
        kind = type(self).__name__
        former = [f"{DYNAMIC}:{it}" for it in self.FORMER_NAMES or (kind,)]
        aliases = [pulumi.Alias(type_=it) for it in former]
        for alias in opts.aliases or ():  # it had another parent: the former types had it too
            if isinstance(alias, pulumi.Alias) and alias.parent is pulumi.ROOT_STACK_RESOURCE:
                aliases += [pulumi.Alias(type_=it, parent=alias.parent) for it in former]
        own = pulumi.ResourceOptions(version=__version__, aliases=[*aliases])
        super().__init__(type_token(kind), name, props, pulumi.ResourceOptions.merge(own, opts))


def types_of(name: str) -> tuple[str, ...]:
    """The types that resources of the class ``name`` may have in a state."""
    return type_token(name), f"{DYNAMIC}:{name}"


class InternalKind(Kind):
    """A kind that makes and changes its resource alike."""

    ID = ""
    """The id of its resource."""
    ID_IN = ""
    """The output that is the id, where it has no fixed one."""
    DECISIVE: tuple[str, ...] = ()
    """The inputs whose change updates the resource. Empty: all inputs except those in `IDLE`."""
    IDLE: tuple[str, ...] = ()
    """The inputs whose change does not update the resource."""

    def made(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        """The outputs, once the resource is made or changed; ``olds`` are empty at first."""
        return news

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        """True if the resource is to be changed."""
        return any(
            olds.get(key) != news.get(key) for key in self.DECISIVE or news.keys() - set(self.IDLE)
        )

    def diff(self, operation: Operation, id: str, olds: Properties, news: Properties) -> Difference:
        return Difference(self.differs(operation, olds, news))

    def create(self, operation: Operation, news: Properties) -> tuple[str, Properties]:
        if operation.preview:
            return "", news  # the SDK takes outputs that are missing in a preview for unknown
        made = self.made(operation, {}, news)
        return made[self.ID_IN] if self.ID_IN else self.ID, made

    def update(
        self, operation: Operation, id: str, olds: Properties, news: Properties
    ) -> Properties:
        return news if operation.preview else self.made(operation, olds, news)


class CheckedKind(InternalKind):
    """Refuses inputs that have problems, before anything is changed."""

    ID = "good"
    interrupted = "interrupted: nothing was changed"

    def problems(self, operation: Operation, olds: Properties, news: Properties) -> Iterable[str]:
        """Why ``news`` must not be applied over ``olds``, which are empty at first.

        May complete ``news``. An EarshotError that it raises becomes one more problem.
        """
        raise NotImplementedError

    def check(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        found: list[str] = []
        try:
            for problem in self.problems(operation, olds, news):
                found.append(problem)
        except EarshotError as error:
            found.append(str(error))
        if found:
            raise InvalidInputs({"": "\n" + "\n".join(f"- {problem}" for problem in found)})
        return news
