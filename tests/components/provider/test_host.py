"""Messages between the engine and the plugin, and the provider's schema."""

import asyncio
import importlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pulumi
import pytest
from earshot_pulumi.provider import parts
from earshot_pulumi.provider.host import (
    CANCEL_SECONDS,
    Package,
    Servicer,
    message,
    plain_properties,
)
from earshot_pulumi.provider.internal import InternalResource
from earshot_pulumi.provider.kind import (
    UNKNOWN,
    Difference,
    InvalidInputs,
    Kind,
    Operation,
    OperationFailed,
    Properties,
)
from earshot_pulumi.provider.resource import EarshotResource, type_token
from google.protobuf import struct_pb2
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
    sent = message({"a": UNKNOWN, "b": {"c": [UNKNOWN, 1.5]}, "d": "text"}, secrets={"d"})
    assert sent["a"] == rpc.UNKNOWN
    found = plain_properties(sent)
    assert found["a"] is UNKNOWN and found["b"]["c"] == [UNKNOWN, 1.5]
    assert secrets_in(sent) == {"d"}


def secrets_in(struct: struct_pb2.Struct) -> set[str]:
    """The properties that are secret as a whole."""
    return {key for key, it in PropertyValue.unmarshal_map(struct).items() if it.is_secret}


def test_an_unchanged_map_keeps_which_part_of_it_is_secret() -> None:
    inner = PropertyValue(
        {
            "user": PropertyValue("u"),
            "none": PropertyValue(None),
            "listed": PropertyValue([PropertyValue("l"), PropertyValue("p", is_secret=True)]),
        }
    )
    arrived = PropertyValue.marshal_map({"client": inner})
    sent = message({"client": {"user": "u", "listed": ["l", "p"]}}, arrived)
    client = PropertyValue.unmarshal_map(sent)["client"]
    assert client.contains_secret() and not client.is_secret
    assert plain_properties(sent) == {"client": {"user": "u", "listed": ["l", "p"]}}
    inside: Any = client.value
    assert [item.is_secret for item in inside["listed"].value] == [False, True]


def test_a_map_that_was_changed_is_secret_as_a_whole_if_a_part_was() -> None:
    inner = PropertyValue({"password": PropertyValue("p", is_secret=True)})
    arrived = PropertyValue.marshal_map({"client": inner})
    assert secrets_in(message({"client": {"p": "p"}}, arrived)) == {"client"}


def test_nulls_in_maps_are_left_out() -> None:
    struct = PropertyValue.marshal_map({"a": PropertyValue({"b": PropertyValue(None)})})
    assert plain_properties(struct) == {"a": {}}


def test_types_have_names_to_which_a_generator_can_add_args() -> None:
    schema = parts.package().schema or ""
    assert '"earshot:index:Listener"' in schema
    assert '"#/types/earshot:index:Listener"' in schema
    assert 'Args"' not in schema


def test_a_description_keeps_its_paragraphs_and_no_wrapped_lines() -> None:
    schema = json.loads(parts.package().schema or "")
    about = schema["resources"]["earshot:index:Listeners"]
    assert about["description"].count("\n") == 2 and ".\n\nAll outputs wait" in about["description"]
    assert "\n" not in about["inputProperties"]["vantage"]["description"]
    assert schema["license"] and schema["description"]


def test_an_sdk_has_the_same_name_wherever_the_package_comes_from() -> None:
    languages = json.loads(parts.package().schema or "")["language"]
    assert languages["python"]["packageName"] == "pulumi_earshot"
    assert languages["nodejs"]["packageName"] == "@pulumi/earshot"


def test_the_schema_describes_every_input_and_output() -> None:
    schema = json.loads(parts.package().schema or "")
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
    interrupted = "interrupted: half is made"

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


@pytest.fixture
def servicer(sleeper: Sleeper) -> Servicer:
    return Servicer(Sleeping(sleeper), [], "127.0.0.1:1")


class Sleeping:
    """A plugin whose resources all sleep."""

    def __init__(self, sleeper: Sleeper) -> None:
        self._sleeper = sleeper

    def package(self) -> Package:
        raise AssertionError("a run without components does not import them")

    def kind(self, name: str) -> Kind:
        assert name == "earshot:index:Proof"
        return self._sleeper

    def judge(self, inputs: Properties, show: Callable[[str, bool], None]) -> Properties:
        return {**inputs, "approved": "yes"}


