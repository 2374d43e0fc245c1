"""Client properties in librdkafka's words, and what its errors mean."""

import os
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException

from earshot.errors import EarshotError
from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol
from earshot.validation.client import (
    Errors,
    Failure,
    configuration,
    failure_of,
    protocol_of,
    translate,
)
from tests.raised import raised

JAAS = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="alice" password="p=w;d";'
)
PEM = f"-----BEGIN CERTIFICATE-----\n{'ab+/' * 16}\nAQ==\n-----END CERTIFICATE-----"


@pytest.mark.parametrize(("properties", "expected"), [
    ({}, {}),
    ({"ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem"},
     {"ssl.ca.location": "/ca.pem"}),
    ({"ssl.keystore.type": "pem", "ssl.keystore.location": "/me.pem"},
     {"ssl.certificate.location": "/me.pem", "ssl.key.location": "/me.pem"}),
    ({"ssl.keystore.certificate.chain": "C", "ssl.keystore.key": "K", "ssl.keystore.type": "PEM"},
     {"ssl.certificate.pem": "C", "ssl.key.pem": "K"}),
    (
        {"ssl.truststore.certificates": f"{' '.join(PEM.split(chr(10)))} {PEM}",
         "ssl.truststore.type": "PEM"},
        {"ssl.ca.pem": f"{PEM}\n{PEM}"},  # as lines that end in a backslash give it
    ),
    ({"ssl.endpoint.identification.algorithm": ""},
     {"ssl.endpoint.identification.algorithm": "none"}),
    ({"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": JAAS},
     {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "alice", "sasl.password": "p=w;d"}),
    ({"sasl.jaas.config": JAAS.replace("p=w;d", r"quote \" and \\ backslash")},
     {"sasl.username": "alice", "sasl.password": r'quote " and \ backslash'}),
    ({"ssl.ca.location": "/ca.pem"}, {"ssl.ca.location": "/ca.pem"}),
    ({"bootstrap.servers": "elsewhere:1", "group.id": "mine"}, {}),
    # what an application's file holds besides
    ({"key.serializer": "x", "schema.registry.url": "http://x", "buffer.memory": "1"}, {}),
    ({"partition.assignment.strategy": "org.apache.kafka.RangeAssignor"}, {}),
    ({"transactional.id": "t", "acks": "0", "linger.ms": "900000"}, {}),
    ({"group.protocol": "consumer", "session.timeout.ms": "6000"}, {}),
    ({"queue.buffering.max.messages": "1"}, {}),
    ({"stats_cb": "x", "default.topic.config": "x"}, {}),  # no texts, for librdkafka's client
    ({"ssl.protocol": "TLSv1.3", "ssl.enabled.protocols": "TLSv1.3"}, {}),
    ({"client.dns.lookup": "use_all_dns_ips", "broker.address.family": "v4"},
     {"client.dns.lookup": "use_all_dns_ips", "broker.address.family": "v4"}),
    (
        {"sasl.login.callback.handler.class": "x"},  # for librdkafka to refuse
        {"sasl.login.callback.handler.class": "x"},
    ),
])  # fmt: skip
def test_translates_kafka_properties(properties: dict[str, str], expected: dict[str, str]) -> None:
    assert translate(properties) == expected


@pytest.mark.parametrize("key", ["ssl.truststore", "ssl.keystore"])
@pytest.mark.parametrize("kind", [None, "JKS", "PKCS12"])
def test_refuses_stores_that_only_java_reads(key: str, kind: str | None) -> None:
    properties = {f"{key}.location": "/store"} | ({f"{key}.type": kind} if kind else {})
    with pytest.raises(EarshotError, match=f"{key}.location: is a store of the type") as caught:
        translate(properties)
    assert "PEM" in caught.value.allowed and "openssl" in caught.value.remedy


