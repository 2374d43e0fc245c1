"""Dynamic providers: what all have in common, and refusals already in a preview."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pulumi
from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    CreateResult,
    DiffResult,
    ResourceProvider,
    UpdateResult,
)
from pydantic import TypeAdapter

from earshot.errors import EarshotError
from earshot.project import Project
from earshot_pulumi import owner

Props = dict[str, Any]
T = TypeVar("T")
_adapter: Callable[[Any], TypeAdapter[Any]] = functools.cache(TypeAdapter)


class Provider(ResourceProvider):
    """A dynamic provider that ends with its engine; none of its inputs is a secret."""

    serialize_as_secret_always = False
    ID = ""
    """The id of its resource."""
    ID_IN = ""
    """The output that is the id, where it has no fixed one."""
    DECISIVE: tuple[str, ...] = ()
    """The inputs that change its resource; without any, all do but those that are `IDLE`."""
    IDLE: tuple[str, ...] = ()
    """The inputs that do not; without any of both, the engine compares all inputs."""
    _config: Any = None
    """The stack's configuration."""

    def configure(self, req: Any) -> None:
        owner.exit_with_parent()
        self._config = req.config

    def made(self, olds: Props, news: Props) -> Props:
        """The outputs, once the resource is made or changed; ``olds`` are empty at first."""
        return news

    def differs(self, olds: Props, news: Props) -> bool | None:
        """Whether the resource is to be changed; None leaves it to the engine."""
        if not self.DECISIVE and not self.IDLE:
            return None
        return any(
            olds.get(key) != news.get(key) for key in self.DECISIVE or news.keys() - set(self.IDLE)
        )

    def diff(self, _id: str, olds: Props, news: Props) -> DiffResult:
        return DiffResult(changes=self.differs(olds, news))

    def create(self, props: Props) -> CreateResult:
        with on_lines_of_its_own():
            made = self.made({}, props)
        return CreateResult(made[self.ID_IN] if self.ID_IN else self.ID, made)

    def update(self, _id: str, olds: Props, news: Props) -> UpdateResult:
        with on_lines_of_its_own():
            return UpdateResult(self.made(olds, news))


class CheckedProvider(Provider):
    """Refuses inputs that have problems, before anything is changed."""

    ID = "good"

    def problems(self, olds: Props, news: Props) -> Iterable[str]:
        """Why ``news`` must not be applied over ``olds``, which are empty at first.

        May complete ``news``. An EarshotError that it raises becomes one more problem.
        """
        raise NotImplementedError

    def check(self, olds: Props, news: Props) -> CheckResult:
        found: list[str] = []
        try:
            for problem in self.problems(olds, news):
                found.append(problem)
        except EarshotError as error:
            found.append(str(error))
        text = "\n".join(f"- {problem}" for problem in found)
        # without a property's name: Pulumi would print the property's value before the text
        return CheckResult(news, [CheckFailure("", f"\n{text}")] if found else [])


def read(kind: type[T], props: Any) -> T:
    """``props`` of a resource as a ``kind``: every number there is a float, and None is left out.

    Keys that ``kind`` does not have are left out, too.
    """
    found: T = _adapter(kind).validate_python(props)
    return found


def write(value: Any) -> Any:
    """The props that `read` reads as ``value``."""
    return _adapter(type(value)).dump_python(value, mode="json")


def here(path: str) -> Path:
    """``path`` in this checkout, whichever checkout wrote it into the state."""
    return Project.find().here(Path(path))


@contextlib.contextmanager
def on_lines_of_its_own() -> Iterator[None]:
    """A context in which an EarshotError's message begins with a line break.

    The engine puts "Exception calling application:" before it.
    """
    try:
        yield
    except EarshotError as error:
        raise EarshotError(f"\n{error}") from None


def formerly(name: str, opts: pulumi.ResourceOptions) -> pulumi.ResourceOptions:
    """``opts`` of a resource whose type release 0.1.0 called ``name``: it is not a new one."""
    known = pulumi.Alias(type_=f"pulumi-python:dynamic/earshot:{name}")
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(aliases=[known]))
