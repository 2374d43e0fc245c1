"""What the engine hands over, as plain data; and the resolvers of a pack's configuration."""

from typing import Any

import pytest
from earshot_policies.evaluation import plain, property_of
from earshot_policies.evaluations import CONTAINER_TYPE
from earshot_pulumi.gate import GATE_TYPE, PROVIDER_TYPE
from earshot_pulumi.provider.judge import PREVIEW_UNKNOWN
from pulumi_policy.proxy import unknown_checking_proxy

from earshot.listeners.terms import Scope
from earshot.names.policy import read_policy
from earshot.sources.docker_container import read_container
from tests.policies.calls import UNKNOWN, UNKNOWN_LIST, Pack
from tests.policies.programs import Program

PROPS: dict[str, Any] = unknown_checking_proxy(
    {"text": "a", "number": 1.0, "nothing": None, "unknown": UNKNOWN,
     "list": ["a", None, UNKNOWN, {"b": UNKNOWN_LIST, "c": None}],
     "map": {"d": {"e": UNKNOWN}, "f": []}},
)  # fmt: skip


@pytest.mark.parametrize("unknown", [None, "?", PREVIEW_UNKNOWN])
def test_maps_and_lists_are_plain_and_what_is_not_known_is_said(unknown: Any) -> None:
    assert plain(PROPS, unknown) == {
        "text": "a",
        "number": 1.0,
        "unknown": unknown,
        "list": ["a", unknown, {"b": unknown}],
        "map": {"d": {"e": unknown}, "f": []},
    }


def test_what_is_not_known_is_a_host_that_is_still_to_be_made_unless_said_otherwise() -> None:
    assert PREVIEW_UNKNOWN == {"what": "a value of a resource that is still to be made"}
    assert plain(PROPS)["unknown"] == property_of(PROPS, "unknown") == PREVIEW_UNKNOWN


def test_plain_values_and_missing_parts() -> None:
    for value in ("text", 1, 1.5, True, None):
        assert plain(value) == value
    parts: dict[str, Any] = {
        "text": "a",
        "nothing": {},
        "elsewhere": {},
        "unknown": None,
        "map": {"d": {"e": None}, "f": []},
    }
    assert {key: property_of(PROPS, key, None) for key in parts} == parts


def test_a_configuration_is_read_as_a_policy() -> None:
    policy = read_policy(
        plain(unknown_checking_proxy({"resolvers": {"host": "192.0.2.53"}, "retry": 2}))
    )
    assert (policy.resolvers, policy.retry) == ({Scope.HOST: ("192.0.2.53",)}, 2.0)
    assert read_policy({}).timeout == 5.0


def test_every_problem_of_a_configuration_is_said_on_one_line() -> None:
    with pytest.raises(ValueError, match="timeout") as caught:
        read_policy({"timeout": 0, "retry": 4000})
    assert str(caught.value) == (
        "timeout: found 0; allowed: more than 0.0; retry: found 4000; allowed: 3600.0 or less"
    )


KAFKA = {"name": "kafka", "image": "apache/kafka:4.1.1"}


@pytest.mark.parametrize(
    ("inputs", "unknown"),
    [
        ({"envs": ["KAFKA_NODE_ID=1", ["x"]]}, "variables"),
        ({"ports": [[]]}, "ports"),
        ({"ports": [{"internal": "9092x"}]}, "ports"),
        ({"ports": [{"internal": 9092, "external": {}}]}, "ports"),
        ({"networksAdvanced": ["net"]}, "a network"),
    ],
)
def test_inputs_that_docker_will_refuse_are_unknown(inputs: dict[str, Any], unknown: str) -> None:
    assert unknown in read_container({**KAFKA, **inputs}).unknown


def test_other_resources_that_a_provider_will_refuse_end_no_run() -> None:
    program = Program()
    program.add(CONTAINER_TYPE, "kafka", {**KAFKA, "envs": ["KAFKA_NODE_ID=1"]})
    program.add("docker:index/network:Network", "network", {"name": [{}]})
    program.add("aws:route53/record:Record", "record", {"zoneId": [1], "name": {}})
    program.add("aws:ec2/instance:Instance", "kafka-1", {"userData": False})
    before, _ = program.run(Pack(), preview=False)
    (text,) = before["kafka-1"]["not-known-yet"]
    assert "user data: not known yet" in text


@pytest.mark.parametrize("type", [GATE_TYPE, PROVIDER_TYPE])
@pytest.mark.parametrize("plan", [[], "x", {"nodes": []}, {"nodes": "SECRET"}])
def test_a_gate_of_another_release_is_one_message(type: str, plan: object) -> None:
    found = Pack().analyze(type, {"placement": "local", "plan": plan, "addresses": {}})
    (text,) = found["kl002"]
    assert "other keys or values than this release of the pack reads" in text
    assert "SECRET" not in text