@pytest.mark.parametrize(("properties", "refused"), [
    ("truststore.type=PEM truststore.certificates=C truststore.location=/ca.pem",
     "truststore.certificates: is set in addition to ssl.truststore.location"),
    ("truststore.certificates=C", "truststore.certificates: is set for a store of the type JKS"),
    ("truststore.type=PEM truststore.location=/ca.pem truststore.password=x",
     "truststore.password: is set for a PEM store"),
    ("keystore.type=PEM keystore.key=K keystore.certificate.chain=C keystore.location=/me.pem",
     "keystore.key: is set in addition to ssl.keystore.location"),
    ("keystore.type=PEM keystore.key=K", "keystore.key: is set alone"),
    ("keystore.type=PEM keystore.certificate.chain=C", "keystore.certificate.chain: is set alone"),
    ("keystore.key=K keystore.certificate.chain=C", "keystore.key: is set for a store of the type"),
    ("keystore.type=PEM keystore.location=/me.pem keystore.password=x",
     "keystore.password: is set for a PEM store"),
])  # fmt: skip
def test_stores_that_javas_clients_refuse_are_refused(properties: str, refused: str) -> None:
    pairs = (text.partition("=") for text in properties.split())
    client = {f"ssl.{key}": value for key, _, value in pairs}
    message = str(raised(EarshotError, translate, client))
    assert message.startswith(f"client property ssl.{refused}") and "Java's clients" in message


@pytest.mark.parametrize("key", ["ssl.truststore", "ssl.keystore"])
def test_refuses_a_store_that_is_a_pipe_or_a_device(key: str, tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(EarshotError, match=f"{key}.location: .* is not a regular file"):
            translate({f"{key}.type": "PEM", f"{key}.location": str(path)})


@pytest.mark.parametrize(
    ("jaas", "observed"),
    [
        ("", "has no login module"),
        ('Module required password="hush";', "no username and password"),
        (f"{JAAS} {JAAS}", "has 2 login modules"),
        (JAAS.replace('";', '"'), "does not end in a semicolon"),
        (JAAS.replace("p=w;d", 'hush"hush'), "has something other than OPTION=VALUE"),
        (JAAS.replace('";', '" tokenauth=true;'), "delegation token"),
    ],
)
def test_refuses_what_is_no_login_and_does_not_repeat_it(jaas: str, observed: str) -> None:
    with pytest.raises(EarshotError, match=observed) as caught:
        translate({"sasl.jaas.config": jaas})
    assert "hush" not in str(caught.value)


def test_the_listeners_protocol_wins_over_the_users() -> None:
    user = {"security.protocol": "SSL", "client.id": "mine"}
    values = configuration("a:1", Protocol.SASL_SSL, user)
    assert values["security.protocol"] == "SASL_SSL"
    assert values["bootstrap.servers"] == "a:1"
    assert values["client.id"] == "mine"
    assert configuration("a:1", None, user)["security.protocol"] == "SSL"


def test_protocol_of_properties() -> None:
    assert protocol_of({}) is Protocol.PLAINTEXT
    assert protocol_of({"security.protocol": "sasl_ssl"}) is Protocol.SASL_SSL
    with pytest.raises(EarshotError, match=r"'TLS'\n.*PLAINTEXT, SSL"):
        protocol_of({"security.protocol": "TLS"})


TRANSPORT, SSL = KafkaError._TRANSPORT, KafkaError._SSL
AUTHENTICATION = KafkaError._AUTHENTICATION
WRONG_PROTOCOL = "Disconnected: might be caused by incorrect security.protocol configuration"
BAD_CERTIFICATE = "Receive failed: error:0A000412:SSL routines::ssl/tls alert bad certificate"
NO_MECHANISM = (
    "SASL PLAIN mechanism handshake failed: Broker: Unsupported SASL mechanism: "
    "broker's supported mechanisms: SCRAM-SHA-512"
)
NO_LOGIN = (
    "SASL PLAIN mechanism handshake failed: Broker: Request not valid in current SASL "
    "state: broker's supported mechanisms: "
)


@pytest.mark.parametrize(
    ("code", "text", "word"),
    [
        (KafkaError._RESOLVE, "Failed to resolve 'nope:1'", "unresolvable"),
        (TRANSPORT, "Connect to ipv4#127.0.0.1:1 failed: Connection refused", "refused"),
        (TRANSPORT, "Connection setup timed out in state CONNECT", "timeout"),
        (TRANSPORT, WRONG_PROTOCOL, "protocol"),
        (TRANSPORT, "Receive failed", "disconnected"),
        (AUTHENTICATION, "SASL authentication error", "authentication"),
        (TRANSPORT, BAD_CERTIFICATE, "client-certificate"),
        (SSL, "tlsv13 alert certificate required", "client-certificate"),
        (SSL, "sslv3 alert handshake failure", "tls"),
        (AUTHENTICATION, NO_MECHANISM, "mechanism"),
        (AUTHENTICATION, NO_LOGIN, "no-login"),
        (SSL, "SSL handshake failed", "tls"),
        (KafkaError._MSG_TIMED_OUT, "Local: Message timed out", "timeout"),
        (KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down", "unreachable"),
        (KafkaError.NOT_LEADER_FOR_PARTITION, "Broker: Not leader", "misrouted"),
        (KafkaError.POLICY_VIOLATION, "Broker: Policy violation", "policy-violation"),
    ],
)
def test_a_stable_word_for_every_error(code: int, text: str, word: str) -> None:
    error = KafkaError(code, text)
    assert failure_of(error) == failure_of(KafkaException(error)) == Failure(word, text)


@pytest.mark.parametrize(
    "end",
    [
        " (after 14ms in state APIVERSION_QUERY)",
        " (after 0ms in state CONNECT, 5 identical error(s) suppressed)",
    ],
)
def test_the_same_error_of_two_brokers_is_one_text(end: str) -> None:
    said = "ssl://b:1/bootstrap: Receive failed: SSL alert number 42"
    assert failure_of(KafkaError(KafkaError._TRANSPORT, said + end)).text == said


def test_other_exceptions_keep_their_text() -> None:
    assert failure_of(ValueError("odd")) == Failure("client", "odd")


def test_the_first_specific_error_explains() -> None:
    errors = Errors()
    last = KafkaException(KafkaError(KafkaError._TRANSPORT, "Failed to get metadata"))
    assert errors.first() is None
    assert errors.explain(last).text == "Failed to get metadata"
    errors(KafkaError(KafkaError._ALL_BROKERS_DOWN, "all down"))
    errors(KafkaError(KafkaError._RESOLVE, "no such host"))
    errors(KafkaError(KafkaError._TRANSPORT, "later"))
    assert errors.first() == errors.explain(last) == Failure("unresolvable", "no such host")


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("ssl://localhost:9093/bootstrap: SSL handshake failed", True),
        ("ssl://localhost:9093/1: SSL handshake failed", True),
        ("ssl://127.0.0.1:9093/1: SSL handshake failed: certificate verify failed", False),
        ("ssl://[::1]:9093/12: SSL handshake failed", False),
        ("localhost:9093/bootstrap: Connect to ipv4#127.0.0.1:9093 failed", True),
        ("127.0.0.1:9093/1: Connect to ipv4#127.0.0.1:9093 failed", False),
        ("SSL handshake failed", True),
    ],
)
def test_errors_of_other_brokers_are_not_reported(text: str, heard: bool) -> None:
    errors = Errors(Address("localhost", 9093))
    errors(KafkaError(KafkaError._SSL, text))
    assert (errors.first() is not None) is heard
    every = Errors()
    every(KafkaError(KafkaError._SSL, text))
    assert every.first() == Failure("tls", text)


