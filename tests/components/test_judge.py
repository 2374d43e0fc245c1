"""The gate's check, as the engine calls it for each provider instance."""

from typing import Any

import pytest
from earshot_policies.gates import evaluate_gate
from earshot_pulumi.provider.kind import UNKNOWN, InvalidInputs
from earshot_pulumi.provider.parts import judge as judged

from earshot.listeners.terms import UnknownHost
from earshot.names.policy import ResolverPolicy
from earshot.placement.given import plan_given, read_given
from tests.raised import raised

LISTENERS = [
    {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]},
    {"name": "HOST", "port": 9092, "scopes": ["host"]},
]


def inputs(host: Any = "localhost", **changes: Any) -> dict[str, Any]:
    document = {
        "listeners": LISTENERS,
        "nodes": {"7": {"internal": "localhost", "host": host}},
    }
    plan = plan_given(read_given(document, "kafka")).model_dump(mode="json")
    return {"plan": plan, "placement": "local", **changes}


def judge(inputs: dict[str, Any]) -> dict[str, Any]:
    return judged(inputs, lambda _text, _is_warning: None)


def test_names_that_resolve_are_approved() -> None:
    approved = judge(inputs())["approved"]
    assert isinstance(approved, str) and len(approved) == 16
    assert judge(inputs())["approved"] == approved
    assert judge(inputs(policy={"names": {"timeout": 3}}))["approved"] != approved


def test_a_name_that_does_not_resolve_is_refused() -> None:
    error = raised(InvalidInputs, judge, inputs("kafka.absent.invalid"))
    (reason,) = error.reasons.values()
    assert "kafka.absent.invalid does not resolve" in reason and "[KL011]" in reason


def test_an_unknown_host_is_neither_approved_nor_refused() -> None:
    assert judge(inputs(UnknownHost("nodes.7.host")))["approved"] is UNKNOWN
    assert judge({"plan": UNKNOWN})["approved"] is UNKNOWN


def test_an_instance_without_a_plan_is_no_gate() -> None:
    assert judge({"version": "1"}) == {"version": "1"}


def test_internal_names_elsewhere_need_evidence() -> None:
    document = {
        "listeners": LISTENERS[:1],
        "nodes": {"7": {"internal": "kafka-7.corp.example.com"}},
    }
    plan = plan_given(read_given(document, "kafka")).model_dump(mode="json")
    error = raised(InvalidInputs, judge, {"plan": plan, "placement": "given"})
    assert "nothing declares the name" in str(error)
    declared = {"internal": "records of the zone corp", "controller": "records of the zone corp"}
    assert judge({"plan": plan, "placement": "given", "declared": declared})["approved"]


@pytest.mark.parametrize("placement", ["docker", "aws"])
def test_a_declared_name_counts_at_every_vantage(placement: str) -> None:
    document = {"listeners": LISTENERS[:1], "nodes": {"7": {"internal": "kafka-7"}}}
    plan = plan_given(read_given(document, "kafka")).model_dump(mode="json")
    with pytest.raises(InvalidInputs):
        judge({"plan": plan, "placement": placement})
    declared = dict.fromkeys(("internal", "controller"), "aliases on the network")
    assert judge({"plan": plan, "placement": placement, "declared": declared})["approved"]


def test_what_surrounds_instances_that_the_program_makes_is_said_to_be_unknown() -> None:
    document = {"listeners": LISTENERS[:1], "nodes": {"7": {"internal": "kafka-7"}}}
    plan = plan_given(read_given(document, "kafka")).model_dump(mode="json")
    declared = dict.fromkeys(("internal", "controller"), "DNS of the VPC")
    shown: list[tuple[str, bool]] = []
    judged(
        {"plan": plan, "placement": "aws", "declared": declared},
        lambda text, is_warning: shown.append((text, is_warning)),
    )
    for rule in ("KL007", "KL009"):
        (text,) = (text for text, _ in shown if f"[{rule}]" in text)
        assert "what surrounds the instances: not known yet" in text and "policy pack" in text
    assert not any(is_warning for _, is_warning in shown)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((key, "x") for key in ("plan", "addresses", "certificates", "policy", "declared")),
        ("containers", 1),
        ("addresses", {"7": None}),
        ("addresses", {"7": [{"x": "y"}]}),
        ("declared", {"internal": 5}),
    ],
)
def test_an_input_of_another_type_is_one_message(key: str, value: object) -> None:
    assert str(raised(InvalidInputs, judge, inputs(**{key: value}))).startswith(f"{key}: found ")


@pytest.mark.parametrize(
    ("key", "value"),
    [("cloud", "x"), ("cloud", {"instances": None}), ("certificates", {"7": {}})],
)
def test_inputs_of_another_release_are_one_message(key: str, value: object) -> None:
    with pytest.raises(InvalidInputs, match="other keys or values than this release reads"):
        judge(inputs(**{key: value}))


