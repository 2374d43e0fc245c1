"""The gate in a program: what it shows, and what waits for its approval."""

import gc
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pulumi
import pytest
from earshot_pulumi.gate import GATE_TYPE, OFF, PROVIDER_TYPE, AdvertisedListeners
from pulumi.output import Unknown
from pulumi.runtime import mocks

from earshot.placement.local import plan_local
from tests.components import engine_double
from tests.components.plain_inputs import secret_inputs, visible
from tests.config.read import read_local
from tests.doubles.gate_provider import APPROVED, outputs
from tests.policies.calls import UNKNOWN

CONTAINER = {"name": "kafka-1", "image": "i", "envs": ["A=b"], "ports": [{"internal": 9092}]}
BROKER = "test:index:Broker"
NAMES = {"names": {"timeout": 3}}


@pytest.fixture(autouse=True)
def outputs_of_refused_programs() -> Iterator[None]:
    """Python complains of failures that nobody waited for when it finds them: here, not later.

    What other tests have left is not looked through again.
    """
    gc.freeze()
    yield
    gc.collect()


class Broker(pulumi.CustomResource):
    """A resource that needs an approval."""

    def __init__(self, approved: pulumi.Input[str], opts: pulumi.ResourceOptions) -> None:
        super().__init__(BROKER, "broker", {"gate": approved}, opts)


class Answers(mocks.Mocks):
    def __init__(self, approved: str | None) -> None:
        self._approved = approved

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        return f"id of {args.name}", outputs(args, self._approved)

    def call(self, args: mocks.MockCallArgs) -> Any:
        raise AssertionError(f"nothing is looked up: {args.token}")


class Engine(engine_double.Engine):
    """The engine of a program that has a gate."""

    def __init__(self, approved: str | None = APPROVED, preview: bool = False) -> None:
        super().__init__(Answers(approved))
        mocks.set_mocks(self.mocks, "program", "s", preview, monitor=self)

    @property
    def types(self) -> list[str]:
        """Of what the program has registered; Pulumi itself registers the stack."""
        return [item.type for item in self.seen if item.type != "pulumi:pulumi:Stack"]


def run(
    engine: Engine,
    *,
    containers: Mapping[int, pulumi.Input[Mapping[str, Any]]] | None = None,
    policy: Mapping[str, Any] | None = NAMES,
    **settings: Any,
) -> Engine:
    """A program with a broker behind its gate."""
    made = plan_local(read_local({"placement": "local", **settings}), Path("/state"))

    def program() -> None:
        gate = AdvertisedListeners(
            "s", made.plan, "local", {1: ("::1",)}, policy=policy, containers=containers
        )
        opts = pulumi.ResourceOptions(parent=gate, depends_on=gate.before)
        Broker(gate.approved, opts)

    pulumi.runtime.test(program)()  # type: ignore[no-untyped-call]
    return engine


@pytest.mark.parametrize("preview", [False, True])
def test_behind_a_gate_that_approves_the_broker_is_registered(preview: bool) -> None:
    engine = run(Engine(preview=preview))
    assert engine.types == [GATE_TYPE, PROVIDER_TYPE, BROKER]
    shown = engine.one(GATE_TYPE).inputs
    assert shown.keys() == {"placement", "plan", "addresses", "containers"}
    assert (shown["placement"], shown["addresses"]) == ("local", {"1": ["::1"]})
    asked = engine.one(PROVIDER_TYPE).inputs
    assert {key: asked[key] for key in shown} == shown
    assert asked["policy"] == NAMES
    assert engine.one(BROKER).inputs == {"gate": APPROVED}
    assert any(
        urn.endswith(f"{PROVIDER_TYPE}::s") for urn in engine.one(BROKER).request.dependencies
    )


