"""The public names of `import earshot`, and the example of docs/library.md."""

import re
import subprocess
import sys
from typing import Any

import pytest

import earshot
from earshot.names.policy import ResolverPolicy, read_policy
from earshot.validation.terms import Verdict
from tests.raised import raised
from toolchain.paths import ROOT

CLUSTER: dict[str, Any] = {
    "placement": "local",
    "listeners": [{"name": "INTERNAL", "port": 19092, "scopes": ["internal"]},
                  {"name": "EXTERNAL", "port": 9092, "scopes": ["host"]}],
}  # fmt: skip


def example() -> str:
    """The example on the page."""
    text = (ROOT / "docs" / "library.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return str(code)


def test_the_example_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    contracts: list[earshot.Contract] = []
    monkeypatch.setattr("earshot.api.examine", contracts.append)
    resolver = "earshot.names.policy.SystemResolvers.resolver"
    monkeypatch.setattr(resolver, lambda *_: None)  # no network
    exec(compile(example(), "library.md", "exec"), {})
    output = capsys.readouterr().out
    assert "advertised.listeners=INTERNAL://kafka-1:19092,EXTERNAL://kafka.example.org:39092" in (
        output
    )
    assert "listener EXTERNAL (scope external): " in output and "[KL011]" in output
    assert [broker.id for broker in contracts[0].brokers] == [1, 2, 3]


def test_all_that_is_promised_is_there_and_nothing_heavy_comes_with_the_name() -> None:
    assert all(getattr(earshot, name) is not None for name in earshot.__all__)
    heavy = "{'pydantic', 'confluent_kafka'} & set(sys.modules)"
    program = f"import earshot, sys; sys.exit(' '.join({heavy}) or None)"
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert process.returncode == 0, process.stderr
    with pytest.raises(AttributeError, match=r"^module 'earshot' has no attribute 'nothing'$"):
        earshot.nothing  # noqa: B018


def test_a_plan_is_rendered_by_node() -> None:
    plan = earshot.plan(CLUSTER, "mine")
    assert "node.id=2\n" in earshot.render(plan, 2)
    error = raised(earshot.EarshotError, earshot.render, plan, 7)
    assert error.line == "node 7: the plan has no such node; allowed: 1, 2, 3"


def test_a_description_with_mistakes_is_one_error_with_all_of_them() -> None:
    with pytest.raises(earshot.EarshotError) as caught:
        earshot.plan({**CLUSTER, "brokerz": 3, "kafka_version": "1"})
    assert "brokerz" in str(caught.value) and "kafka_version" in str(caught.value)


def test_names_are_checked_by_the_policy_that_is_handed_in() -> None:
    cluster = {**CLUSTER, "external_host": "kafka.invalid"}
    waived = read_policy({"waived": {"kafka.invalid": "made elsewhere"}})
    assert earshot.evaluate(cluster, policy=waived) == ()
    policy = ResolverPolicy.model_validate({"resolvers": {"external": "system"}})
    assert {finding.rule for finding in earshot.evaluate(cluster, policy=policy)} == {"KL011"}


def test_a_contract_of_the_plan_can_be_examined() -> None:
    contract = earshot.Contract.of(earshot.plan(CLUSTER), "mine", "local")
    report = earshot.examine(contract.model_copy(update={"brokers": ()}), deadline=1.0)
    assert report.verdict is not Verdict.PASS, "nothing was looked at"


@pytest.mark.parametrize("target", ["kafka:9092", "", ["kafka:9092"], {"cluster": "c"}, None])
def test_only_a_contract_or_addresses_are_examined(target: Any) -> None:
    error = raised(earshot.EarshotError, earshot.examine, target)
    assert error.line.startswith(f"examine: found a {type(target).__name__}; allowed: a Contract")
