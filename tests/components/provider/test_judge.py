"""The gate's check, as the engine calls it for each provider instance."""

from typing import Any

import pytest
from earshot_policies.evaluation import evaluate_gate
from earshot_pulumi.provider.kind import UNKNOWN, InvalidInputs
from earshot_pulumi.provider.registry import judge as judged

from earshot.listeners.terms import UnknownHost
from earshot.names.policy import ResolverPolicy
from earshot.placement.given import plan_given, read_given
from tests.raised import raised

LISTENERS = [
    {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]},
    {"name": "HOST", "port": 9092, "scopes": ["host"]},
]


def inputs(
    host: Any = "localhost", *, listeners: Any = LISTENERS, nodes: Any = None, **changes: Any
) -> dict[str, Any]:
    nodes = nodes or {"7": {"internal": "localhost", "host": host}}
    plan = plan_given(read_given({"listeners": listeners, "nodes": nodes}, "kafka"))
    return {"plan": plan.model_dump(mode="json"), "placement": "local", **changes}


def internal(name: str, **changes: Any) -> dict[str, Any]:
    """The inputs for one node with only an internal host, ``name``."""
    return inputs(listeners=LISTENERS[:1], nodes={"7": {"internal": name}}, **changes)


def judge(inputs: dict[str, Any]) -> dict[str, Any]:
    return judged(inputs, lambda _text, _is_warning: None)


def findings(inputs: dict[str, Any]) -> list[tuple[str, bool]]:
    """The findings that stop no update, each with whether it is a warning."""
    shown: list[tuple[str, bool]] = []
    assert judged(inputs, lambda text, is_warning: shown.append((text, is_warning)))["approved"]
    return shown


def refusal(inputs: dict[str, Any]) -> str:
    return str(raised(InvalidInputs, judge, inputs))


def test_names_that_resolve_are_approved() -> None:
    approved = judge(inputs())["approved"]
    assert isinstance(approved, str) and len(approved) == 16
    assert judge(inputs())["approved"] == approved
    assert judge(inputs(policy={"names": {"timeout": 3}}))["approved"] != approved


def test_an_unknown_host_is_neither_approved_nor_refused() -> None:
    assert judge(inputs(UnknownHost("nodes.7.host")))["approved"] is UNKNOWN
    assert judge({"version": "1"}) == {"version": "1"}, "this provider is not a gate"
    assert refusal({"placement": "local"}).startswith("plan: is missing")


@pytest.mark.parametrize(
    ("placement", "name"),
    [("given", "kafka-7.corp.example.com"), ("docker", "kafka-7"), ("aws", "kafka-7")],
)
def test_an_internal_name_needs_a_declaration_where_it_cannot_be_looked_up(
    placement: str, name: str
) -> None:
    document = internal(name, placement=placement)
    assert "nothing declares the name" in refusal(document)
    declared = dict.fromkeys(("internal", "controller"), "records of the zone corp")
    assert judge({**document, "declared": declared})["approved"]


def test_the_network_of_instances_that_the_program_makes_is_reported_as_unknown() -> None:
    declared = dict.fromkeys(("internal", "controller"), "DNS of the VPC")
    shown = findings(internal("kafka-7", placement="aws", declared=declared))
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
        ("declared", {"internal": " ", "external": "a zone"}),
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

    monkeypatch.setattr("earshot_pulumi.provider.judge.check_plan", faulty)
    with pytest.raises(KeyError, match="a fault"):
        judge(inputs())
    with pytest.raises(KeyError, match="a fault"):
        evaluate_gate(inputs(), ResolverPolicy())


def test_one_message_names_every_problem_once_with_cause_and_fix() -> None:
    nodes = {id: {"internal": "absent.invalid", "host": "0.0.0.0"} for id in "78"}
    (text,) = raised(InvalidInputs, judge, inputs(nodes=nodes)).reasons.values()
    assert text.count("[KL003]") == 1 and "brokers 7, 8, listener HOST" in text
    assert "absent.invalid does not resolve" in text and "[KL011]" in text
    assert "\n  expected: " in text and "\n  fix: " in text


@pytest.mark.parametrize(("policy", "warnings"), [
    *(({key: level}, [True]) for key in ("kl011", "KL011")
      for level in ("advisory", {"enforcementLevel": "advisory"})),
    ({"all": "advisory"}, [True]),
    ({"kl011": "disabled"}, []),
])  # fmt: skip
def test_an_advisory_rule_warns_and_a_disabled_one_does_not(
    policy: dict[str, Any], warnings: list[bool]
) -> None:
    shown = findings(inputs("kafka.absent.invalid", policy=policy))
    assert [is_warning for text, is_warning in shown if "[KL011]" in text] == warnings
    assert any("the policy disables KL011" in text for text, _ in shown) is not bool(warnings)


