"""The pack on launch templates and task definitions of programs that know nothing of earshot."""

import base64
import json
from typing import Any

import pytest
from earshot_policies.launches import LAUNCH_TEMPLATE, TASK_DEFINITION, TEMPLATES

from tests.policies.calls import UNKNOWN, Pack, headline
from tests.rules.container_examples import KRAFT

SCRIPT = """\
#!/bin/bash
cat > /etc/server.properties <<'END'
process.roles=broker
node.id=1
listeners=PLAINTEXT://:9092
advertised.listeners=PLAINTEXT://0.0.0.0:9092
controller.quorum.voters=2@controller:9093
controller.listener.names=CONTROLLER
END
"""
ZOOKEEPER = [
    {"name": "KAFKA_ZOOKEEPER_CONNECT", "value": "zookeeper:2181"},
    {"name": "KAFKA_ADVERTISED_LISTENERS", "value": "PLAINTEXT://kafka:9092"},
]


def template(text: str) -> dict[str, Any]:
    return {"userData": base64.b64encode(text.encode()).decode()}


def task(*containers: dict[str, Any]) -> dict[str, Any]:
    return {"family": "streams", "containerDefinitions": json.dumps(containers)}


def kafka(**more: Any) -> dict[str, Any]:
    defaults = {"image": "confluentinc/cp-kafka:8.0.0", "environment": ZOOKEEPER}
    return {"name": "kafka", **defaults, **more}


def test_user_data_of_a_template_are_checked_before_any_instance_exists() -> None:
    pack = Pack()
    findings = pack.analyze(LAUNCH_TEMPLATE, template(SCRIPT))
    ((policy, (text,)),) = findings.items()
    assert policy == "kl002"
    assert headline(text) == (
        "listener PLAINTEXT: advertised.listeners: PLAINTEXT advertises 0.0.0.0:9092; Kafka "
        "does not start [KL002]"
    )
    assert pack.places == [f"urn:pulumi:s::p::{LAUNCH_TEMPLATE}::x, userData"]


@pytest.mark.parametrize(
    "text", [SCRIPT.replace("0.0.0.0", "198.51.100.7"), "#!/bin/sh\necho hello\n", ""]
)
def test_a_correct_template_and_one_without_a_broker_pass(text: str) -> None:
    assert Pack().analyze(LAUNCH_TEMPLATE, template(text)) == {}
    assert Pack().analyze(LAUNCH_TEMPLATE, {"name": "kafka"}) == {}


def test_a_full_name_that_is_not_looked_up_is_named() -> None:
    remark = "KL011: whether kafka.example.com resolves is not checked"
    text = SCRIPT.replace("0.0.0.0", "kafka.example.com")
    assert Pack().analyze(LAUNCH_TEMPLATE, template(text)) == {"advice": [remark]}
    settings = {**KRAFT, "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka.example.com:9092"}
    env = [{"name": name, "value": value} for name, value in settings.items()]
    reported = Pack().analyze(TASK_DEFINITION, task(kafka(environment=env)))
    assert reported["advice"] == [f"container kafka: {remark}"]
    private = SCRIPT.replace("0.0.0.0", "ip-10-0-0-1.ec2.internal")
    assert Pack().analyze(LAUNCH_TEMPLATE, template(private)) == {}


PLAIN = [type for type, encoded in TEMPLATES.items() if "userData" not in encoded]


@pytest.mark.parametrize("type", PLAIN)
@pytest.mark.parametrize("key", ["userData", "userDataBase64"])
def test_user_data_of_other_launches_are_checked_like_those_of_a_template(
    type: str, key: str
) -> None:
    pack = Pack()
    inputs = {"userData": SCRIPT} if key == "userData" else {key: template(SCRIPT)["userData"]}
    assert set(pack.analyze(type, inputs)) == {"kl002"}
    assert pack.places == [f"urn:pulumi:s::p::{type}::x, {key}"]


@pytest.mark.parametrize(("text", "advice"), [
    ("#!/bin/sh\ndocker run -e KAFKA_ADVERTISED_LISTENERS=A://a:9092 apache/kafka:4.1.1",
     "user data: advertised.listeners is set in a way that is not read here"),
    (SCRIPT.replace("0.0.0.0", "__HOST__"),
     "/etc/server.properties: advertised.listeners is not known: PLAINTEXT://__HOST__:9092"),
], ids=["a container", "a placeholder"])  # fmt: skip
def test_listeners_of_a_template_that_are_not_read_are_said(text: str, advice: str) -> None:
    reported = Pack().analyze(LAUNCH_TEMPLATE, template(text))
    assert set(reported) == {"advice"}
    assert reported["advice"][0].startswith(advice) and "not checked" in reported["advice"][0]