def created(servicer: Servicer, preview: bool = False, **inputs: Any) -> Any:
    request = proto.CreateRequest(urn=URN, properties=message(inputs), preview=preview)
    return asyncio.run(servicer.Create(request, Context()))


def test_a_resource_is_created_checked_and_compared(servicer: Servicer) -> None:
    made = created(servicer, seconds=0)
    assert made.id == "proof"
    assert secrets_in(made.properties) == {"token"}
    preview = created(servicer, preview=True, seconds=0)
    assert plain_properties(preview.properties)["token"] is UNKNOWN and preview.id == ""
    request = proto.CheckRequest(urn=URN, news=message({"x": 1}))
    checked = asyncio.run(servicer.Check(request, Context()))
    assert plain_properties(checked.inputs) == {"x": 1, "seconds": 0}
    request = proto.CheckRequest(urn=URN, news=message({"token": "clear"}))
    assert secrets_in(asyncio.run(servicer.Check(request, Context())).inputs) == {"token"}
    compared = proto.DiffRequest(
        urn=URN, id="proof", olds=message({"x": 1}), news=message({"x": 2})
    )
    found = asyncio.run(servicer.Diff(compared, Context()))
    assert found.changes == proto.DiffResponse.DIFF_SOME
    assert list(found.replaces) == ["seconds"] and found.deleteBeforeReplace


def test_failures_show_their_message_alone(servicer: Servicer) -> None:
    with pytest.raises(Aborted, match=r"^\nbroker 2 refused the connection$"):
        created(servicer, fail=True)
    request = proto.DeleteRequest(urn=URN, id="proof", properties=message({}))
    with pytest.raises(Aborted, match=r"^\nproof cannot be deleted$"):
        asyncio.run(servicer.Delete(request, Context()))
    check = proto.CheckRequest(urn=URN, news=message({"bad": 1}))
    (failure,) = asyncio.run(servicer.Check(check, Context())).failures
    assert (failure.property, failure.reason) == ("", "bad: found 1; allowed: nothing")


def test_a_type_of_resource_that_does_not_exist_is_named() -> None:
    servicer = Servicer(parts, [], "127.0.0.1:1")
    request = proto.CheckRequest(urn=URN.replace("Proof", "Prof"), news=message({}))
    said = r"^\nresource type earshot:index:Prof: is not one of earshot's\n  allowed: .*Proof$"
    with pytest.raises(Aborted, match=said):
        asyncio.run(servicer.Check(request, Context()))


def test_a_component_that_is_imported_is_called_one() -> None:
    servicer = Servicer(parts, [], "127.0.0.1:1")
    request = proto.ReadRequest(urn=URN.replace("$earshot:index:Proof", ""), id="x")
    said = r"^\nresource type earshot:index:Listeners: is a component, which cannot be imported"
    with pytest.raises(Aborted, match=said):
        asyncio.run(servicer.Read(request, Context()))


def test_a_proof_cannot_be_found_by_its_id() -> None:
    """An import would be a proof in the state that proved nothing."""
    servicer = Servicer(parts, [], "127.0.0.1:1")

    def read(**state: Any) -> Any:
        request = proto.ReadRequest(urn=URN, id="x", properties=message(state))
        return asyncio.run(servicer.Read(request, Context()))

    assert read(verdict="pass").id == read().id == ""
    assert read(verdict="pass", contract={"version": 3}).id == "x"


@pytest.mark.parametrize("call", ["Check", "CheckConfig"])
def test_an_asset_is_refused_with_its_path(servicer: Servicer, call: str) -> None:
    asset = PropertyValue({"a": PropertyValue([PropertyValue(pulumi.StringAsset("x"))])})
    request = proto.CheckRequest(urn=URN, news=PropertyValue.marshal_map({"client": asset}))
    with pytest.raises(Aborted, match=r"^\nclient\.a: found a StringAsset\n  allowed: text, num"):
        asyncio.run(getattr(servicer, call)(request, Context()))


def test_a_cancel_ends_the_work_at_once(servicer: Servicer, sleeper: Sleeper) -> None:
    async def both() -> None:
        request = proto.CreateRequest(urn=URN, properties=message({"seconds": 600}))
        work = asyncio.ensure_future(servicer.Create(request, Context()))
        await asyncio.to_thread(sleeper.started.wait, 60)
        await servicer.Cancel(None, None)
        with pytest.raises(Aborted, match=r"^\ninterrupted: half is made$"):
            await asyncio.wait_for(work, 60)

    asyncio.run(both())


