"""Helpers for values that are known now or as Pulumi outputs."""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, TypeVar

import pulumi
from pulumi.resource import DependencyResource

from earshot.errors import EarshotError, SpecError
from earshot.listeners.model import ClusterPlan
from earshot.listeners.problems import shown
from earshot_pulumi.provider.kind import Properties

T = TypeVar("T")


def applied(value: Any, act: Callable[[Any], Any]) -> Any:
    """``act(value)``; an Output if ``value`` is one.

    `Output.from_input` would search the whole value for further outputs.
    """
    return value.apply(act) if isinstance(value, pulumi.Output) else act(value)


def known_or(output: pulumi.Output[T], default: T) -> pulumi.Output[T]:
    """The value of ``output``, or ``default`` in a preview that cannot know it."""
    return output.apply(
        lambda value: default if pulumi.contains_unknowns(value) else value,
        run_with_unknowns=True,
    )


def without_dependencies(output: pulumi.Output[T]) -> pulumi.Output[T]:
    """``output`` without its dependencies, for children of a gate that has it as an input.

    They wait for the gate, and so for all dependencies of the value. If each of them depended on
    the interfaces and records of every node, the work would grow with the square of the nodes, and
    replacing one would replace every instance.
    """
    value: Any = output.future(with_unknowns=True)
    return pulumi.Output(set(), value, output.is_known(), output.is_secret())


def once(turn: pulumi.Output[Any], output: pulumi.Output[T]) -> pulumi.Output[T]:
    """The value of ``output``, once ``turn`` is known.

    `depends_on` would give the same order. But Pulumi searches every chain of dependencies for
    cycles, which takes the square of its length: too long for 300 nodes in a row.
    """

    async def value() -> Any:
        await turn.future(with_unknowns=True)
        return await output.future(with_unknowns=True)

    return pulumi.Output(output.resources(), value(), output.is_known(), output.is_secret())


def by_urn(resource: pulumi.Resource) -> pulumi.Output[pulumi.Resource]:
    """``resource`` as an entry of `depends_on`; not for a component.

    The engine gets the same dependency. Pulumi's SDK, which searches every chain of dependencies
    for cycles, ends its search here: for a chain of 300 nodes it would take 300 squared steps.
    """
    return without_dependencies(resource.urn.apply(DependencyResource))


def once_there(resource: pulumi.Resource, value: pulumi.Input[T]) -> pulumi.Output[T]:
    """``value`` as an output that depends on ``resource``, but is known in a preview."""
    output = pulumi.Output.from_input(value)

    async def resources() -> set[pulumi.Resource]:
        return {resource, *await output.resources()}

    known_value: Any = output.future(with_unknowns=True)
    return pulumi.Output(resources(), known_value, output.is_known(), output.is_secret())


def contains_output(value: Any) -> bool:
    """True if ``value`` or a part of it is an Output or awaitable."""
    if isinstance(value, Mapping):
        return any(map(contains_output, value.values()))
    if isinstance(value, list | tuple):
        return any(map(contains_output, value))
    return isinstance(value, pulumi.Output) or inspect.isawaitable(value)


def read_inputs(args: Any, name: str) -> Properties:
    """The inputs ``args`` of the component ``name``, in the form in which Pulumi sends them.

    Raises pulumi.RunError if ``args`` is not a map, and with every value that Pulumi ends with a
    stack trace.
    """
    if not isinstance(args, Mapping):
        raise pulumi.RunError(f"{name}: found {shown(args)}; allowed: a map of inputs")
    problems: list[str] = []
    inputs = dict(_sendable(args, "", problems))
    if problems:
        raise pulumi.RunError(str(SpecError.of(name, problems)))
    return inputs


def _sendable(value: Any, path: str, problems: list[str]) -> Any:
    """``value`` with text keys in its maps, as Pulumi rejects numbers such as broker ids.

    Adds to ``problems`` what Pulumi cannot send, and keys of a map that have the same text.
    """
    place = f"{path}: " if path else ""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, Mapping):
        inputs: Properties = {}
        for key, entry in value.items():
            text = str(key)
            if text in inputs:
                keys = ", ".join(map(repr, value))
                problems.append(f"{place}found the keys {keys}; allowed: each key once")
            elif not _is_sent(text):
                problem = f"found the key {shown(text)}; allowed: text that UTF-8 can encode"
                problems.append(f"{place}{problem}")
            inputs[text] = _sendable(entry, f"{path}.{text}" if path else text, problems)
        return inputs
    if isinstance(value, list | tuple):
        return [
            _sendable(element, f"{path}[{index}]", problems) for index, element in enumerate(value)
        ]
    if isinstance(value, pulumi.Output):
        return value
    if inspect.isawaitable(value):  # can be awaited once, and several resources need the value
        return pulumi.Output.from_input(value)
    if isinstance(value, str | int | float | None):
        if _is_sent(value):
            return value
        allowed = "text that UTF-8 can encode, or a number up to 1.7e308"
    else:
        allowed = "text, a number, true, false, a list, a map, or an output of these"
    problems.append(f"{place}found {shown(value)}; allowed: {allowed}")
    return value


def _is_sent(value: object) -> bool:
    """True if Pulumi's protocol, with numbers as floats and text as UTF-8, can send ``value``."""
    try:
        if isinstance(value, str):
            value.encode()
        elif isinstance(value, int):
            float(value)
    except (OverflowError, UnicodeEncodeError):
        return False
    return True


def unknown() -> pulumi.Output[Any]:
    """An output that a preview does not know."""

    async def value() -> None:
        return None

    async def known() -> bool:
        return False

    return pulumi.Output(set(), value(), known())


def unknown_paths(value: Any, path: str = "") -> Iterator[str]:
    """The paths of unknown parts of ``value``, e.g. `hosts[0].external`."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            yield from unknown_paths(entry, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for index, element in enumerate(value):
            yield from unknown_paths(element, f"{path}[{index}]")
    elif pulumi.contains_unknowns(value):
        yield path or "all inputs"


def are_same(value: object, sent: object) -> bool:
    """True if ``sent`` is ``value`` after it was an input: Pulumi drops null values of maps."""
    return bool(_without_nulls(value) == _without_nulls(sent))


def _without_nulls(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    return [_without_nulls(part) for part in value] if isinstance(value, list | tuple) else value


def plan_input(plan: ClusterPlan) -> Properties:
    """``plan`` as an input of a resource, with its extra properties as a secret.

    Pulumi stores inputs in its state and shows their changes.
    """
    document = plan.model_dump(mode="json")
    return {**document, "extra": pulumi.Output.secret(document["extra"])}


@contextlib.contextmanager
def problems_added(problems: list[str]) -> Iterator[None]:
    """Adds the problems of an EarshotError to ``problems``, for one message with all of them."""
    try:
        yield
    except EarshotError as error:
        problems += getattr(error, "problems", ()) or [error.line]


def with_run_errors(act: Callable[..., T]) -> Callable[..., T]:
    """``act``, with an EarshotError turned into a RunError, which Pulumi shows as a message."""

    def act_or_raise(*values: Any) -> T:
        try:
            return act(*values)
        except EarshotError as error:
            raise pulumi.RunError(str(error)) from None

    return act_or_raise
