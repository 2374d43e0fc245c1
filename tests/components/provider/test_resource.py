"""The behaviour of all internal kinds, and former types of resources."""

from collections.abc import Iterator

import pulumi
import pytest
from earshot_pulumi.local.kinds import LocalPreflightKind
from earshot_pulumi.provider import former, registry
from earshot_pulumi.provider.kind import Kind, Operation, Properties
from earshot_pulumi.provider.resource import InternalResource
from pulumi.runtime import mocks

from earshot import __version__
from earshot.errors import EarshotError
from tests.components.aws.registered import Answers
from tests.components.called import Called
from tests.components.engine_double import Engine


class CheckedDouble(Kind):
    """A double that reports its problems, and then raises its error."""

    def __init__(self, *problems: str, error: EarshotError | None = None) -> None:
        self._problems, self._error = problems, error

    def problems(self, operation: Operation, olds: Properties, news: Properties) -> Iterator[str]:
        news["completed"] = True
        yield from self._problems
        if self._error is not None:
            raise self._error


def test_without_a_problem_inputs_are_taken_as_they_were_completed() -> None:
    result = Called(CheckedDouble()).check({}, {"a": 1})
    assert (result.inputs, result.failures) == ({"a": 1, "completed": True}, [])


def test_problems_are_one_failure() -> None:
    error = EarshotError("engine", observed="does not answer", remedy="start it")
    (failure,) = Called(CheckedDouble("one", "two", error=error)).check({}, {}).failures
    assert failure == "\n- one\n- two\n- engine: does not answer\n  fix: start it"


class Counted(Kind):
    ID_IN = "id"
    IDLE = ("idle",)

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        return {**news, "id": f"after {olds.get('a')}"}


def test_a_preview_makes_nothing() -> None:
    kind = Called(Counted())
    assert kind.create({"a": 1}, preview=True).outs == {"a": 1}
    assert kind.create({"a": 1}).id == "after None"
    assert kind.update({"a": 1}, {"a": 2}).outs == {"a": 2, "id": "after 1"}


@pytest.mark.parametrize(
    ("news", "differs"),
    [({"a": 1}, False), ({"a": 1, "idle": 2}, False), ({"a": 2}, True), ({"a": 1, "b": 1}, True)],
)
def test_inputs_decide_but_for_idle_ones(news: Properties, differs: bool) -> None:
    assert Called(Counted()).differs({"a": 1, "__provider": "pickled", "id": "x"}, news) is differs


class Moved(InternalResource):
    FORMER_NAMES = ("Moved", "Before")


def test_a_resource_has_its_former_types_as_aliases_in_addition_to_those_of_its_options() -> None:
    engine = Engine(Answers())
    mocks.set_mocks(engine.mocks, "earshot", "s", preview=False, monitor=engine)

    def run() -> pulumi.Output[str]:
        options = pulumi.ResourceOptions(aliases=[pulumi.Alias(name="one")])
        return Moved("s", {"a": 1}, options).urn

    pulumi.runtime.test(run)()  # type: ignore[no-untyped-call]
    registration = engine.one("earshot:index:Moved")
    assert registration.request.version == __version__
    assert [(alias.spec.type, alias.spec.name) for alias in registration.request.aliases] == [
        ("pulumi-python:dynamic/earshot:Moved", ""),
        ("pulumi-python:dynamic/earshot:Before", ""),
        ("", "one"),
    ]


def test_resources_of_dynamic_providers_are_read_and_deleted_as_those_of_today(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deleted: list[Properties] = []
    monkeypatch.setattr(LocalPreflightKind, "delete", lambda _, __, olds: deleted.append(olds))
    kind = Called(registry.kind("pulumi-python:dynamic/earshot:LocalGround"))
    olds = {"root": "r", "__provider": "pickled"}
    assert kind.read(olds) == olds and not kind.differs(olds, {"root": "s"})
    kind.delete(olds)
    assert deleted == [olds]


@pytest.mark.parametrize("name", [*former.KINDS, *former.GONE, *registry.kinds()])
def test_every_type_of_earlier_releases_is_known(name: str) -> None:
    kind = registry.kind(f"pulumi-python:dynamic/earshot:{name}")
    assert isinstance(kind, former.FormerKind)
    if name in former.GONE:
        gone = Called(registry.kind(f"earshot:index:{name}"))
        assert gone.read({"stack": "s"}) == {"stack": "s"}
        gone.delete({"stack": "s"})
