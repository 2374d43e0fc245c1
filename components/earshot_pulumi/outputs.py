"""Values that are known now, or once a resource exists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pulumi

from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan

T = TypeVar("T")


def applied(value: Any, act: Callable[[Any], Any]) -> Any:
    """``act(value)``, or an Output of it where ``value`` is an Output.

    `Output.from_input` would search the whole value for more outputs.
    """
    return value.apply(act) if isinstance(value, pulumi.Output) else act(value)


def known_or(output: pulumi.Output[T], otherwise: T) -> pulumi.Output[T]:
    """The value of ``output``, or ``otherwise`` in a preview that cannot know it."""
    return output.apply(
        lambda found: otherwise if pulumi.contains_unknowns(found) else found,
        run_with_unknowns=True,
    )


def without_dependencies(output: pulumi.Output[T]) -> pulumi.Output[T]:
    """The value of ``output`` for children of a gate that has it as an input.

    They wait for the gate, and so for all that the value depends on. If each of them had the
    interfaces and records of every node as dependencies, the work would grow with the square of the
    nodes, and replacing one would replace every instance.
    """
    value: Any = output.future(with_unknowns=True)
    return pulumi.Output(set(), value, output.is_known(), output.is_secret())


def once(turn: pulumi.Output[Any], output: pulumi.Output[T]) -> pulumi.Output[T]:
    """The value of ``output``, as soon as ``turn`` is known too.

    `depends_on` would order resources likewise. But Pulumi searches every chain of dependencies for
    cycles, and the time grows with the square of its length: 300 nodes in a row are too many.
    """

    async def value() -> Any:
        await turn.future(with_unknowns=True)
        return await output.future(with_unknowns=True)

    return pulumi.Output(output.resources(), value(), output.is_known(), output.is_secret())


def kept(plan: ClusterPlan) -> dict[str, Any]:
    """``plan`` as an input of a resource, with its free properties as a secret.

    Pulumi writes inputs into its state and shows their changes.
    """
    document = plan.model_dump(mode="json")
    return {**document, "extra": pulumi.Output.secret(document["extra"])}


def with_run_errors(act: Callable[..., T]) -> Callable[..., T]:
    """``act`` for an `apply`; an EarshotError becomes a RunError, which shows as a message."""

    def act_or_raise(*given: Any) -> T:
        try:
            return act(*given)
        except EarshotError as error:
            raise pulumi.RunError(str(error)) from None

    return act_or_raise