def test_an_unknown_host_and_a_waiver_are_shown_without_a_warning() -> None:
    waived = {"names": {"waived": {"kafka.absent.invalid": "made tomorrow"}}}
    last_day = {"reason": "moved in May", "until": "9999-12-31"}
    until = {"names": {"waived": {"kafka.absent.invalid": last_day}}}
    for document, text in (
        (inputs(UnknownHost("nodes.7.host")), "its host is not known yet"),
        (inputs("kafka.absent.invalid", policy=waived), "is waived: made tomorrow"),
        (inputs("kafka.absent.invalid", policy=until), "is waived: moved in May"),
    ):
        shown = findings(document)
        assert any(text in finding for finding, _ in shown)
        assert not any(is_warning for _, is_warning in shown)


def test_inputs_of_another_release_are_refused_without_their_values() -> None:
    document = inputs()
    document["plan"]["extra"] = {"password": ["Pl4nted"]}
    text = refusal(document)
    assert "['extra']" in text and "Pl4nted" not in text


def test_the_level_of_a_rule_is_preferred_to_that_of_all() -> None:
    policy = {"all": "advisory", "kl011": "mandatory"}
    assert "[KL011]" in refusal(inputs("kafka.absent.invalid", policy=policy))


def test_a_configuration_that_cannot_be_used_is_refused() -> None:
    text = refusal(inputs(policy={"kl999": "advisory", "names": {"timeout": -1}}))
    assert text.startswith("policy: kl999: no such policy; allowed: KL002") and "timeout" in text


@pytest.mark.parametrize(
    ("subject", "changes"),
    [
        *((key, {key: UNKNOWN}) for key in ("plan", "addresses", "policy", "certificates")),
        ("policy", {"policy": {"KL011": UNKNOWN}}),
        ("policy", {"policy": {"names": {"waived": {"kafka.absent.invalid": UNKNOWN}}}}),
        ("nodes, extra.a", {"plan": UNKNOWN, "unknown": ["nodes", "extra.a"]}),
    ],
)
def test_an_unknown_input_and_a_policy_with_an_unknown_part_wait_for_the_update(
    subject: str, changes: Any
) -> None:
    document = inputs("kafka.absent.invalid", **changes)
    assert judge(document)["approved"] is UNKNOWN
    ((text, is_warning),) = findings(document)
    assert text.startswith(f"not checked: the advertised listeners: {subject}: not known yet")
    assert not is_warning


@pytest.mark.parametrize("addresses", [UNKNOWN, ["192.0.2.9", UNKNOWN]])
def test_a_node_with_an_unknown_address_is_not_compared(addresses: Any) -> None:
    nodes = {"7": {"internal": "192.0.2.7"}}
    document = inputs(listeners=LISTENERS[:1], nodes=nodes, placement="given")
    shown = findings({**document, "addresses": {"7": addresses}})
    assert any("the addresses of broker 7 are not known [KL012]" in text for text, _ in shown)


@pytest.mark.parametrize("declared", [UNKNOWN, {"internal": UNKNOWN, "controller": "a zone"}])
def test_an_unknown_declaration_is_accepted_and_not_approved(declared: Any) -> None:
    document = internal("kafka-7", placement="given", declared=declared)
    assert judge(document)["approved"] is UNKNOWN
    expected = "kafka-7 is taken on its declaration: a value of a resource that is still to be made"
    assert any(expected in text for text, _ in findings(document))


def test_a_declaration_counts_for_the_bootstrap_too_and_certificates_are_unknown() -> None:
    address = {"strategy": "sni", "pattern": "b{id}.corp", "port": 443, "bootstrap_host": "b.corp"}
    clients = {"name": "CLIENTS", "port": 9094, "scopes": ["internal"], "protocol": "SSL"}
    declared = dict.fromkeys(("internal", "controller"), "records of the zone corp")
    shown = findings(
        inputs(
            listeners=[LISTENERS[0], {**clients, "address": address}],
            nodes={"7": {"internal": "kafka-7"}},
            placement="given",
            declared=declared,
        )
    )
    assert any("its certificate is not known [KL010]" in text for text, _ in shown)


def test_variables_of_a_container_do_not_show() -> None:
    planted = "Pl4ntedS3cret"
    container = {
        "name": "kafka-7",
        "image": "apache/kafka:4.1.1",
        "envs": [f"KAFKA_SSL_KEYSTORE_PASSWORD={planted}", f"KAFKA_LISTENERS=X://u:{planted}@:1"],
    }
    text = refusal({**inputs("0.0.0.0"), "containers": {"7": container}})
    assert "[KL003]" in text and planted not in text


def test_without_addresses_of_docker_hosts_one_note_says_what_is_not_compared() -> None:
    nodes = {"7": {"internal": "kafka-7", "host": "192.0.2.10"}}
    declared = dict.fromkeys(("internal", "controller"), "d")
    shown = findings(inputs(nodes=nodes, placement="docker", declared=declared))
    (note,) = (text for text, _ in shown if "KL012" in text)
    assert note.startswith("KL012: whether 192.0.2.10 leads to the brokers advertising it is not")
