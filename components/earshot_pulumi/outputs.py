"""Values that are known now, or once a resource exists."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeVar

import pulumi

from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan
from earshot.listeners.problems import shown

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


def once_there(resource: pulumi.Resource, value: pulumi.Input[T]) -> pulumi.Output[T]:
    """``value``, known in a preview too; whatever uses it waits until ``resource`` is made."""
    output = pulumi.Output.from_input(value)

    async def resources() -> set[pulumi.Resource]:
        return {resource, *await output.resources()}

    known: Any = output.future(with_unknowns=True)
    return pulumi.Output(resources(), known, output.is_known(), output.is_secret())


def contains_output(value: Any) -> bool:
    """Whether ``value``, or a part of it, is only known later."""
    if isinstance(value, Mapping):
        return any(map(contains_output, value.values()))
    if isinstance(value, list | tuple):
        return any(map(contains_output, value))
    return isinstance(value, pulumi.Output) or inspect.isawaitable(value)


def read_inputs(args: Any, name: str) -> dict[str, Any]:
    """The inputs ``args`` of the component ``name``, as `with_text_keys` returns them.

    Raises pulumi.RunError for anything but a map, and as `with_text_keys` does.
    """
    if not isinstance(args, Mapping):
        raise pulumi.RunError(f"{name}: found {shown(args)}; allowed: a map of inputs")
    return dict(with_text_keys(args, name))


def with_text_keys(value: Any, name: str) -> Any:
    """``value`` with the keys of its maps as text: Pulumi takes no numbers, as broker ids are.

    Raises pulumi.RunError, which begins with ``name``, for two keys of one map that are one text.
    """
    if isinstance(value, Mapping):
        texts = {str(key): with_text_keys(item, name) for key, item in value.items()}
        if len(texts) < len(value):
            keys = ", ".join(map(repr, value))
            raise pulumi.RunError(f"{name}: found the keys {keys}; allowed: each key once")
        return texts
    if isinstance(value, list | tuple):
        return [with_text_keys(item, name) for item in value]
    return value


def unknown() -> pulumi.Output[Any]:
    """An output that a preview does not know."""

    async def value() -> None:
        return None

    async def known() -> bool:
        return False

    return pulumi.Output(set(), value(), known())


def unknown_paths(value: Any, path: str = "") -> Iterator[str]:
    """The parts of ``value`` that are not known, as in `hosts[0].external`."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from unknown_paths(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from unknown_paths(item, f"{path}[{index}]")
    elif pulumi.contains_unknowns(value):
        yield path or "all inputs"


def made_from(
    component: pulumi.ComponentResource,
    args: Mapping[str, Any],
    make: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    names: Sequence[str],
) -> Mapping[str, Any]:
    """The outputs ``names`` of ``component``: what ``make`` returns for the values of ``args``.

    ``args`` decide which resources there are: a preview that does not know them shows none, says
    so, and knows no output. An EarshotError of ``make`` becomes a pulumi.RunError.
    """
    made = with_run_errors(make)
    if not contains_output(args):
        return made(args)  # each output by itself: a preview knows some parts of them

    def planned(known: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        if paths := sorted(unknown_paths(known[0])):
            text = f"planned in the update, as {', '.join(paths)} is not known yet"
            pulumi.log.info(text, component)
            return {name: unknown() for name in names}
        return made(known[0])

    outputs = pulumi.Output.all(args).apply(planned, run_with_unknowns=True)
    return {name: outputs.apply(itemgetter(name)) for name in names}


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
