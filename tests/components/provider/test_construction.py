"""The inputs that a component gets from a program in another language."""

import asyncio
from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from earshot_pulumi.provider import registry
from earshot_pulumi.provider.host import Servicer
from pulumi.provider import server as sdk
from pulumi.runtime import mocks

from tests.components.aws.registered import Answers
from tests.components.constructed import given_later
from tests.components.engine_double import Engine
from tests.raised import raised


def mapped(component: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """The inputs of the component, without outputs; ``inputs`` as `constructed` has them."""
    package = registry.package()
    answers = Answers()
    mocks.set_mocks(answers, "program", "stack", False, monitor=Engine(answers))
    known: dict[str, Any] = {}

    def run() -> Any:
        arguments = {key: item() if callable(item) else item for key, item in inputs.items()}
        python_inputs = package.map_inputs(arguments, package._component_defs[component])
        return pulumi.Output.all(**python_inputs).apply(known.update)

    pulumi.runtime.test(run)()  # type: ignore[no-untyped-call]
    return known


NODES = {"1": {"internal": "localhost"}}
LISTENERS = [{"name": "INTERNAL", "port": 19092, "scopes": ["internal"]}]
WAIVERS = {
    "names": {"waived": {"a.example": "why", "b.example": {"reason": "r", "until": "2027-01-31"}}}
}


@pytest.mark.parametrize("as_input", [lambda value: lambda: value, given_later])
@pytest.mark.parametrize(("component", "inputs", "expected"), [
    ("LocalCluster", {"security": {"passwordNumbers": {"a": 1}, "tls": {"renewDays": 3}}},
     {"security": {"password_numbers": {"a": 1}, "tls": {"renew_days": 3}}}),
    ("LocalCluster", {"listeners": [{"name": "A", "address": {"basePort": 5}}]},
     {"listeners": [{"name": "A", "address": {"base_port": 5}}]}),
    ("Listeners", {"policy": {"levels": {"KL019": "mandatory"}}, "controllers": {"port": 1}},
     {"policy": {"levels": {"KL019": "mandatory"}}, "controllers": {"port": 1}}),
    ("Listeners", {"policy": WAIVERS}, {"policy": WAIVERS}),
    ("Listeners", {"nodes": {"1": {"logDir": "/a"}}}, {"nodes": {"1": {"log_dir": "/a"}}}),
])  # fmt: skip
def test_an_input_that_is_an_output_arrives_like_a_value(
    as_input: Callable[[Any], Any], component: str, inputs: Any, expected: Any
) -> None:
    required = {"nodes": NODES, "listeners": LISTENERS} if component == "Listeners" else {}
    arguments = {**required, **{key: as_input(value) for key, value in inputs.items()}}
    assert mapped(component, arguments) == {**required, **expected}


@pytest.mark.parametrize(
    "changes",
    [
        {"listeners": [given_later(LISTENERS[0])]},
        {"nodes": {"1": given_later(NODES["1"])}},
        {"listeners": [{**LISTENERS[0], "port": given_later(19092)}]},
    ],
)
def test_a_part_that_is_an_output_arrives(changes: dict[str, Any]) -> None:
    plain = {"nodes": NODES, "listeners": LISTENERS}
    changed = {key: lambda value=value: called(value) for key, value in changes.items()}
    assert mapped("Listeners", {**plain, **changed}) == plain


def called(value: Any) -> Any:
    """``value`` with the result of each function in it."""
    if isinstance(value, dict):
        return {key: called(part) for key, part in value.items()}
    if isinstance(value, list):
        return [called(part) for part in value]
    return value() if callable(value) else value


def test_keys_that_the_schema_lacks_reach_the_component() -> None:
    listeners = [{**LISTENERS[0], "protocoll": "SSL"}]
    arguments = {"nodes": NODES, "listeners": listeners, "polcy": {"levels": {}}}
    assert mapped("Listeners", arguments) == arguments


def test_an_error_that_a_component_finds_later_has_no_words_of_the_protocol(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Aborted(Exception):
        pass

    class Context:
        async def abort(self, code: Any, text: str) -> None:
            raise Aborted(text)

    async def refuse(self: Any, request: Any, context: Any) -> None:
        raise pulumi.RunError("kafka: nodes: found 'x'; allowed: a map")

    monkeypatch.setattr(sdk.ProviderServicer, "Construct", refuse)
    servicer = Servicer(registry, [], "127.0.0.1:1")
    error = raised(Aborted, lambda: asyncio.run(servicer.Construct(None, Context())))
    assert str(error) == "\nkafka: nodes: found 'x'; allowed: a map"
