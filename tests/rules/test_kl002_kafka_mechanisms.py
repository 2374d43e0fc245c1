"""A security protocol's name in place of a SASL mechanism; other unknown names are accepted."""

import pytest

from earshot.checks.deployment import mistakes
from earshot.checks.lone_settings import mistakes_in_properties
from earshot.rules.kl002_kafka import objections
from earshot.rules.rule import Severity
from tests.rules.deployment_examples import services
from tests.rules.vectors import BROKER

PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@n1.example.org:9093
controller.listener.names=CONTROLLER
listeners=CLIENTS://n1.example.org:9092,NODES://n1.example.org:9094,CONTROLLER://n1.example.org:9093
advertised.listeners=CLIENTS://n1.example.org:9092,NODES://n1.example.org:9094
listener.security.protocol.map=CONTROLLER:PLAINTEXT,CLIENTS:SASL_PLAINTEXT,NODES:SASL_PLAINTEXT
inter.broker.listener.name=NODES
"""
MECHANISMS, USED = "sasl.enabled.mechanisms", "sasl.mechanism.inter.broker.protocol"


def found(properties: str) -> list[tuple[str, Severity]]:
    findings = mistakes_in_properties(properties)
    assert {finding.rule for finding in findings} <= {"KL002"}
    return [(finding.observed, finding.severity) for finding in findings]


@pytest.mark.parametrize(("lines", "key", "name"), [
    (f"{MECHANISMS}=SCRAM-SHA-256,SASL_PLAINTEXT\n{USED}=SASL_PLAINTEXT", USED, "SASL_PLAINT"),
    (f"{MECHANISMS}=PLAIN,ssl\n{USED}=ssl", USED, "ssl"),
    (f"{MECHANISMS}=PLAINTEXT\n{USED}=PLAINTEXT", USED, "PLAINTEXT"),
    (f"{USED}=PLAIN\nlistener.name.nodes.{MECHANISMS}=PLAIN\n{MECHANISMS}=SASL_SSL", MECHANISMS,
     "SASL_SSL"),
    (f"{MECHANISMS}=PLAIN\n{USED}=PLAIN\nlistener.name.clients.{MECHANISMS}=SASL_PLAINTEXT",
     f"listener.name.clients.{MECHANISMS}", "SASL_PLAINTEXT"),
])  # fmt: skip
def test_no_login_works_with_a_protocol_as_mechanism(lines: str, key: str, name: str) -> None:
    ((observed, severity),) = found(f"{PROPERTIES}{lines}\n")
    assert observed.startswith(f"{key}: {name}") and "not a SASL mechanism" in observed
    assert severity is Severity.ERROR


def test_a_controller_is_not_reached_with_a_protocol_as_mechanism() -> None:
    properties = PROPERTIES.replace("CONTROLLER:PLAINTEXT", "CONTROLLER:SASL_PLAINTEXT")
    lines = f"{MECHANISMS}=PLAIN\n{USED}=PLAIN\nsasl.mechanism.controller.protocol=SASL_SSL\n"
    ((observed, severity),) = found(properties + lines)
    assert "SASL_SSL is a security protocol" in observed and "to a controller" in observed
    assert severity is Severity.ERROR


def test_a_protocol_next_to_a_mechanism_is_a_warning() -> None:
    lines = f"{MECHANISMS}=PLAIN,SASL_SSL\n{USED}=PLAIN\n"
    ((observed, severity),) = found(PROPERTIES + lines)
    assert "SASL_SSL is a security protocol" in observed and severity is Severity.WARNING


@pytest.mark.parametrize("lines", [
    f"{MECHANISMS}=SCRAM-SHA-512\n{USED}=SCRAM-SHA-512",
    f"{MECHANISMS}=COMPANY-TOKEN\n{USED}=COMPANY-TOKEN",
    f"{MECHANISMS}=GSSAPI,AWS_MSK_IAM\n{USED}=AWS_MSK_IAM",
    f"{MECHANISMS}=${{MECHANISMS}}\n{USED}=${{MECHANISM}}",
    # a listener has its own mechanisms
    "\n".join((f"{MECHANISMS}=SASL_SSL", f"{USED}=PLAIN", f"listener.name.nodes.{MECHANISMS}=PLAIN",
               f"listener.name.clients.{MECHANISMS}=PLAIN")),
])  # fmt: skip
def test_a_mechanism_of_a_login_module_may_have_any_other_name(lines: str) -> None:
    assert found(f"{PROPERTIES}{lines}\n") == []


def test_mechanisms_are_not_read_without_sasl() -> None:
    lines = f"{MECHANISMS}=SASL_SSL\n{USED}=SASL_SSL\n"
    assert found(PROPERTIES.replace("SASL_PLAINTEXT", "PLAINTEXT") + lines) == []


def test_the_remedy_does_not_enable_a_protocol() -> None:
    (finding,) = mistakes_in_properties(f"{PROPERTIES}{MECHANISMS}=SASL_SSL,PLAIN\n{USED}=SSL\n")
    assert finding.remedy == f"set {USED} to PLAIN"


def test_a_plan_is_checked_too() -> None:
    mapped = "INTERNAL:SASL_SSL,EXTERNAL:SASL_SSL,CONTROLLER:SSL"
    values = BROKER | {
        "listener.security.protocol.map": mapped,
        MECHANISMS: "SASL_SSL",
        USED: "SASL_SSL",
    }
    assert [item.check for item in objections(values, "4.1.1") if item.key == USED] == ["M1"]


@pytest.mark.parametrize(
    ("options", "says"),
    [("", "has no login for it"), ("-Djava.security.auth.login.config=/jaas", "cannot log in")],
)
def test_a_container_with_a_protocol_as_mechanism(options: str, says: str) -> None:
    variables = "\n".join(
        f"      KAFKA_{key.upper().replace('.', '_')}: '{value}'"
        for key, value in (line.split("=", 1) for line in PROPERTIES.split())
    ).replace("n1.example.org", "kafka")
    text = (
        f"services:\n  kafka:\n    image: apache/kafka:4.1.1\n    environment:\n{variables}\n"
        f"      KAFKA_OPTS: '{options}'\n      KAFKA_SASL_ENABLED_MECHANISMS: SASL_PLAINTEXT\n"
        "      KAFKA_SASL_MECHANISM_INTER_BROKER_PROTOCOL: SASL_PLAINTEXT\n"
    )
    (finding,) = mistakes(services(text))
    assert "SASL_PLAINTEXT is a security protocol" in finding.observed
    assert says in finding.observed