def test_user_data_that_are_no_base64_are_said() -> None:
    (text,) = Pack().analyze(LAUNCH_TEMPLATE, {"userData": "a"})["advice"]
    assert text.startswith("user data in base64: cannot be read: ")


def test_the_containers_of_a_task_are_checked_by_their_images() -> None:
    pack = Pack()
    findings = pack.analyze(TASK_DEFINITION, task({"name": "app", "image": "app:1"}, kafka()))
    ((policy, (text,)),) = findings.items()
    assert policy == "kl014"
    assert text.startswith(
        "container kafka: confluentinc/cp-kafka:8.0.0 is Kafka 4, which has no ZooKeeper"
    )
    assert pack.places == [
        f"urn:pulumi:s::p::{TASK_DEFINITION}::x, containerDefinitions[1].environment[0]"
    ]


@pytest.mark.parametrize(
    "container",
    [
        kafka(image="confluentinc/cp-kafka:7.9.0"),
        kafka(image="apache/kafka:4.1.1", environment=[], command=["kafka-topics.sh", "--list"]),
        {"name": "kafka", "image": None, "environment": None},
    ],
    ids=["a release with ZooKeeper", "a client", "nothing told"],
)
def test_a_task_that_is_well_or_not_all_known_passes(container: dict[str, Any]) -> None:
    assert Pack().analyze(TASK_DEFINITION, task(container)) == {}


def test_listeners_that_a_file_may_set_are_not_checked() -> None:
    files = [{"type": "s3", "value": "arn"}]
    for environment in ([], ZOOKEEPER[1:]):
        container = kafka(environment=environment, environmentFiles=files)
        (text,) = Pack().analyze(TASK_DEFINITION, task(container))["advice"]
        assert text.startswith("container kafka: environmentFiles could not be read, and may set")


def test_a_secret_is_not_known() -> None:
    """The same without it is wrong: the image needs advertised listeners."""
    plain = {name: value for name, value in KRAFT.items() if "ADVERTISED" not in name}
    environment = [{"name": name, "value": value} for name, value in plain.items()]
    broker = kafka(environment=environment)
    assert set(Pack().analyze(TASK_DEFINITION, task(broker))) == {"kl014"}
    secret = [{"name": "KAFKA_ADVERTISED_LISTENERS", "valueFrom": "arn:aws:ssm:one"}]
    reported = Pack().analyze(TASK_DEFINITION, task({**broker, "secrets": secret}))
    unknown = "KAFKA_ADVERTISED_LISTENERS is not known: ${KAFKA_ADVERTISED_LISTENERS}"
    assert reported == {"advice": [f"container kafka: {unknown}; not checked"]}


@pytest.mark.parametrize("text", ["{", "[" * 100_000])
def test_definitions_that_are_no_json_are_said(text: str) -> None:
    (advice,) = Pack().analyze(TASK_DEFINITION, {"containerDefinitions": text})["advice"]
    assert advice.startswith("containerDefinitions is not JSON: ")


@pytest.mark.parametrize("text", ["{}", "[1, null, []]", '[{"environment": [1], "command": 2}]'])
def test_definitions_of_another_shape_hold_no_broker(text: str) -> None:
    assert Pack().analyze(TASK_DEFINITION, {"containerDefinitions": text}) == {}


@pytest.mark.parametrize(
    ("type", "key"), [(LAUNCH_TEMPLATE, "userData"), (TASK_DEFINITION, "containerDefinitions")]
)
def test_what_is_not_known_yet_is_said_of_what_is_called_after_kafka(type: str, key: str) -> None:
    findings = Pack().analyze(type, {key: UNKNOWN, "name": "kafka-broker"})
    assert set(findings) == {"not-known-yet"}
    assert f"{key}: not known yet" in findings["not-known-yet"][0]
    assert Pack().analyze(type, {key: UNKNOWN, "name": "web"}) == {}


def test_two_containers_of_one_name_have_places_of_their_own() -> None:
    pack = Pack()
    pack.analyze(TASK_DEFINITION, task(kafka(image="confluentinc/cp-kafka:7.9.0"), kafka()))
    assert [place.rpartition(", ")[2] for place in pack.places] == [
        "containerDefinitions[1].environment[0]"
    ]