class Deaf(Sleeper):
    """Does not look whether the update was cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()

    def create(self, operation: Operation, news: Properties) -> tuple[str, Properties]:
        self.started.set()
        self.released.wait(120)
        return "", news


def test_a_cancel_leaves_the_work_less_than_a_second() -> None:
    """Asserted of the limit: on a busy machine the time itself says nothing."""
    assert CANCEL_SECONDS < 1


def test_a_cancel_ends_work_that_does_not_look_for_it() -> None:
    deaf = Deaf()
    servicer = Servicer(Sleeping(deaf), [], "127.0.0.1:1")

    async def both() -> None:
        work = asyncio.ensure_future(servicer.Create(proto.CreateRequest(urn=URN), Context()))
        await asyncio.to_thread(deaf.started.wait, 60)
        await servicer.Cancel(None, None)
        try:
            with pytest.raises(Aborted, match=r"^\ninterrupted: half is made$"):
                await asyncio.wait_for(work, 60)
        finally:
            deaf.released.set()

    asyncio.run(both())


def test_a_refresh_shows_what_is_there_and_what_is_gone(
    servicer: Servicer, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = PropertyValue.marshal_map({"token": PropertyValue("t", is_secret=True)})
    request = proto.ReadRequest(urn=URN, id="proof", properties=properties, inputs=properties)
    found = asyncio.run(servicer.Read(request, Context()))
    assert found.id == "proof" and found.inputs == properties
    assert secrets_in(found.properties) == {"token"}
    monkeypatch.setattr(Sleeper, "read", lambda *_: None)
    assert asyncio.run(servicer.Read(request, Context())).id == ""


def test_a_delete_sees_the_last_inputs_beside_outputs(
    servicer: Servicer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Properties] = []
    monkeypatch.setattr(Sleeper, "delete", lambda _, __, ___, olds: seen.append(olds))
    request = proto.DeleteRequest(
        urn=URN,
        id="proof",
        properties=message({"token": "of before", "made": 1}),
        old_inputs=message({"token": "of now"}),
    )
    asyncio.run(servicer.Delete(request, Context()))
    assert seen == [{"token": "of now", "made": 1}]


def test_an_operation_has_the_stacks_configuration(
    monkeypatch: pytest.MonkeyPatch, sleeper: Sleeper
) -> None:
    servicer = Servicer(Sleeping(sleeper), [], "127.0.0.1:1")
    arguments = PropertyValue.marshal_map({"passwords": PropertyValue("p", is_secret=True)})
    asyncio.run(servicer.Configure(proto.ConfigureRequest(args=arguments), Context()))
    seen: list[Operation] = []
    monkeypatch.setattr(Sleeper, "read", lambda _, operation, *__: seen.append(operation))
    asyncio.run(servicer.Read(proto.ReadRequest(urn=URN), Context()))
    assert seen[0].config == {"earshot:passwords": "p"}
    assert "passwords" not in repr(seen[0])


def test_every_resource_that_components_make_has_a_kind() -> None:
    for name in parts.kinds():
        assert type(parts.kind(type_token(name))).__name__ == f"{name}Kind"
    for module in ("aws.deployment", "aws.secured", "docker.deployment", "local.deployment"):
        importlib.import_module(f"earshot_pulumi.{module}")
    made = {it.__name__ for it in descendants(InternalResource)} - {"Users"}
    assert made == parts.kinds().keys() - parts.PUBLIC.keys()
    assert {it.__name__ for it in descendants(EarshotResource)} == parts.PUBLIC.keys()


def descendants(kind: type) -> Iterator[type]:
    """The subclasses of ``kind`` in the package, and theirs."""
    found: type
    for found in kind.__subclasses__():
        yield from descendants(found)
        if found.__module__.startswith("earshot_pulumi."):
            yield found


def test_a_plugin_that_starts_imports_no_component_and_no_kind() -> None:
    code = "import sys, earshot_pulumi.provider.__main__\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    slow = ("pulumi_aws", "pulumi_docker", "pydantic", "earshot.rules", "earshot_pulumi.local")
    assert not [it for it in done.stdout.split() if it.startswith(slow)]


def test_a_program_of_another_version_is_refused(servicer: Servicer) -> None:
    def check(version: str) -> Any:
        request = proto.CheckRequest(news=message({"version": version}))
        return asyncio.run(servicer.CheckConfig(request, Context()))

    (failure,) = check("9.9.9").failures
    assert f"asks for earshot 9.9.9, and this plugin is {__version__}" in failure.reason
    assert not check(__version__).failures
