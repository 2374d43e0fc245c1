"""Redpanda in Compose files, as people write it; its reference names the flags and the keys."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from earshot.checks.deployment import mistakes
from earshot.listeners.address import Address
from earshot.listeners.images import is_redpanda
from earshot.rules.kl002_kafka import redpanda_refusals
from earshot.sources.deployment import deployment
from earshot.sources.redpanda import listeners_in, redpanda_among
from earshot.sources.service import brokers_among
from earshot.topology.broker import Endpoint
from tests.rules.deployment_examples import services

IMAGE = "docker.redpanda.com/redpandadata/redpanda:v24.2.7"
BIND = "--kafka-addr internal://0.0.0.0:9092,external://0.0.0.0:19092"
TOLD = "--advertise-kafka-addr internal://redpanda:9092,external://localhost:19092"
BOTH = (
    Endpoint("internal", Address("0.0.0.0", 9092), Address("redpanda", 9092)),
    Endpoint("external", Address("0.0.0.0", 19092), Address("localhost", 19092)),
)


def compose(command: str, more: str = "", ports: str = "19092:19092") -> str:
    return f"""
services:
  redpanda:
    image: {IMAGE}
    command: {command}
    ports: ["{ports}"]
{more}"""


SET = "--set redpanda.advertised_kafka_api[0]"
DEFAULT = Endpoint("kafka", Address("0.0.0.0", 9092), Address("127.0.0.1", 9092))
CLIENT = "  app: {image: app, environment: {KAFKA_BROKERS: 'redpanda:9092'}}"


def endpoints(text: str, files: dict[str, str] | None = None) -> tuple[Endpoint, ...] | None:
    (broker,) = deployment(services(text, files)).brokers
    assert not broker.is_kafka
    return broker.endpoints


@pytest.mark.parametrize(("command", "expected"), [
    (f"redpanda start {BIND} {TOLD}", BOTH),
    (f"[redpanda, start, '{BIND}', '{TOLD}', --smp, '1']", BOTH),
    (f"[start, --kafka-addr, '{BIND[13:]}', --advertise-kafka-addr, '{TOLD[23:]}']", BOTH),
    (f"redpanda start {BIND.replace('addr ', 'addr=')} {TOLD.replace('addr ', 'addr=')}", BOTH),
    ("start --kafka-addr 0.0.0.0:9092 --advertise-kafka-addr kafka",
     (Endpoint("kafka", Address("0.0.0.0", 9092), Address("kafka", 9092)),)),
    ("redpanda start --kafka-addr 0.0.0.0:9092",
     (Endpoint("kafka", Address("0.0.0.0", 9092), None),)),
    ("redpanda start --kafka-addr a://0.0.0.0:1 --advertise-kafka-addr a://${HOST_IP}:2",
     (Endpoint("a", Address("0.0.0.0", 1), None),)),
    ("redpanda start --kafka-addr a://0.0.0.0:${PORT}", None),
    ("redpanda start --kafka-addr a://0.0.0.0:1,b://0.0.0.0:${PORT}", None),
    # the file of the image
    ("redpanda start", (DEFAULT,)),
    ("redpanda start --smp 1 --mode dev-container", (DEFAULT,)),
    ("redpanda start --advertise-kafka-addr redpanda:9092",
     (replace(DEFAULT, advertised=Address("redpanda", 9092)),)),
    (f"start {SET}.address=host {SET}.port=9093",
     (replace(DEFAULT, advertised=Address("host", 9093)),)),
    ("redpanda start --advertise-kafka-addr a://redpanda:9092", None),
    ("redpanda start --config /own.yaml", None),
    ("redpanda start --set redpanda.kafka_api=[{address:0.0.0.0,port:9092}]", None),
    ("redpanda start ${FLAGS}", None),
    ("redpanda start\n    volumes: ['conf:/etc/redpanda']", None),
    ("redpanda start\n    environment: {REDPANDA_KAFKA_ADDRESS: '0.0.0.0:1'}", None),
])  # fmt: skip
def test_listeners_by_flags(command: str, expected: tuple[Endpoint, ...] | None) -> None:
    assert endpoints(compose(command)) == expected


@pytest.mark.parametrize("flag", ["", " --advertise-kafka-addr a://other:9092"])
def test_listeners_of_a_mounted_file(flag: str) -> None:
    text = compose(
        f"redpanda start{flag}\n    volumes: ['./redpanda.yaml:/etc/redpanda/redpanda.yaml']"
    )
    file = """
redpanda:
  kafka_api: [{address: 0.0.0.0, port: 9092, name: a}]
  advertised_kafka_api: {address: redpanda, port: 9092, name: a}
