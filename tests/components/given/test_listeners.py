"""Inputs of `Listeners`: refused, unknown in a preview, and passed on to the gate."""

from typing import Any

import pulumi
import pytest
from earshot_pulumi.given import listeners as component
from earshot_pulumi.given.listeners import BrokerNames, ListenerArgs, Listeners, _check_inputs
from earshot_pulumi.outputs import unknown as unknown_output
from earshot_pulumi.provider.judge import judge
from earshot_pulumi.provider.kind import UNKNOWN, InvalidInputs, has_unknown
from pulumi.runtime import mocks

from tests.components.aws.registered import Answers
from tests.components.engine_double import Engine
from tests.raised import raised

LISTENERS = [
    {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]},
    {"name": "HOST", "port": 9092, "scopes": ["host"]},
]
NODE = {"internal": "kafka-1", "host": "localhost"}


@pytest.mark.parametrize(("changes", "message"), [
    ({"vantage": "moon"}, "vantage: found 'moon'; allowed: machine, network, vpc, elsewhere"),
    ({"vantage": ["vpc"]}, "vantage: found ['vpc']; allowed: machine"),
    ({"declared": {"internal": 5}}, "declared.internal: found 5; allowed: text"),
    ({"declared": {"internal": ""}}, "declared.internal: found ''; allowed: the reason"),
    ({"declared": {"internal": " \n"}}, "declared.internal: found"),
    ({"nodes": {"1": {**NODE, "container": {"names": ["kafka-1"]}}}},
     "nodes.1.container: found with vantage 'elsewhere'; allowed: with vantage network"),
    ({"declared": {"x": "y"}}, "declared: found scope 'x'; allowed: controller, internal"),
])  # fmt: skip
def test_each_problem_names_the_component_and_its_input(
    changes: dict[str, Any], message: str
) -> None:
    args: Any = {"nodes": {"1": NODE}, "listeners": LISTENERS, **changes}
    assert str(raised(pulumi.RunError, _check_inputs, "kafka", args)).startswith(
        f"kafka: {message}"
    )


def test_all_problems_are_in_one_message() -> None:
    args: Any = {
        "vantage": "moon",
        "security": {},
        "kafka_version": pulumi.Output.from_input("4.1.1"),
        "declared": {"x": "y"},
        "policy": {"KL011": "disabled"},
        "nodes": {"1": {"internal": pulumi.Output.from_input("kafka-1"), "rak": "a"}},
        "listeners": [{"name": "INTERNAL", "port": 0, "scopes": ["internal"]}],
    }
    name, *lines = str(raised(pulumi.RunError, _check_inputs, "kafka", args)).splitlines()
    assert name == "kafka:"
    assert {line.partition(": ")[0] for line in lines} == {
        f"  - {key}"
        for key in (
            "vantage", "security", "kafka_version", "declared", "policy", "nodes.1.rak",
            "listeners.INTERNAL.port",
        )
    }  # fmt: skip


def registered(nodes: Any, *, preview: bool = False, **inputs: Any) -> Engine:
    """The engine with what a program registers for these nodes. Raises pulumi.RunError.

    Each unknown in the inputs becomes an output; an output belongs to one event loop.
    """
    answers = Answers(preview=preview)
    engine = Engine(answers)
    mocks.set_mocks(answers, "program", "stack", preview, monitor=engine)
    known = {"vantage": "network", "listeners": LISTENERS, "nodes": nodes}
    args = with_outputs({**known, **inputs})
    pulumi.runtime.test(lambda: Listeners("kafka", args).approved)()  # type: ignore[no-untyped-call]
    return engine


SECOND = {"internal": "kafka-2", "host": "localhost"}
BOTH = {**NODE, "roles": ["broker", "controller"]}
BOTH_TOO = {"internal": "kafka-2", "host": "kafka-2.localhost", "roles": BOTH["roles"]}


def with_outputs(value: Any) -> Any:
    """``value`` with an output in place of each unknown."""
    if isinstance(value, dict):
        return {key: with_outputs(part) for key, part in value.items()}
    if isinstance(value, list):
        return [with_outputs(part) for part in value]
    return unknown_output() if value is pulumi.UNKNOWN else value