def test_brokers_see_who_asks() -> None:
    assert configuration("b:1", None, {})["client.id"] == "earshot"
    assert configuration("b:1", None, {"client.id": "mine"})["client.id"] == "mine"


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("scurity.protocol", "security.protocol"),
        ("SECURITY.PROTOCOL", "security.protocol"),
        ("security_protocol", "security.protocol"),
        ("sals.mechanism", "sasl.mechanism"),
        ("sl.truststore.location", "ssl.truststore.location"),
        ("sl.keystore.key", "ssl.keystore.key"),
        ("kafka.security.protocol", None),  # Spark's
        ("kafka.ssl.keystore.certificate.chain", None),
        ("schema.registry.ssl.truststore.location", None),
        ("key.serializer", None),
        ("linger.ms", None),
    ],
)
def test_a_misspelt_property_of_a_login_is_refused(key: str, name: str | None) -> None:
    if name is None:
        assert translate({key: "x"}) == {}
        return
    with pytest.raises(EarshotError, match=f"client property {key}") as caught:
        translate({key: "x"})
    assert name in str(caught.value)


@pytest.mark.parametrize("key", ["ssl.truststore.location", "ssl.keystore.location"])
def test_a_file_that_cannot_be_read_is_named(key: str, tmp_path: Path) -> None:
    kind = key.replace("location", "type")
    path = tmp_path / "none.pem"
    with pytest.raises(EarshotError, match=f"{key}: .*none.pem cannot be read") as caught:
        configuration("a:1", None, {kind: "PEM", key: str(path)})
    assert "No such file" in caught.value.observed
    path.touch()
    assert str(path) in configuration("a:1", None, {kind: "PEM", key: str(path)}).values()