"""
    to = Address("other" if flag else "redpanda", 9092)
    expected = (Endpoint("a", Address("0.0.0.0", 9092), to),)
    assert endpoints(text, {"./redpanda.yaml": file}) == expected
    for other in ("", "redpanda: []", "a: [", "redpanda: {kafka_api: [{port: 1}]}"):
        assert endpoints(text, {"./redpanda.yaml": other}) is None


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("redpandadata/redpanda", True),
        ("docker.redpanda.com/redpandadata/redpanda-nightly:v0", True),
        ("vectorized/redpanda:latest", True),
        ("redpandadata/console", False),
        ("example/redpanda", False),
    ],
)
def test_images_of_redpanda(image: str, expected: bool) -> None:
    assert is_redpanda(image) is expected


@pytest.mark.parametrize(
    "command", ["rpk topic create a --brokers redpanda:9092", "bash -c 'rpk cluster info'"]
)
def test_its_tools_are_no_broker(command: str) -> None:
    tools = services(compose(command))
    assert not redpanda_among(tools)
    assert not brokers_among(tools)


def test_variables_of_kafka_mean_nothing_to_it() -> None:
    more = "    environment: {KAFKA_ADVERTISED_LISTENERS: 'A://0.0.0.0:1', KAFKA_LISTENERS: x}\n"
    assert mistakes(services(compose(f"redpanda start {BIND} {TOLD}", more))) == ()


def reported(text: str) -> list[tuple[str, str, str | None, list[str]]]:
    reported_mistakes = mistakes(services(text))
    return [
        (mistake.rule, mistake.container, mistake.listener, list(map(str, mistake.lines)))
        for mistake in reported_mistakes
    ]


def test_a_client_that_is_sent_to_a_closed_port_is_found() -> None:
    good = compose(f"redpanda start {BIND} {TOLD}", CLIENT)
    assert reported(good) == []
    inside = good.replace("internal://redpanda:9092", "internal://localhost:9092")
    assert reported(inside) == [("KL015", "redpanda", "internal", [])]
    (mistake,) = mistakes(services(inside))
    assert mistake.remedy == (
        "advertise internal under a name and port by which these clients reach redpanda, and give "
        "clients elsewhere a listener of their own"
    )
    outside = good.replace("external://localhost", "external://redpanda")
    assert reported(outside) == [("KL017", "redpanda", "external", [])]
    lines = ["redpanda: ports: 19092:19092 in place of 19093:19092"]
    assert reported(good.replace("19092:19092", "19093:19092")) == [
        ("KL017", "redpanda", "external", lines)
    ]


@pytest.mark.parametrize(
    ("ports", "more", "rules"),
    [
        ("9092:9092", "", []),
        ("9092:9092", CLIENT, ["KL015"]),
        ("19092:9092", "", ["KL017"]),
        ("9092:9092", CLIENT.replace("image: app", "image: app, network_mode: host")
         .replace("redpanda:9092", "localhost:9092"), []),
    ],
)  # fmt: skip
def test_the_default_listener_serves_its_own_machine(
    ports: str, more: str, rules: list[str]
) -> None:
    found = mistakes(services(compose("redpanda start", more, ports)))
    assert [finding.rule for finding in found] == rules


def test_who_names_a_seed_is_of_its_cluster() -> None:
    text = "services:\n" + "".join(
        f"  {name}:\n    image: {IMAGE}\n    command: redpanda start {flags}\n"
        for name, flags in (
            ("a", "--node-id 0"),
            ("b", "--node-id 1 --seeds a:33145,b:33145"),
            ("c", "--node-id 1 --seeds=other:33145"),
        )
    )
    clusters = [broker.cluster for broker in deployment(services(text)).brokers]
    assert clusters == ["of Redpanda with a", "of Redpanda with a", "of Redpanda with c"]


def test_what_redpanda_refuses_stands_alone() -> None:
    text = compose(f"redpanda start {BIND} {TOLD.replace('redpanda:', '0.0.0.0:')}", CLIENT)
    (mistake,) = mistakes(services(text))
    assert (mistake.rule, mistake.container, mistake.listener, mistake.observed) == (
        "KL002",
        "redpanda",
        "internal",
        "command: internal advertises 0.0.0.0:9092; Redpanda does not start",
    )
    assert mistake.source.startswith("https://docs.redpanda.com/")
    assert not mistake.lines


@pytest.mark.parametrize(("flags", "observed"), [
    ("--advertise-kafka-addr 0.0.0.0", "kafka advertises 0.0.0.0:9092; Redpanda does not start"),
    ("--advertise-kafka-addr=PLAINTEXT://0.0.0.0:9092",
     "PLAINTEXT advertises 0.0.0.0:9092; Redpanda does not start"),
    ("--kafka-addr ${ADDRESS} --advertise-kafka-addr '[::]:9092'",
     "kafka advertises [::]:9092; Redpanda does not start"),
    ("--advertise-kafka-addr redpanda:9092", None),
    # what they bind is unknown, so it may differ
    ("--advertise-kafka-addr a://redpanda:9092,b://localhost:9092", None),
    ("--advertise-kafka-addr ${ADDRESS}", None),
])  # fmt: skip
def test_an_any_address_is_refused_whatever_redpanda_binds(
    flags: str, observed: str | None
) -> None:
    found = [mistake.observed for mistake in mistakes(services(compose(f"redpanda start {flags}")))]
    assert found == ([] if observed is None else [f"command: {observed}"])


def test_advertised_listeners_of_a_file_may_share_a_port_if_their_binds_are_unknown() -> None:
    addresses = [
        {"name": name, "address": f"{name}.example.com", "port": 9092} for name in ("a", "b")
    ]
    text = json.dumps({"redpanda": {"advertised_kafka_api": addresses}})
    assert not list(redpanda_refusals(listeners_in(text), "advertised_kafka_api"))