@pytest.mark.parametrize(("nodes", "message"), [
    (None, "nodes: found nothing; allowed: a map"),
    ([NODE], "nodes: found [{'internal'"),
    ({"1": None}, "nodes.1: found nothing; allowed: a map of settings"),
    ({"1": "kafka-1"}, "nodes.1: found 'kafka-1'; allowed: a map of settings"),
    ({"1": {**NODE, "roles": 5}}, "nodes.1.roles: found 5; allowed: a list"),
    ({"01": NODE, "1": NODE}, "nodes: found the id '01'; allowed: 0 to 2147483647, without"),
    ({1: NODE, "1": NODE}, "nodes: found the keys 1, '1'; allowed: each key once"),
    ({" 1": NODE}, "nodes: found the id ' 1'"),
    ({"-1": NODE}, "nodes: found the id '-1'"),
    ({"1.0": NODE}, "nodes: found the id '1.0'"),
    ({"1": {**NODE, "roles": ["controller"]}}, "nodes: found no node with the role broker"),
    ({"1": {**NODE, "rack": "a\nlisteners=X://:1"}}, "nodes.1.rack: found 'a\\nlisteners"),
    ({"1": {**NODE, "log_dir": ""}}, "nodes.1.log_dir: found ''"),
    ({"1": {**NODE, "addresses": ["own"]}}, "nodes.1.addresses[0]: found 'own'; allowed: an IP"),
    ({"1": {**NODE, "container": {}}}, "nodes.1.container.names: is missing"),
    ({"1": {**NODE, "container": {"names": []}}}, "nodes.1.container.names: found []"),
    ({"1": {**NODE, "container": {"names": "kafka-1"}}}, "nodes.1.container.names: found 'kaf"),
    ({"1": {**NODE, "container": {"names": [None]}}}, "nodes.1.container.names[0]: found n"),
    ({"1": {**NODE, "container": {"names": ["kafka-1"], "ports": ["9092:9092"]}}},
     "nodes.1.container.ports: found ['9092:9092']; allowed: a map"),
    ({"1": {**NODE, "container": {"names": ["kafka-1"], "ports": {"9092/tcp": 9092}}}},
     "nodes.1.container.ports['9092/tcp']: found '9092/tcp'; allowed: a port"),
    ({"1": {**NODE, "container": {"names": ["kafka-1"], "publish": {}}}},
     "nodes.1.container.publish: is no key that earshot knows"),
])  # fmt: skip
def test_odd_nodes_are_one_error_without_a_trace(nodes: Any, message: str) -> None:
    assert str(raised(pulumi.RunError, registered, nodes)).startswith(f"kafka: {message}")


def test_an_input_may_be_a_coroutine() -> None:
    async def internal() -> str:
        return "kafka-1"

    engine = registered({"1": {**NODE, "internal": internal()}}, vantage="machine")
    (node,) = engine.gate["plan"]["nodes"]
    assert node["listeners"][0]["host"] == "kafka-1"


def test_node_ids_may_be_numbers_and_a_container_null() -> None:
    container = {"names": ["kafka-1"], "ports": {9092: 9092}}
    engine = registered({1: {**NODE, "container": container}})
    (node,) = engine.gate["plan"]["nodes"]
    assert node["id"] == 1
    registered({1: {**NODE, "container": None}}, vantage="machine")


@pytest.mark.parametrize(("preview", "changes", "message"), [
    *((False, {"policy": policy}, f"policy: {message}") for policy, message in (
        ("off", "found 'off'; allowed: a map with names and levels"),
        ({"kl011": "disabled"}, "kl011: is no key that earshot knows; allowed: names, levels"),
        ({"levels": "disabled"}, "levels: found 'disabled'; allowed: a map"),
        ({"levels": pulumi.UNKNOWN}, "levels: found an output; allowed: a map"),
    )),
    *((True, changes, message) for changes, message in (
        ({"security": {}}, "security: is no key that earshot knows; allowed: nodes, listeners"),
        ({"gate": "off"}, "gate: is no key that earshot knows"),
        ({"kafkaVersion": "4.1.1"}, "kafkaVersion: is no key that earshot knows; did you mean kaf"),
        ({"kafka_version": pulumi.UNKNOWN}, "kafka_version: found an output; allowed: a value"),
        ({"controllers": {"port": pulumi.UNKNOWN}}, "controllers: found an output"),
        ({"policy": pulumi.UNKNOWN}, "policy: found an output"),
        ({"declared": pulumi.UNKNOWN}, "declared: found an output"),
    )),
])  # fmt: skip
def test_an_input_that_would_be_ignored_or_is_not_known_is_refused(
    preview: bool, changes: dict[str, Any], message: str
) -> None:
    error = raised(pulumi.RunError, registered, {"1": NODE}, preview=preview, **changes)
    assert str(error).startswith(f"kafka: {message}")