def test_a_fault_of_a_rule_is_not_another_release(monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(*_: object, **__: object) -> None:
        raise KeyError("a fault")

    monkeypatch.setattr("earshot_pulumi.judge.check_plan", faulty)
    with pytest.raises(KeyError, match="a fault"):
        judge(inputs())
    with pytest.raises(KeyError, match="a fault"):
        evaluate_gate(inputs(), ResolverPolicy())


def refusal(inputs: dict[str, Any]) -> str:
    error = raised(InvalidInputs, judge, inputs)
    return str(error)


def test_one_message_names_every_problem_once_with_cause_and_fix() -> None:
    document = {
        "listeners": LISTENERS,
        "nodes": {
            "7": {"internal": "absent.invalid", "host": "0.0.0.0"},
            "8": {"internal": "absent.invalid", "host": "0.0.0.0"},
        },
    }
    plan = plan_given(read_given(document, "kafka")).model_dump(mode="json")
    error = raised(InvalidInputs, judge, {"plan": plan, "placement": "local"})
    (text,) = error.reasons.values()
    assert text.count("[KL003]") == 1 and "brokers 7, 8, listener HOST" in text
    assert "absent.invalid does not resolve" in text and "[KL011]" in text
    assert "\n  expected: " in text and "\n  fix: " in text


@pytest.mark.parametrize("key", ["kl011", "KL011"])
@pytest.mark.parametrize("level", ["advisory", {"enforcementLevel": "advisory"}])
def test_an_advisory_rule_warns_and_approves(key: str, level: Any) -> None:
    shown: list[tuple[str, bool]] = []
    document = inputs("kafka.absent.invalid", policy={key: level})
    found = judged(document, lambda *it: shown.append(it))
    assert found["approved"]
    assert [is_warning for text, is_warning in shown if "[KL011]" in text] == [True]


def test_a_disabled_rule_is_silent() -> None:
    shown: list[str] = []
    document = inputs("kafka.absent.invalid", policy={"kl011": "disabled"})
    judged(document, lambda text, _: shown.append(text))
    assert not [text for text in shown if "KL011" in text]


def test_an_unknown_host_and_a_waiver_are_shown_and_warn_of_nothing() -> None:
    shown: list[tuple[str, bool]] = []
    judged(inputs(UnknownHost("nodes.7.host")), lambda *it: shown.append(it))
    waived = {"names": {"waived": {"kafka.absent.invalid": "made tomorrow"}}}
    judged(inputs("kafka.absent.invalid", policy=waived), lambda *it: shown.append(it))
    texts = [text for text, _ in shown]
    assert any("its host is not known yet" in text for text in texts)
    assert any("is waived: made tomorrow" in text for text in texts)
    assert not [text for text, is_warning in shown if is_warning]


def test_inputs_of_another_release_are_refused_without_their_values() -> None:
    document = inputs()
    document["plan"]["extra"] = {"password": ["Pl4nted"]}
    text = refusal(document)
    assert "['extra']" in text and "Pl4nted" not in text


def test_a_level_for_all_rules_gives_way_to_one_of_a_rule() -> None:
    policy = {"all": "advisory", "kl011": "mandatory"}
    assert "[KL011]" in refusal(inputs("kafka.absent.invalid", policy=policy))
    assert judge(inputs("kafka.absent.invalid", policy={"all": "advisory"}))["approved"]


def test_a_configuration_that_cannot_be_used_is_refused() -> None:
    text = refusal(inputs(policy={"kl999": "advisory", "names": {"timeout": -1}}))
    assert "kl999: no such policy; allowed: KL002" in text and "timeout" in text


@pytest.mark.parametrize("key", ["plan", "addresses", "policy", "certificates"])
def test_an_input_that_is_wholly_unknown_waits_for_the_update(key: str) -> None:
    assert judge(inputs(**{key: UNKNOWN}))["approved"] is UNKNOWN


@pytest.mark.parametrize(
    "policy", [{"KL011": UNKNOWN}, {"names": {"waived": {"kafka.absent.invalid": UNKNOWN}}}]
)
def test_a_policy_of_which_a_part_is_unknown_waits_for_the_update(policy: Any) -> None:
    assert judge(inputs("kafka.absent.invalid", policy=policy))["approved"] is UNKNOWN


def test_variables_of_a_container_do_not_show() -> None:
    planted = "Pl4ntedS3cret"
    container = {
        "name": "kafka-7",
        "image": "apache/kafka:4.1.1",
        "envs": [f"KAFKA_SSL_KEYSTORE_PASSWORD={planted}", f"KAFKA_LISTENERS=X://u:{planted}@:1"],
    }
    text = refusal({**inputs("0.0.0.0"), "containers": {"7": container}})
    assert "[KL003]" in text and planted not in text
