"""What is made of values that are known now or later."""

import re
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Any

import pulumi
import pytest
from earshot_pulumi import (
    AwsCluster,
    AwsEndpoint,
    AwsNetwork,
    DockerCluster,
    DockerHosts,
    Listeners,
    LocalCluster,
    Proof,
)
from earshot_pulumi.outputs import applied, read_inputs, with_run_errors

from earshot.errors import EarshotError
from tests.raised import raised


def test_what_is_known_now_is_taken_as_it_is() -> None:
    assert applied(3, lambda number: number + 1) == 4
    assert isinstance(applied(pulumi.Output.from_input(3), str), pulumi.Output)


def test_an_error_reaches_the_user_as_its_message() -> None:
    def act(name: str, number: int) -> str:
        if number:
            raise EarshotError(name, observed="died", remedy="start it")
        return name

    assert with_run_errors(act)("node 1", 0) == "node 1"
    error = raised(pulumi.RunError, with_run_errors(act), "node 1", 1)
    assert str(error) == "node 1: died\n  fix: start it"
    with pytest.raises(ZeroDivisionError):
        with_run_errors(lambda: 1 // 0)()


@pytest.mark.parametrize("component", [
    LocalCluster, DockerCluster, AwsCluster, AwsEndpoint, AwsNetwork, DockerHosts, Listeners, Proof,
])  # fmt: skip
@pytest.mark.parametrize(("args", "shown"), [(None, "nothing"), ([], "[]"), ("x", "'x'")])
def test_inputs_that_are_no_map_are_one_message(component: Any, args: Any, shown: str) -> None:
    with pytest.raises(pulumi.RunError, match=f"kafka: found {re.escape(shown)}; allowed: a map"):
        component("kafka", args)


def test_keys_become_text_at_any_depth() -> None:
    assert read_inputs({"a": [{1: {2: 3}}]}, "kafka") == {"a": [{"1": {"2": 3}}]}
    with pytest.raises(pulumi.RunError, match=r"kafka: a\[0\]: found the keys 1, '1'"):
        read_inputs({"a": [{1: "x", "1": "y"}]}, "kafka")


class Protocol(StrEnum):
    SSL = "SSL"


def test_a_member_of_an_enumeration_is_its_value() -> None:
    inputs = read_inputs({"protocol": Protocol.SSL}, "kafka")
    assert type(inputs["protocol"]) is str and inputs["protocol"] == "SSL"


@pytest.mark.parametrize(("value", "found"), [
    (10**400, "found 1000"),
    (-(10**5000), "found a number that is too long"),
    ("a\ud800", r"found 'a\\ud800'"),
    ({"\udfff": 1}, r"found the key '\\udfff'"),
    (b"kafka", "found b'kafka'"),
    ({"kafka"}, "found {'kafka'}"),
    (date(2027, 1, 31), "found datetime.date"),
    (Path("kafka"), r"found PosixPath\('kafka'\)"),
    (pulumi.StringAsset("kafka"), "found an object of type StringAsset"),
], ids=["large", "larger than Python writes", "surrogate", "key", "bytes", "set", "date", "path",
        "asset"])  # fmt: skip
def test_values_that_end_pulumi_with_a_trace_are_refused_by_name(value: Any, found: str) -> None:
    with pytest.raises(pulumi.RunError, match=rf"^kafka: nodes\.1\.ports\[0\]: {found}"):
        read_inputs({"nodes": {1: {"ports": [value]}}}, "kafka")


def test_all_values_that_pulumi_cannot_send_are_in_one_message() -> None:
    with pytest.raises(pulumi.RunError) as refusal:
        read_inputs({"a": b"x", "b": [date(2027, 1, 31)]}, "kafka")
    name, first_line, second_line = str(refusal.value).splitlines()
    assert name == "kafka:"
    assert first_line.startswith("  - a: found") and second_line.startswith("  - b[0]: found")


def test_the_largest_number_of_pulumi_is_taken() -> None:
    assert read_inputs({"a": 10**308, "b": float("inf")}, "kafka")["a"] == 10**308