FIXED = [{**LISTENERS[0], "advertised": {"1": "kafka-1", "2": "kafka-2"}}]
SAME_HOST = [LISTENERS[0], {**LISTENERS[1], "advertised": {"1": "localhost", "2": "localhost"}}]
UNKNOWN_INPUTS: Any = [
    {"nodes": pulumi.UNKNOWN},
    {"nodes": {"1": pulumi.UNKNOWN}},
    *(
        {"nodes": {"1": {**NODE, key: pulumi.UNKNOWN}}}
        for key in BrokerNames.__annotations__
        if key not in ("internal", "host")
    ),
    {"nodes": {"1": {"internal": pulumi.UNKNOWN, "host": pulumi.UNKNOWN}}},
    {"nodes": {"1": {**NODE, "container": {"names": pulumi.UNKNOWN}}}},
    {"nodes": {"1": {**NODE, "container": {"names": [pulumi.UNKNOWN]}}}},
    {"nodes": {"1": {**NODE, "container": {"names": ["a"], "ports": pulumi.UNKNOWN}}}},
    {"nodes": {"1": {**NODE, "container": {"names": ["a"], "ports": {"9092": pulumi.UNKNOWN}}}}},
    # a controller only, once its roles are known
    {"nodes": {"1": NODE, "2": {"controller": "kafka-2", "roles": pulumi.UNKNOWN}}},
    {"nodes": {"1": NODE, "2": {"internal": "kafka-2", "roles": [pulumi.UNKNOWN]}}},
    # an odd number of voters, once the roles are known
    {"nodes": {"1": BOTH, "2": BOTH_TOO, "3": {**NODE, "roles": pulumi.UNKNOWN}}},
    {"nodes": {"1": BOTH, "2": BOTH_TOO, "3": pulumi.UNKNOWN, "4": pulumi.UNKNOWN}},
    # different ports of the same host
    {"nodes": {"1": {**NODE, "ports": pulumi.UNKNOWN}, "2": SECOND}},
    {"nodes": {"1": {**NODE, "ports": {"HOST": pulumi.UNKNOWN}}, "2": SECOND}},
    {"nodes": {"1": {**NODE, "ports": pulumi.UNKNOWN}, "2": SECOND}, "listeners": SAME_HOST},
    # perhaps a controller only, although the names of brokers are known
    {"nodes": {"1": BOTH, "2": {**SECOND, "roles": pulumi.UNKNOWN}}, "listeners": FIXED},
    {"listeners": pulumi.UNKNOWN},
    {"listeners": [pulumi.UNKNOWN]},
    *(
        {"listeners": [{**LISTENERS[0], key: pulumi.UNKNOWN}]}
        for key in ListenerArgs.__annotations__
    ),
    {"listeners": [LISTENERS[0], {**LISTENERS[1], "advertised": {"1": pulumi.UNKNOWN}}]},
    {"listeners": [LISTENERS[0], {**LISTENERS[1], "address": {"strategy": pulumi.UNKNOWN}}]},
    {"extra": pulumi.UNKNOWN},
    {"extra": {"num.partitions": pulumi.UNKNOWN}},
]


@pytest.mark.parametrize("inputs", UNKNOWN_INPUTS)
def test_a_preview_with_an_unknown_value_neither_fails_nor_approves(inputs: Any) -> None:
    levels = {"KL011": "advisory"}  # the names are fictional
    args = {"nodes": {"1": NODE}, "policy": {"levels": levels}, **inputs}
    gate = registered(preview=True, **args).gate
    assert judge(gate, lambda *_: None)["approved"] is UNKNOWN


def test_an_update_without_unknown_values_is_approved() -> None:
    gate = registered({"1": NODE}, policy={"levels": {"KL011": "advisory"}}).gate
    assert "unknown" not in gate
    assert isinstance(judge(gate, lambda *_: None)["approved"], str)


@pytest.mark.parametrize(
    "container",
    [
        [pulumi.UNKNOWN],
        {"names": ["kafka-1"], "ports": {"9092/tcp": pulumi.UNKNOWN}},
        {"names": ["kafka-1"], "ports": [pulumi.UNKNOWN]},
        {"names": [pulumi.UNKNOWN], "ports": {"9092": 9092}},
    ],
)
def test_a_container_of_an_odd_form_waits_until_all_of_it_is_known(container: Any) -> None:
    engine = registered({"1": {**NODE, "container": container}}, preview=True)
    assert has_unknown(engine.gate["containers"])