@pytest.mark.parametrize("answer", [None, ""])
def test_a_plugin_that_checks_nothing_is_refused(answer: str | None) -> None:
    engine = Engine(answer)
    with pytest.raises(pulumi.RunError, match="Pulumi found a plugin `earshot` without a gate"):
        run(engine)
    assert engine.types == [GATE_TYPE, PROVIDER_TYPE]


def test_an_update_with_an_unknown_approval_is_refused() -> None:
    engine = Engine(UNKNOWN)
    with pytest.raises(pulumi.RunError, match="this update does not know all inputs of the gate"):
        run(engine)
    assert engine.types == [GATE_TYPE, PROVIDER_TYPE]


@pytest.mark.parametrize(
    ("changed", "value", "keys"),
    [
        # as with `ignore_changes`, for which the engine passes on the former value
        ("plan", {}, "plan"),
        ("policy", {"KL011": "disabled"}, "policy"),
        ("placement", "docker", "placement"),
        ("addresses", {"1": ["::2"]}, "addresses"),
        ("containers", {}, "containers"),
        # as after a transform that removes two: the SDK then shows the program's own values
        ("received", ["placement", "plan", "policy"], "addresses, containers"),
    ],
)
@pytest.mark.parametrize("preview", [False, True])
def test_a_gate_that_got_other_inputs_is_refused(
    changed: str, value: object, keys: str, preview: bool
) -> None:
    class Changed(Answers):
        def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
            id, found = super().new_resource(args)
            if args.typ == PROVIDER_TYPE:
                found[changed] = value
            return id, found

    engine = Engine(preview=preview)
    engine.mocks = Changed(APPROVED)
    with pytest.raises(pulumi.RunError, match=f"the gate got other values of {keys} than the"):
        run(engine, containers={1: CONTAINER})
    assert engine.types == [GATE_TYPE, PROVIDER_TYPE]


def test_a_gate_that_is_off_is_said_to_be_and_asks_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, _resource: warnings.append(text))
    engine = run(Engine(), policy=None)
    assert engine.types == [GATE_TYPE, BROKER]
    assert engine.one(BROKER).inputs == {"gate": OFF}
    assert warnings == ["gate: off: the advertised listeners were not checked"]


def test_containers_are_shown_alike_as_values_and_as_outputs() -> None:
    now = run(Engine(), containers={1: CONTAINER})
    later = run(Engine(), containers={1: pulumi.Output.from_input(CONTAINER)})
    for engine in (now, later):
        for type in (GATE_TYPE, PROVIDER_TYPE):
            assert engine.one(type).inputs["containers"] == {"1": CONTAINER}


def test_what_a_preview_does_not_know_is_left_to_the_update() -> None:
    hidden: Any = {**CONTAINER, "name": Unknown()}  # type: ignore[no-untyped-call]
    engine = run(Engine(UNKNOWN, preview=True), containers={1: pulumi.Output.from_input(hidden)})
    assert pulumi.contains_unknowns(engine.one(BROKER).inputs)


def test_variables_and_extra_properties_are_secrets() -> None:
    engine = run(Engine(), containers={1: CONTAINER}, extra={"num.io.threads": "4"})
    for type in (GATE_TYPE, PROVIDER_TYPE):
        assert secret_inputs(engine.one(type).request) == {"plan", "containers"}
        assert "num.io.threads" not in visible(engine.one(type).request)


def test_the_gate_depends_on_nothing_but_its_parent() -> None:
    """Otherwise replacing one resource would replace all that are behind the gate."""

    def program() -> None:
        other = Broker("x", pulumi.ResourceOptions())
        made = plan_local(read_local({"placement": "local"}), Path("/state"))
        AdvertisedListeners("s", other.id.apply(lambda _: made.plan), "local", {}, policy=NAMES)

    engine = Engine()
    pulumi.runtime.test(program)()  # type: ignore[no-untyped-call]
    assert list(engine.one(PROVIDER_TYPE).request.dependencies) == []
    assert [urn.rpartition("::")[2] for urn in engine.one(GATE_TYPE).request.dependencies] == [
        "broker"
    ]
