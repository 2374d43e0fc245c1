"""Messages between the engine and the plugin."""

import asyncio
import importlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import grpc
import pulumi
import pytest
from earshot_pulumi.provider import registry
from earshot_pulumi.provider.construction import Package
from earshot_pulumi.provider.host import (
    CANCEL_SECONDS,
    Servicer,
)
from earshot_pulumi.provider.kind import (
    UNKNOWN,
    Difference,
    FailedUpdate,
    InvalidInputs,
    Kind,
    Operation,
    OperationFailed,
    Properties,
)
from earshot_pulumi.provider.resource import (
    START_FUNCTION,
    EarshotResource,
    InternalResource,
    type_token,
)
from earshot_pulumi.provider.values import message, plain_properties
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.runtime import proto
from pulumi.runtime.proto import provider_pb2, status_pb2

from earshot import __version__
from tests.secret_properties import secrets_in

URN = "urn:pulumi:test::project::earshot:index:Listeners$earshot:index:Proof::proof"


class Aborted(Exception):
    pass


class Context:
    def __init__(self) -> None:
        self.trailing: dict[str, bytes] = {}

    def set_trailing_metadata(self, metadata: Iterable[tuple[str, bytes]]) -> None:
        self.trailing |= dict(metadata)

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
            raise InvalidInputs({"bad": f"bad: found {news['bad']}; allowed: nothing"})
        return {**news, "seconds": news.get("seconds", 0)}

    def diff(self, operation: Operation, olds: Properties, news: Properties) -> Difference:
        return Difference(olds != news, ("seconds",), delete_first=True)

    def create(self, operation: Operation, news: Properties) -> tuple[str, Properties]:
        if "fail" in news:
            raise OperationFailed(str(news["fail"]))
        if operation.preview:
            return "", {**news, "token": UNKNOWN}
        self.started.set()
        operation.wait(news["seconds"])
        return operation.name, {**news, "token": "t"}

    def update(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        raise FailedUpdate("broker 2 is gone", {**news, "token": "t"})

    def delete(self, operation: Operation, olds: Properties) -> None:
        raise OperationFailed(f"{operation.name} cannot be deleted")


@pytest.fixture
def sleeper() -> Sleeper:
    return Sleeper()


@pytest.fixture
def servicer(sleeper: Sleeper) -> Servicer:
    return Servicer(Sleeping(sleeper), [], "127.0.0.1:1")


class Sleeping:
    """A plugin whose resources all sleep."""

    prepared = False

    def __init__(self, sleeper: Sleeper) -> None:
        self._sleeper = sleeper

    def package(self) -> Package:
        raise AssertionError("a run without components does not import them")

    def kind(self, name: str) -> Kind:
        assert name == "earshot:index:Proof"
        return self._sleeper

    def judge(self, inputs: Properties, show: Callable[[str, bool], None]) -> Properties:
        return {**inputs, "approved": "yes"}

    def prepare(self) -> None:
        self.prepared = True


def created(servicer: Servicer, preview: bool = False, **inputs: Any) -> Any:
    request = proto.CreateRequest(urn=URN, properties=message(inputs), preview=preview)
    return asyncio.run(servicer.Create(request, Context()))


def test_a_resource_is_created_checked_and_compared(servicer: Servicer) -> None:
    resource = created(servicer, seconds=0)
    assert resource.id == "proof"
    assert secrets_in(resource.properties) == {"token"}
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
    difference = asyncio.run(servicer.Diff(compared, Context()))
    assert difference.changes == proto.DiffResponse.DIFF_SOME
    assert list(difference.replaces) == ["seconds"] and difference.deleteBeforeReplace


def test_failures_show_their_message_alone(servicer: Servicer) -> None:
    with pytest.raises(Aborted, match=r"^\nbroker 2 refused the connection$"):
        created(servicer, fail="broker 2 refused the connection")
    request = proto.DeleteRequest(urn=URN, id="proof", properties=message({}))
    with pytest.raises(Aborted, match=r"^\nproof cannot be deleted$"):
        asyncio.run(servicer.Delete(request, Context()))
    check = proto.CheckRequest(urn=URN, news=message({"bad": "1"}))
    (failure,) = asyncio.run(servicer.Check(check, Context())).failures
    assert (failure.property, failure.reason) == ("", "bad: found 1; allowed: nothing")


def test_the_state_gets_the_outputs_of_a_failed_update(servicer: Servicer) -> None:
    context = Context()
    request = proto.UpdateRequest(urn=URN, id="proof", news=message({"x": 2}))
    with pytest.raises(Aborted, match=r"^\nbroker 2 is gone$"):
        asyncio.run(servicer.Update(request, context))
    (detail,) = status_pb2.Status.FromString(context.trailing["grpc-status-details-bin"]).details
    failed = provider_pb2.ErrorResourceInitFailed()
    assert detail.Unpack(failed)
    assert plain_properties(failed.properties) == {"x": 2, "token": "t"}
    assert secrets_in(failed.properties) == {"token"}
    assert (failed.id, list(failed.reasons)) == ("proof", ["\nbroker 2 is gone"])
    assert plain_properties(failed.inputs) == {"x": 2}


def test_text_of_a_broker_steers_neither_the_terminal_nor_the_cli(
    servicer: Servicer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pulumi's CLI prints messages as they are, and panics at a colour that it does not have."""
    hostile, shown = "\x1b]0;t\x07<{%x%}>", r"\u001b]0;t\u0007\u003c{%x%}>"
    check = proto.CheckRequest(urn=URN, news=message({"bad": hostile}))
    (failure,) = asyncio.run(servicer.Check(check, Context())).failures
    assert failure.reason == f"bad: found {shown}; allowed: nothing"
    with pytest.raises(Aborted) as aborted:
        created(servicer, fail=hostile)
    assert str(aborted.value) == f"\n{shown}"
    lines: list[str] = []
    engine = SimpleNamespace(Log=lambda request: lines.append(request.message))
    monkeypatch.setattr(servicer, "_engine", engine)
    servicer._log(URN, hostile)
    assert lines == [shown]


def test_a_type_that_is_not_a_resource_is_named() -> None:
    servicer = Servicer(registry, [], "127.0.0.1:1")
    check = proto.CheckRequest(urn=URN.replace("Proof", "Prof"), news=message({}))
    text = r"^\nresource type earshot:index:Prof: is not one of earshot's\n  allowed: .*Proof$"
    with pytest.raises(Aborted, match=text):
        asyncio.run(servicer.Check(check, Context()))
    read = proto.ReadRequest(urn=URN.replace("$earshot:index:Proof", ""), id="x")
    text = r"^\nresource type earshot:index:Listeners: is a component, which cannot be imported"
    with pytest.raises(Aborted, match=text):
        asyncio.run(servicer.Read(read, Context()))


@pytest.mark.parametrize("type", ["Proof", "LocalNode", "Validation", "Certificates"])
def test_no_resource_is_imported_by_its_id(type: str) -> None:
    """A proof in the state would have proved nothing, and a node without settings cannot go."""
    urn = f"urn:pulumi:test::project::earshot:index:{type}::x"
    with pytest.raises(Aborted, match=r"^\nresource x: cannot be imported or read"):
        asyncio.run(
            Servicer(registry, [], "127.0.0.1:1").Read(
                proto.ReadRequest(urn=urn, id="x"), Context()
            )
        )


@pytest.mark.parametrize("call", ["Check", "CheckConfig"])
def test_an_asset_is_refused_with_its_path(servicer: Servicer, call: str) -> None:
    asset = PropertyValue({"a": PropertyValue([PropertyValue(pulumi.StringAsset("x"))])})
    request = proto.CheckRequest(urn=URN, news=PropertyValue.marshal_map({"client": asset}))
    with pytest.raises(Aborted, match=r"^\nclient\.a: found a StringAsset\n  allowed: text, num"):
        asyncio.run(getattr(servicer, call)(request, Context()))


class Deaf(Sleeper):
    """Does not check whether the update was cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()

    def create(self, operation: Operation, news: Properties) -> tuple[str, Properties]:
        self.started.set()
        self.released.wait(120)
        return "", news


@pytest.mark.parametrize("kind", [Sleeper(), Deaf()], ids=["that waits", "that is deaf"])
def test_a_cancel_ends_work_within_a_second(kind: Sleeper) -> None:
    """Only the limit is asserted: on a busy machine, the time itself proves nothing."""
    assert CANCEL_SECONDS < 1
    servicer = Servicer(Sleeping(kind), [], "127.0.0.1:1")

    async def cancelled() -> None:
        request = proto.CreateRequest(urn=URN, properties=message({"seconds": 600}))
        work = asyncio.ensure_future(servicer.Create(request, Context()))
        await asyncio.to_thread(kind.started.wait, 60)
        await servicer.Cancel(None, None)
        with pytest.raises(Aborted, match=r"^\ninterrupted: half is made$"):
            await asyncio.wait_for(work, 60)

    try:
        asyncio.run(cancelled())
    finally:
        if isinstance(kind, Deaf):
            kind.released.set()


def test_a_refresh_shows_what_is_there_and_what_is_gone(
    servicer: Servicer, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = PropertyValue.marshal_map({"token": PropertyValue("t", is_secret=True)})
    request = proto.ReadRequest(urn=URN, id="proof", properties=properties, inputs=properties)
    answer = asyncio.run(servicer.Read(request, Context()))
    assert answer.id == "proof" and answer.inputs == properties
    assert secrets_in(answer.properties) == {"token"}
    monkeypatch.setattr(Sleeper, "read", lambda *_: None)
    assert asyncio.run(servicer.Read(request, Context())).id == ""


def test_a_delete_sees_the_last_inputs_beside_outputs(
    servicer: Servicer, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted: list[Properties] = []
    monkeypatch.setattr(Sleeper, "delete", lambda _, __, olds: deleted.append(olds))
    request = proto.DeleteRequest(
        urn=URN,
        id="proof",
        properties=message({"token": "of before", "made": 1}),
        old_inputs=message({"token": "of now"}),
    )
    asyncio.run(servicer.Delete(request, Context()))
    assert deleted == [{"token": "of now", "made": 1}]


@pytest.mark.parametrize(("calls", "method"), [
    ([], "delete"),
    (["Check"], "delete_before_replacement"),  # deleted before it is replaced
    (["Check", "Create"], ""),
    (["Check", "Diff"], ""),  # a delete that a failed update left behind
    (["Diff"], "delete"),  # `pulumi destroy --target`
])  # fmt: skip
def test_a_delete_leaves_what_a_resource_of_the_program_owns(
    calls: list[str], method: str, servicer: Servicer, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted: list[Any] = []
    monkeypatch.setattr(Sleeper, "OWNS", ("place",))
    for name in ("delete", "delete_before_replacement"):
        monkeypatch.setattr(
            Sleeper, name, lambda _, __, olds, name=name: deleted.append((name, olds["place"]))
        )
    inputs = message({"place": "a", "seconds": 0})
    requests: dict[str, Any] = {
        "Check": proto.CheckRequest(urn=URN, news=inputs),
        "Create": proto.CreateRequest(urn=URN, properties=inputs),
        "Diff": proto.DiffRequest(urn=URN, olds=inputs, news=inputs),
    }
    for call in calls:
        asyncio.run(getattr(servicer, call)(requests[call], Context()))
    for place in ("a", "b"):
        delete = proto.DeleteRequest(urn=URN, id="x", properties=message({"place": place}))
        asyncio.run(servicer.Delete(delete, Context()))
    assert deleted == [*([(method, "a")] if method else []), ("delete", "b")]


def test_two_resources_of_a_program_must_not_own_the_same(
    servicer: Servicer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sleeper, "OWNS", ("place",))

    def failures(urn: str, place: object) -> list[str]:
        request = proto.CheckRequest(urn=urn, news=message({"place": place}))
        response = asyncio.run(servicer.Check(request, Context()))
        return [failure.reason for failure in response.failures]

    other_urn = URN.replace("Listeners", "LocalCluster")
    assert failures(URN, "a") == failures(URN, "a") == failures(other_urn, "b") == []
    (reason,) = failures(other_urn, "a")
    assert reason.startswith(f"found the same place a as in {URN}; fix: give each cluster")
    assert failures(URN, UNKNOWN) == failures(other_urn, UNKNOWN) == [], "two unknown places differ"


def test_an_operation_has_the_stacks_configuration(
    monkeypatch: pytest.MonkeyPatch, sleeper: Sleeper
) -> None:
    servicer = Servicer(Sleeping(sleeper), [], "127.0.0.1:1")
    arguments = PropertyValue.marshal_map({"passwords": PropertyValue("p", is_secret=True)})
    asyncio.run(servicer.Configure(proto.ConfigureRequest(args=arguments), Context()))
    operations: list[Operation] = []
    monkeypatch.setattr(Sleeper, "read", lambda _, operation, *__: operations.append(operation))
    read = proto.ReadRequest(urn=URN, properties=message({"made": 1}))
    asyncio.run(servicer.Read(read, Context()))
    assert operations[0].config == {"earshot:passwords": "p"}
    assert "passwords" not in repr(operations[0])


def test_every_resource_that_components_make_has_a_kind() -> None:
    for name in registry.kinds():
        assert type(registry.kind(type_token(name))).__name__ == f"{name}Kind"
    for module in (
        "aws.deployment",
        "aws.cluster_security",
        "docker.deployment",
        "local.deployment",
    ):
        importlib.import_module(f"earshot_pulumi.{module}")
    internal = {subclass.__name__ for subclass in descendants(InternalResource)} - {"Users"}
    assert internal == registry.kinds().keys() - registry.PUBLIC.keys()
    assert {
        subclass.__name__ for subclass in descendants(EarshotResource)
    } == registry.PUBLIC.keys()


@pytest.mark.parametrize("name", registry.kinds())
def test_every_kind_that_removes_something_says_what_it_owns(name: str) -> None:
    """Else `pulumi up --target-replace` would remove what the replacement uses."""
    kind = registry.kind(type_token(name))
    assert kind.OWNS or type(kind).delete is Kind.delete


def descendants(kind: type) -> Iterator[type]:
    """The subclasses of ``kind`` in the package, and theirs."""
    subclass: type
    for subclass in kind.__subclasses__():
        yield from descendants(subclass)
        if subclass.__module__.startswith("earshot_pulumi."):
            yield subclass


def test_a_plugin_that_starts_imports_no_component_and_no_kind() -> None:
    code = "import sys\nfrom earshot_pulumi.provider import host, registry\nprint(*sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    slow = (
        *("pulumi_aws", "pulumi_docker", "pydantic", "earshot.rules"),
        *("earshot_pulumi.local", "earshot_pulumi.cluster_args"),
    )
    assert not [module for module in process.stdout.split() if module.startswith(slow)]


def test_a_program_can_start_the_plugin_before_its_first_resource(sleeper: Sleeper) -> None:
    plugin = Sleeping(sleeper)
    request = proto.InvokeRequest(tok=START_FUNCTION)
    answer = asyncio.run(Servicer(plugin, [], "127.0.0.1:1").Invoke(request, Context()))
    assert plugin.prepared
    assert answer == proto.InvokeResponse()


def test_the_kinds_of_every_cluster_can_be_imported_early() -> None:
    code = "import sys; from earshot_pulumi.provider import registry; registry.prepare()"
    process = subprocess.run(
        [sys.executable, "-c", f"{code}; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    modules = {f"earshot_pulumi.{module}" for module in registry.KINDS.values()}
    assert modules - {"earshot_pulumi.given.proof"} <= set(process.stdout.split())


def test_a_program_of_another_version_is_refused(servicer: Servicer) -> None:
    def check(version: object) -> Any:
        request = proto.CheckRequest(news=message({"version": version}))
        return asyncio.run(servicer.CheckConfig(request, Context()))

    (failure,) = check("9.9.9").failures
    assert f"asks for earshot 9.9.9, and this plugin is {__version__}" in failure.reason
    assert not check(__version__).failures
    assert not check(UNKNOWN).failures, "a preview does not know it yet"