@pytest.mark.parametrize(("node", "extra", "message"), [
    ({"addresses": [pulumi.UNKNOWN, "own"]}, {}, "nodes.1.addresses[0]: found 'own'"),
    ({"ports": {"HOST": 0, "X": pulumi.UNKNOWN}}, {}, "nodes.1.ports.HOST: found 0"),
    ({"container": {"names": 5, "ports": pulumi.UNKNOWN}}, {},
     "nodes.1.container.names: found 5; allowed: a list"),
    ({"container": {"names": ["a"], "ports": {"x": 1, "9092": pulumi.UNKNOWN}}}, {},
     "nodes.1.container.ports.x: found 'x'; allowed: a port"),
    ({"roles": pulumi.UNKNOWN, "log_dir": ""}, {}, "nodes.1.log_dir: found ''"),
    ({}, {"listeners": "X://:1", "num.partitions": pulumi.UNKNOWN}, "extra: listeners"),
])  # fmt: skip
def test_a_preview_refuses_odd_parts_beside_those_that_it_does_not_know(
    node: dict[str, Any], extra: dict[str, Any], message: str
) -> None:
    nodes = {"1": {**NODE, **node}}
    error = raised(pulumi.RunError, registered, nodes, preview=True, extra=extra)
    assert str(error).startswith(f"kafka: {message}")


@pytest.mark.parametrize("node", [None, "kafka-1", ["kafka-1"], 5])
def test_addresses_are_those_of_nodes_that_the_plan_takes(
    node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All errors of a program are reported: a second one hides the first."""
    errors: list[BaseException] = []
    addresses = component._addresses

    def observed(*values: Any) -> dict[str, list[str]]:
        try:
            return addresses(*values)
        except Exception as error:
            errors.append(error)
            raise

    monkeypatch.setattr(component, "_addresses", observed)
    with pytest.raises(pulumi.RunError):
        registered({"1": node})
    assert not errors


def judged(**node: Any) -> list[str]:
    """What the gate of one broker in a container shows or refuses, by the first lines."""
    engine = registered({"1": {**NODE, **node}})
    lines: list[str] = []
    try:
        judge(engine.gate, lambda text, _: lines.append(text))
    except InvalidInputs as error:
        lines.append(str(error).strip())
    return lines


def test_without_its_container_a_listener_is_unknown_and_the_remedy_names_the_input() -> None:
    (shown,) = [text for text in judged() if "KL006" in text]
    assert "the containers of node 1: not known yet" in shown
    assert "state `nodes.ID.container`" in shown


def test_a_stated_container_is_compared_with_its_listeners() -> None:
    container = {"names": ["kafka-1"], "ports": {"9092": 9092}}
    lines = judged(container=container)
    assert all("is taken on its declaration: container" in text for text in lines)
    *_, refusal = judged(container={**container, "ports": {"9092": 39092}})
    assert "advertises localhost:9092, and the published port is 39092" in refusal
    *_, refusal = judged(container={**container, "names": ["other"]})
    assert "advertises kafka-1:19092, and the container publishes no port for 19092" in refusal


@pytest.mark.parametrize("preview", [False, True])
def test_a_balancers_name_may_be_an_output_and_unknown_in_a_preview(preview: bool) -> None:
    host = pulumi.UNKNOWN if preview else "lb.example.com"
    address = {"strategy": "port", "host": host, "base_port": 9100, "bootstrap_port": 9100}
    external = {"name": "EXTERNAL", "port": 9094, "scopes": ["external"], "address": address}
    nodes = {"101": {"internal": "kafka-101.example.com"}}
    listeners = [LISTENERS[0], external]
    engine = registered(nodes, preview=preview, vantage="vpc", listeners=listeners)
    (node,) = engine.gate["plan"]["nodes"]
    advertised = node["listeners"][1]
    marked_host = {"what": "listeners.EXTERNAL.address.host"} if preview else host
    assert (advertised["host"], advertised["port"]) == (marked_host, 9201)
    assert advertised["front"]["bootstrap"] == {"host": marked_host, "port": 9100}


@pytest.mark.parametrize(("secret_input", "secret_outputs"), [
    ({"extra": {"my.plugin.text": "s3cret"}}, {"properties", "environment", "envs"}),
    ({"nodes": {"1": NODE}}, {"properties", "environment", "envs", "bootstrap", "contract"}),
    ({}, set()),
])  # fmt: skip
def test_a_secret_property_makes_no_address_a_secret(
    secret_input: dict[str, Any], secret_outputs: set[str]
) -> None:
    answers = Answers()
    mocks.set_mocks(answers, "program", "stack", False, monitor=Engine(answers))
    is_secret: dict[str, bool] = {}

    async def read() -> None:
        secrets = {key: pulumi.Output.secret(value) for key, value in secret_input.items()}
        args: Any = {"vantage": "machine", "listeners": LISTENERS, "nodes": {"1": NODE}, **secrets}
        kafka = Listeners("kafka", args)
        for key in ("properties", "environment", "envs", "bootstrap", "contract", "approved"):
            is_secret[key] = await getattr(kafka, key).is_secret()

    def run() -> Any:
        return pulumi.Output.from_input(read())

    pulumi.runtime.test(run)()  # type: ignore[no-untyped-call]
    assert {key for key, secret in is_secret.items() if secret} == secret_outputs
