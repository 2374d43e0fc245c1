"""What is made of values that are known now or later."""

import re
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
from earshot_pulumi.outputs import applied, with_run_errors, with_text_keys

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
    assert with_text_keys({"a": [{1: {2: 3}}]}, "kafka") == {"a": [{"1": {"2": 3}}]}
    with pytest.raises(pulumi.RunError, match=r"kafka: a\[0\]: found the keys 1, '1'"):
        with_text_keys({"a": [{1: "x", "1": "y"}]}, "kafka")


@pytest.mark.parametrize(("value", "found"), [
    (10**400, "found 1000"),
    (-(10**5000), "found a number that is too long"),
    ("a\ud800", r"found 'a\\ud800'"),
    ({"\udfff": 1}, r"found the key '\\udfff'"),
    (b"kafka", "found b'kafka'"),
    ({"kafka"}, "found {'kafka'}"),
], ids=["large", "larger than Python writes", "surrogate", "key", "bytes", "set"])  # fmt: skip
def test_values_that_end_pulumi_with_a_trace_are_refused_by_name(value: Any, found: str) -> None:
    with pytest.raises(pulumi.RunError, match=rf"^kafka: nodes\.1\.ports\[0\]: {found}"):
        with_text_keys({"nodes": {1: {"ports": [value]}}}, "kafka")


def test_the_largest_number_of_pulumi_is_taken() -> None:
    assert with_text_keys({"a": 10**308, "b": float("inf")}, "kafka")["a"] == 10**308
