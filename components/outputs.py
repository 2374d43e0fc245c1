"""Values that are known now, or once a resource is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pulumi

from earshot.errors import EarshotError

T = TypeVar("T")


def applied(value: Any, act: Callable[[Any], Any]) -> Any:
    """``act`` on what ``value`` is, or on what an Output will be.

    Not by `Output.from_input`, which takes data apart to look for more outputs in it.
    """
    return value.apply(act) if isinstance(value, pulumi.Output) else act(value)


def as_judged(output: pulumi.Output[T]) -> pulumi.Output[T]:
    """The value of ``output`` for children of a gate that has it as an input.

    They wait for the gate and so for all that the value came from; as dependencies of each of them,
    the interfaces and records of every node would make the work grow with the square of the
    nodes, and the replacement of one take every instance along.
    """
    value: Any = output.future(with_unknowns=True)
    return pulumi.Output(set(), value, output.is_known(), output.is_secret())


def once(turn: pulumi.Output[Any], output: pulumi.Output[T]) -> pulumi.Output[T]:
    """The value of ``output``, as soon as ``turn`` is there too.

    As `depends_on` would, for what takes it. But Pulumi looks for circles along every chain of
    dependencies, with each step as dear as the chain is long: 300 nodes in a row are too many.
    """

    async def value() -> Any:
        await turn.future(with_unknowns=True)
        return await output.future(with_unknowns=True)

    return pulumi.Output(output.resources(), value(), output.is_known(), output.is_secret())


def told(act: Callable[..., T]) -> Callable[..., T]:
    """``act`` for an `apply`, from where an EarshotError is to reach the user as its message."""

    def act_or_tell(*given: Any) -> T:
        try:
            return act(*given)
        except EarshotError as error:
            raise pulumi.RunError(str(error)) from None

    return act_or_tell
