from __future__ import annotations

import pytest

from earshot.user_data.secrets import revealed

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ssl.keystore.password", "x"),
        ("ssl.key.password", "${file:/run/x:key}tail"),
        ("listener.name.external.ssl.truststore.password", "x"),
        ("ssl.keystore.key", "-----BEGIN PRIVATE KEY----- MII"),
        ("delegation.token.secret.key", "x"),
        ("password.encoder.secret", "x"),
        ("sasl.oauthbearer.client.credentials.client.secret", "x"),
        ("listener.name.external.scram-sha-512.sasl.jaas.config", f'{SCRAM} password="x";'),
        ("sasl.jaas.config", f'{PLAIN} user_alice="x";'),
    ],
)
def test_a_secret_is_told(key: str, value: str) -> None:
    assert revealed({key: value}) == [key]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ssl.keystore.password", "${file:/run/kafka/secrets/tls:password}"),
        ("ssl.keystore.password", ""),
        ("ssl.keystore.location", "/run/kafka/secrets/broker.pem"),
        ("sasl.oauthbearer.token.endpoint.url", "https://login.example.com/token"),
        ("ssl.truststore.certificates", "-----BEGIN CERTIFICATE----- MII"),
        ("sasl.jaas.config", f'{SCRAM} username="b" password="${{file:/run/x:scram}}";'),
        ("sasl.jaas.config", f'{SCRAM} tokenauth="true";'),
        ("sasl.jaas.config", f"{SCRAM};"),
    ],
)
def test_a_reference_or_a_place_is_none(key: str, value: str) -> None:
    assert revealed({key: value}) == []
