"""Messages between the engine and the plugin, and the provider's schema."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from earshot_pulumi.provider.host import (
    Package,
    Servicer,
    message,
    plain_properties,
    secret_names,
)
from earshot_pulumi.provider.kind import (
    UNKNOWN,
    Difference,
    InvalidInputs,
    Kind,
    Operation,
    OperationFailed,
    Properties,
)
from earshot_pulumi.provider.parts import COMPONENTS, KINDS
from hypothesis import given
from hypothesis import strategies as st
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.runtime import proto, rpc

from earshot import __version__

URN = "urn:pulumi:test::project::earshot:index:Listeners$earshot:index:Proof::proof"

values = st.recursive(
    st.booleans() | st.integers(-(2**50), 2**50) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
names = st.text(min_size=1, max_size=6).filter(lambda text: not text.startswith("__"))


@given(st.dictionaries(names, values, max_size=4))
def test_properties_come_back_as_they_were_sent(properties: dict[str, Any]) -> None:
    assert plain_properties(message(properties)) == properties


def test_unknown_values_and_secrets_survive() -> None:
    sent = message({"a": UNKNOWN, "b": {"c": [UNKNOWN, 1.5]}, "d": "text"}, frozenset({"d"}))
    assert sent["a"] == rpc.UNKNOWN
    found = plain_properties(sent)
    assert found["a"] is UNKNOWN and found["b"]["c"] == [UNKNOWN, 1.5]
    assert secret_names(sent) == {"d"}


def test_a_secret_inside_a_map_makes_the_whole_input_secret() -> None:
    inner = PropertyValue({"password": PropertyValue("p", is_secret=True)})
    struct = PropertyValue.marshal_map({"client": inner})
    assert secret_names(struct) == {"client"}


def test_the_schema_describes_every_input_and_output() -> None:
    schema = json.loads(Package(COMPONENTS, KINDS).schema or "")
    resources = schema["resources"]
    assert resources["earshot:index:Listeners"]["isComponent"] is True
    assert resources["earshot:index:Proof"]["isComponent"] is False
    missing = [
        f"{token}.{name}"
        for token, item in [*resources.items(), *schema["types"].items()]
        for group in ("inputProperties", "properties")
        for name, described in item.get(group, {}).items()
        if not described.get("description")
    ]
    assert not missing


class Aborted(Exception):
    pass


class Context:
    async def abort(self, code: grpc.StatusCode, details: str) -> None:
        raise Aborted(details)


class Sleeper(Kind):
    """Takes long, or fails."""

    secrets = ("token",)

    def __init__(self) -> None:
        self.started = threading.Event()

    def check(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        if "bad" in news:
            raise InvalidInputs({"bad": "bad: found 1; allowed: nothing"})
        return {**news, "seconds": news.get("seconds", 0)}

    def diff(self, operation: Operation, id: str, olds: Properties, news: Properties) -> Difference:
        return Difference(olds != news, ("seconds",), delete_first=True)

    def create(self, operation: Operation, news: Properties) -> tuple[str, Properties]:
        if "fail" in news:
            raise OperationFailed("broker 2 refused the connection")
        if operation.preview:
            return "", {**news, "token": UNKNOWN}
        self.started.set()
        operation.wait(news["seconds"])
        return operation.name, {**news, "token": "t"}

    def delete(self, operation: Operation, id: str, olds: Properties) -> None:
        raise OperationFailed(f"{id} cannot be deleted")


@pytest.fixture
def sleeper() -> Sleeper:
    return Sleeper()


def _approve(inputs: dict[str, Any], show: Callable[[str, bool], None]) -> dict[str, Any]:
    return {**inputs, "approved": "yes"}


@pytest.fixture
def servicer(sleeper: Sleeper) -> Servicer:
    package = Package(COMPONENTS, KINDS)
    package.kinds = {"earshot:index:Proof": sleeper}
    return Servicer(package, _approve, [], "127.0.0.1:1")


def created(servicer: Servicer, preview: bool = False, **inputs: Any) -> Any:
    request = proto.CreateRequest(urn=URN, properties=message(inputs), preview=preview)
    return asyncio.run(servicer.Create(request, Context()))


def test_a_resource_is_created_checked_and_compared(servicer: Servicer) -> None:
    made = created(servicer, seconds=0)
    assert made.id == "proof"
    assert secret_names(made.properties) == {"token"}
    preview = created(servicer, preview=True, seconds=0)
    assert plain_properties(preview.properties)["token"] is UNKNOWN and preview.id == ""
    request = proto.CheckRequest(urn=URN, news=message({"x": 1}))
    checked = asyncio.run(servicer.Check(request, Context()))
    assert plain_properties(checked.inputs) == {"x": 1, "seconds": 0}
    request = proto.CheckRequest(urn=URN, news=message({"token": "clear"}))
    assert secret_names(asyncio.run(servicer.Check(request, Context())).inputs) == {"token"}
    compared = proto.DiffRequest(
        urn=URN, id="proof", olds=message({"x": 1}), news=message({"x": 2})
    )
    found = asyncio.run(servicer.Diff(compared, Context()))
    assert found.changes == proto.DiffResponse.DIFF_SOME
    assert list(found.replaces) == ["seconds"] and found.deleteBeforeReplace


def test_failures_show_their_message_alone(servicer: Servicer) -> None:
    with pytest.raises(Aborted, match=r"^broker 2 refused the connection$"):
        created(servicer, fail=True)
    request = proto.DeleteRequest(urn=URN, id="proof", properties=message({}))
    with pytest.raises(Aborted, match=r"^proof cannot be deleted$"):
        asyncio.run(servicer.Delete(request, Context()))
    check = proto.CheckRequest(urn=URN, news=message({"bad": 1}))
    (failure,) = asyncio.run(servicer.Check(check, Context())).failures
    assert (failure.property, failure.reason) == ("", "bad: found 1; allowed: nothing")


def test_a_cancel_ends_the_work_at_once(servicer: Servicer, sleeper: Sleeper) -> None:
    async def both() -> None:
        request = proto.CreateRequest(urn=URN, properties=message({"seconds": 60}))
        work = asyncio.ensure_future(servicer.Create(request, Context()))
        await asyncio.to_thread(sleeper.started.wait, 10)
        await servicer.Cancel(None, None)
        with pytest.raises(Aborted, match="interrupted"):
            await asyncio.wait_for(work, 10)

    asyncio.run(both())


def test_a_program_of_another_version_is_refused(servicer: Servicer) -> None:
    def check(version: str) -> Any:
        request = proto.CheckRequest(news=message({"version": version}))
        return asyncio.run(servicer.CheckConfig(request, Context()))

    (failure,) = check("9.9.9").failures
    assert f"asks for earshot 9.9.9, and this plugin is {__version__}" in failure.reason
    assert not check(__version__).failures
